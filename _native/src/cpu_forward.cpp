// The step: what it means to the rows, and who runs which instruction. The instructions themselves
// stand in instructions.cpp.
#include "edgeserve/cpu_forward.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

namespace edgeserve {

PageLayout::PageLayout(const std::vector<KvSpec>& layers, bool f32, int32_t page_tokens)
    : layers_(layers), element_(f32 ? 4 : 2), blocks_(page_tokens / 16), page_bytes_(0) {
  for (size_t layer = 0; layer < layers_.size(); ++layer) {
    offsets_.push_back(page_bytes_);
    page_bytes_ += layers_[layer].kv_heads * blocks_ * block_bytes(int32_t(layer));
  }
}

int64_t PageLayout::block_bytes(int32_t layer) const {
  return 2 * 16 * int64_t(dim_padded(layers_[size_t(layer)].head_dim)) * element_;
}

int64_t PageLayout::head_offset(int32_t layer, int32_t head) const {
  return offsets_[size_t(layer)] + head * blocks_ * block_bytes(layer);
}

namespace {

int32_t most_heads(const Program& program) {
  int32_t heads = 0;
  for (const KvSpec& layer : program.layers) heads = std::max(heads, layer.kv_heads);
  return heads;
}

int64_t widest_row(const Program& program) {
  int64_t bytes = 0;
  for (const BufferSpec& spec : program.buffers) bytes = std::max(bytes, spec.row_bytes);
  return round_up(bytes / 2, 16);  // the narrowest form has 2 bytes per column
}

}  // namespace

CpuForward::CpuForward(Program program, const Kernels& kernels, const CpuLimits& limits,
                       int threads, std::vector<int> cpus)
    : program_(std::move(program)),
      kernels_(kernels),
      limits_(limits),
      layout_(program_.layers, program_.kv_f32, limits.page_tokens),
      row_floats_(widest_row(program_)),
      scratch_floats_(most_scratch()),
      part_floats_(most_part()),
      most_kv_heads_(most_heads(program_)),
      threads_(threads, std::move(cpus)),
      storage_(size_t(layout_.page_bytes() * limits.pages)),
      arena_(size_t(program_.arena_row_bytes * limits.step_tokens +
                    threads * scratch_floats_ * int64_t(sizeof(float)))) {
  for (int member = 0; member < threads; ++member) {
    uint8_t* scratch = arena_.data() + program_.arena_row_bytes * limits_.step_tokens;
    scratch_.push_back(reinterpret_cast<float*>(scratch) + member * scratch_floats_);
  }
  for (const Instruction& i : program_.instructions)
    if (i.code == Code::EMBED) ids_ = std::min(ids_, program_.matrices[size_t(i.args[0])].out);
  rows_.reserve(size_t(limits_.step_tokens));
}

// One row of floats, then panels of the widest matrix or what attention needs.
int64_t CpuForward::most_scratch() const {
  int64_t floats = 0;
  for (const Packed& matrix : program_.matrices)
    floats = std::max<int64_t>(floats, int64_t(kPanels) * in_padded(matrix.in) * kTile);
  for (const Instruction& i : program_.instructions) {
    if (i.code != Code::ATTEND) continue;
    const KvSpec& kv = program_.layers[size_t(i.args[1])];
    floats = std::max(floats, attend_scratch(i.args[2] / kv.kv_heads, kv.head_dim));
  }
  return round_up(floats, 16) + row_floats_;
}

int64_t CpuForward::most_part() const {
  int64_t floats = 0;
  for (const Instruction& i : program_.instructions) {
    if (i.code != Code::ATTEND) continue;
    const KvSpec& kv = program_.layers[size_t(i.args[1])];
    floats = std::max(floats, attend_part_floats(1, i.args[2] / kv.kv_heads, kv.head_dim));
  }
  return floats;
}

// A long row is cut into its segments where there are too few rows to keep all members busy.
void CpuForward::plan_attention() {
  const int32_t tiles = int32_t(tiles_.size()), members = threads_.members();
  const bool few = members > 1 && tiles * most_kv_heads_ < 8 * members;
  int32_t slots = 0;
  units_.clear();
  for (int32_t tile = 0; tile < tiles; ++tile) {
    const bool cut = few && tiles_[size_t(tile)].count == 1;
    const int32_t last = rows_[size_t(tiles_[size_t(tile)].row)].position / kSegment;
    if (!cut || last == 0) units_.push_back({tile, 0, 1, 0});
    for (int32_t segment = 0; cut && last > 0 && segment <= last; ++segment)
      units_.push_back({tile, segment, last + 1, slots++});
  }
  const size_t floats = size_t(slots * most_kv_heads_ * part_floats_);
  if (parts_.size() < floats) parts_.resize(floats);
  const size_t counters = slots ? size_t(tiles * most_kv_heads_) : 0;
  if (parts_done_.size() < counters) parts_done_ = std::vector<std::atomic<int32_t>>(counters);
}

void CpuForward::prepare(const Step& step) {
  if (step.tokens > limits_.step_tokens)
    throw std::runtime_error("a step of " + std::to_string(step.tokens) + " tokens, at most " +
                             std::to_string(limits_.step_tokens));
  for (int32_t i = 0; i < step.tokens; ++i)
    if (step.ids[i] < 0 || step.ids[i] >= ids_)
      throw std::runtime_error("token id " + std::to_string(step.ids[i]) + " is outside the table");
  step_ = step;
  rows_.clear();
  tiles_.clear();
  for (int32_t s = 0; s < step.span_count; ++s) {
    const Span& span = step.spans[s];
    for (int32_t i = 0; i < span.count; ++i) {
      if (i % kAttendRows == 0)
        tiles_.push_back({int32_t(rows_.size()), std::min(kAttendRows, span.count - i)});
      rows_.push_back({span.start + i, span.pages});
    }
  }
  if (int32_t(rows_.size()) != step.tokens)
    throw std::runtime_error("the spans of a step do not cover its tokens");
  plan_attention();
  tokens_ = step.tokens;
  outputs_ = step.output_count;
  attends_ = int32_t(units_.size());
}

void CpuForward::run(const Step& step) {
  if (step.tokens == 0) return;
  prepare(step);
  // From here on a member may begin, and not before: one that comes late from the last step still
  // finds the stages of that.
  first_stage_ = next_stage_;
  next_stage_ += uint32_t(program_.instructions.size());
  threads_.run([](void* self, int member) { static_cast<CpuForward*>(self)->execute(member); },
               this);
}

void CpuForward::copy_page(int32_t from, int32_t to) {
  const int64_t bytes = layout_.page_bytes();
  std::memcpy(storage_.data() + to * bytes, storage_.data() + from * bytes, size_t(bytes));
}

void CpuForward::execute(int member) {
  Stages& stages = threads_.stages();
  const uint32_t first = first_stage_.load(), count = uint32_t(program_.instructions.size());
  uint32_t over = 0;  // instructions that are known to be finished
  for (uint32_t i = 0; i < count; ++i) {
    const Instruction& instruction = program_.instructions[i];
    if (instruction.wait || i - over >= Stages::kAtOnce)
      for (; over < i; ++over) stages.wait(first + over);
    const Work work = work_of(instruction);
    const int32_t chunks = work.chunks();
    int32_t done = 0;
    for (int32_t chunk; (chunk = stages.take(first + i, chunks, member)) >= 0; ++done) {
      const int64_t start = chunk * work.grain;
      execute(instruction, {start, std::min(start + work.grain, work.units)}, member);
    }
    if (done) stages.finish(first + i, chunks, done);
  }
  if (member == 0)
    for (; over < count; ++over) stages.wait(first + over);
}

void CpuForward::execute(const Instruction& instruction, Share share, int member) {
  switch (instruction.code) {
    case Code::EMBED: return embed(instruction, share, member);
    case Code::CONVERT: return convert(instruction, share);
    case Code::NORM: return norm(instruction, share, member);
    case Code::MATMUL: return matmul(instruction, share, member);
    case Code::ANGLES: return angles(instruction, share);
    case Code::ROPE: return rope(instruction, share);
    case Code::KEEP: return keep(instruction, share);
    case Code::ATTEND: return attend(instruction, share, member);
    case Code::GATED: return gated(instruction, share, member);
    case Code::UNARY: return unary(instruction, share, member);
    case Code::BINARY: return binary(instruction, share, member);
    case Code::SELECT: return select(instruction, share, member);
  }
}

}  // namespace edgeserve
