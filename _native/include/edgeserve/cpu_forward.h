// The CPU backend's network: runs a Program on a team of threads, owns keys and values.
#pragma once

#include <atomic>
#include <vector>

#include "edgeserve/forward.h"
#include "edgeserve/kernels.h"
#include "edgeserve/memory.h"
#include "edgeserve/program.h"
#include "edgeserve/threads.h"

namespace edgeserve {

struct CpuLimits {
  int32_t pages;
  int32_t page_tokens;  // a multiple of 16
  int32_t step_tokens;
};

// Where keys and values lie in a page: all layers, all heads, blocks of 16 positions.
class PageLayout {
 public:
  PageLayout(const std::vector<KvSpec>& layers, bool f32, int32_t page_tokens);
  int64_t page_bytes() const { return page_bytes_; }
  int64_t head_offset(int32_t layer, int32_t head) const;
  int64_t block_bytes(int32_t layer) const;

 private:
  std::vector<KvSpec> layers_;
  std::vector<int64_t> offsets_;
  int64_t element_, blocks_, page_bytes_;
};

class CpuForward final : public Forward {
 public:
  CpuForward(Program program, const Kernels& kernels, const CpuLimits& limits, int threads,
             std::vector<int> cpus);

  int32_t vocab() const override { return program_.vocab; }
  int32_t page_tokens() const override { return limits_.page_tokens; }
  int32_t pages() const override { return limits_.pages; }
  int32_t step_tokens() const override { return limits_.step_tokens; }
  void run(const Step& step) override;
  void copy_page(int32_t from, int32_t to) override;

 private:
  // Consecutive rows of one span that attend together.
  struct Tile {
    int32_t row, count;
  };
  // Attention of a tile, of all its segments or of one. Segments of a tile are neighbours; their
  // parts lie in slots from `slot - segment` on.
  struct Unit {
    int32_t tile, segment, segments, slot;
  };
  // What each row is, in the step that runs.
  struct Row {
    int32_t position;
    const int32_t* pages;
  };
  struct Forms {
    int32_t f32, quant, bf16;
  };
  // What an instruction has to do in this step: so many rows, tiles or heads, `grain` to a chunk.
  struct Work {
    int64_t units, grain;
    int32_t chunks() const { return int32_t(ceil_div(units, grain)); }
  };
  struct Share {
    int64_t start, stop;
  };

  void prepare(const Step& step);
  void execute(int member);
  void execute(const Instruction& instruction, Share share, int member);
  Work work_of(const Instruction& instruction) const;

  void embed(const Instruction&, Share share, int member);
  void convert(const Instruction&, Share share);
  void norm(const Instruction&, Share share, int member);
  void matmul(const Instruction&, Share share, int member);
  void angles(const Instruction&, Share share);
  void rope(const Instruction&, Share share);
  void keep(const Instruction&, Share share);
  void keep_head(const Instruction&, int32_t row, int32_t head);
  void attend(const Instruction&, Share share, int member);
  Attend attend_job(const Instruction&, int member, Tile tile, int32_t kv_head);
  void attend_unit(const Instruction&, int member, const Unit& unit, int32_t kv_head);
  void plan_attention();
  int64_t most_part() const;
  void gated(const Instruction&, Share share, int member);
  void unary(const Instruction&, Share share, int member);
  void binary(const Instruction&, Share share, int member);
  void select(const Instruction&, Share share, int member);

  template <class Fn>
  void pieces(Share share, int member, int32_t width, const int32_t* forms, Fn fn);

  int32_t rows(const Instruction& i) const { return i.outputs ? outputs_ : tokens_; }
  float* floats(int32_t buffer, int64_t row) const;
  template <class T>
  T* buffer(int32_t buffer, int64_t row) const;
  float* scratch(int member) const { return row_scratch(member) + row_floats_; }
  float* row_scratch(int member) const { return scratch_[size_t(member)]; }
  // Converts columns [at, at + width) of a finished row to the other forms that are wanted.
  void emit(const int32_t* forms, int64_t row, int32_t at, int32_t width, const float* x);
  uint8_t* block(int32_t row, int32_t layer, int32_t head) const;
  int64_t most_scratch() const;

  const Program program_;
  const Kernels& kernels_;
  const CpuLimits limits_;
  const PageLayout layout_;
  const int64_t row_floats_, scratch_floats_;  // of each member
  const int64_t part_floats_;                  // of a part of attention: one row, one kv head
  const int32_t most_kv_heads_;                // of a layer
  Threads threads_;
  Memory storage_;  // of pages
  Memory arena_;    // of buffers, then scratch of each member
  std::vector<float*> scratch_;
  int32_t ids_ = INT32_MAX;  // rows of the embedding table
  // A late member may read these when its step is over; what they say does not matter then.
  std::atomic<int32_t> tokens_{0}, outputs_{0}, attends_{0};  // rows; attention tiles
  std::atomic<uint32_t> first_stage_{0};                       // number of the first instruction
  uint32_t next_stage_ = 1;
  Step step_ = {};
  std::vector<Row> rows_;
  std::vector<Tile> tiles_;
  std::vector<Unit> units_;
  std::vector<float> parts_;    // [slot][kv head]
  std::vector<std::atomic<int32_t>> parts_done_;  // [tile][kv head]
};

}  // namespace edgeserve
