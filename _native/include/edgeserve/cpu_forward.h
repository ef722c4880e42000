// The CPU backend's network: runs a Program on a team of threads, owns keys and values.
#pragma once

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
  // What each row is, in the step that runs.
  struct Row {
    int32_t position;
    const int32_t* pages;
  };
  struct Forms {
    int32_t f32, quant, bf16;
  };
  // A share of `total` things, that member of the team takes.
  struct Share {
    int64_t start, stop;
  };

  void prepare(const Step& step);
  void execute(int member);
  void execute(const Instruction& instruction, int member);

  void embed(const Instruction&, int member);
  void convert(const Instruction&, int member);
  void norm(const Instruction&, int member);
  void matmul(const Instruction&, int member);
  void angles(const Instruction&, int member);
  void rope(const Instruction&, int member);
  void keep(const Instruction&, int member);
  void keep_head(const Instruction&, int32_t row, int32_t head);
  void attend(const Instruction&, int member);
  void attend_tile(const Instruction&, int member, Tile tile, int32_t kv_head);
  void gated(const Instruction&, int member);
  void unary(const Instruction&, int member);
  void binary(const Instruction&, int member);
  void select(const Instruction&, int member);

  template <class Fn>
  void pieces(const Instruction&, int member, int32_t width, const int32_t* forms, Fn fn);

  int32_t rows(const Instruction& i) const { return i.outputs ? step_.output_count : step_.tokens; }
  Share share(int64_t total, int member) const;
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
  Threads threads_;
  Memory storage_;  // of pages
  Memory arena_;    // of buffers, then scratch of each member
  std::vector<float*> scratch_;
  int32_t ids_ = INT32_MAX;  // rows of the embedding table
  Step step_ = {};
  std::vector<Row> rows_;
  std::vector<Tile> tiles_;
};

}  // namespace edgeserve
