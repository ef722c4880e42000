// The instructions of a program: each takes a member's share of rows, tiles or heads and calls the
// kernels. Arguments are documented at Code in program.h.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "edgeserve/cpu_forward.h"

namespace edgeserve {
namespace {

constexpr int32_t kPiece = 256;  // columns of a row that one member takes; a multiple of 32

}  // namespace

// Chunks are small where threads may take each other's, large enough that taking one costs nothing.
CpuForward::Work CpuForward::work_of(const Instruction& i) const {
  const auto pieces = [&](int32_t width) { return rows(i) * ceil_div(width, kPiece); };
  const auto cut = [&](int64_t units, int64_t chunks, int64_t step) {
    const int64_t least = ceil_div(units, chunks * threads_.members());
    return Work{units, round_up(std::max<int64_t>(least, 1), step)};
  };
  switch (i.code) {
    case Code::MATMUL: {
      int64_t tiles = 0;
      for (size_t part = 2; part < i.args.size(); part += 3)
        tiles += tiles_of(program_.matrices[size_t(i.args[part])].out);
      return cut(rows(i) ? tiles : 0, 16, i.args[0] == 1 ? 2 : kPanels);
    }
    case Code::ANGLES:
      return cut(tokens_ * int64_t(program_.ropes[size_t(i.args[0])].frequencies.size()), 4, 8);
    case Code::ROPE: return cut(int64_t(tokens_) * i.args[4], 4, 1);
    case Code::KEEP: {
      const int32_t queries = i.args[3] < 0 ? 0 : i.args[6];  // to rotate
      const int32_t heads = queries + program_.layers[size_t(i.args[5])].kv_heads;
      return cut(int64_t(tokens_) * heads, 4, 1);
    }
    case Code::ATTEND:
      return cut(int64_t(attends_) * program_.layers[size_t(i.args[1])].kv_heads, 64, 1);
    case Code::EMBED:
    case Code::NORM: return cut(rows(i), 8, 1);
    case Code::SELECT:
    case Code::CONVERT: return cut(pieces(i.args[1]), 8, 1);
    case Code::UNARY: return cut(pieces(i.args[2]), 8, 1);
    case Code::GATED:
    case Code::BINARY: return cut(pieces(i.args[3]), 8, 1);
  }
  return {0, 1};
}

template <class T>
T* CpuForward::buffer(int32_t index, int64_t row) const {
  if (index == kLogits) return reinterpret_cast<T*>(step_.logits + row * program_.vocab);
  const BufferSpec& spec = program_.buffers[size_t(index)];
  return reinterpret_cast<T*>(arena_.data() + spec.offset * limits_.step_tokens +
                              row * spec.row_bytes);
}

float* CpuForward::floats(int32_t index, int64_t row) const { return buffer<float>(index, row); }

void CpuForward::emit(const int32_t* forms, int64_t row, int32_t at, int32_t width,
                      const float* x) {
  if (forms[1] >= 0) kernels_.quantise(x, width, buffer<QuantBlock>(forms[1], row) + at / kBlock);
  if (forms[2] >= 0) kernels_.to_bf16(x, width, buffer<uint16_t>(forms[2], row) + at);
}

// fn(row, column, width, out) for a share of the pieces of all rows.
template <class Fn>
void CpuForward::pieces(Share share, int member, int32_t width, const int32_t* forms, Fn fn) {
  const int64_t per_row = ceil_div(width, kPiece);
  for (int64_t piece = share.start; piece < share.stop; ++piece) {
    const int64_t row = piece / per_row;
    const int32_t at = int32_t(piece % per_row) * kPiece, n = std::min(kPiece, width - at);
    float* out = forms[0] == -1 ? row_scratch(member) : floats(forms[0], row) + at;
    fn(row, at, n, out);
    emit(forms, row, at, n, out);
  }
}

void CpuForward::embed(const Instruction& i, Share share, int member) {
  const Packed& matrix = program_.matrices[size_t(i.args[0])];
  const int32_t* forms = &i.args[2];
  for (int64_t row = share.start; row < share.stop; ++row) {
    float* out = forms[0] < 0 ? row_scratch(member) : floats(forms[0], row);
    kernels_.gather(matrix, step_.ids[row], i.numbers[0], out);
    emit(forms, row, 0, i.args[1], out);
  }
}

void CpuForward::convert(const Instruction& i, Share share) {
  const int32_t *forms = &i.args[2], width = i.args[1];
  const int64_t per_row = ceil_div(width, kPiece);
  for (int64_t piece = share.start; piece < share.stop; ++piece) {
    const int32_t at = int32_t(piece % per_row) * kPiece;
    const float* x = floats(i.args[0], piece / per_row) + at;
    emit(forms, piece / per_row, at, std::min(kPiece, width - at), x);
  }
}

void CpuForward::norm(const Instruction& i, Share share, int member) {
  const int32_t width = i.args[6], group = i.args[7], *forms = &i.args[8];
  const bool layer = i.args[0] != 0;
  const float* bias = i.args[5] < 0 ? nullptr : program_.vectors[size_t(i.args[5])];
  const Norm norm = {program_.vectors[size_t(i.args[4])], bias, group, i.numbers[0], i.numbers[1]};
  for (int64_t row = share.start; row < share.stop; ++row) {
    const float* x = floats(i.args[1], row);
    if (i.args[2] >= 0) {
      float* sum = floats(i.args[3], row);
      kernels_.binary(Binary::ADD, floats(i.args[2], row), x, width, sum);
      x = sum;
    }
    float* out = forms[0] < 0 ? row_scratch(member) : floats(forms[0], row);
    for (int32_t at = 0; at < width; at += group)
      (layer ? kernels_.layer_norm : kernels_.rms_norm)(norm, x + at, out + at);
    emit(forms, row, 0, width, out);
  }
}

// The parts' tiles count as one row of tiles, cut at the same places at every step.
void CpuForward::matmul(const Instruction& i, Share share, int member) {
  const int32_t form = i.args[0], x = i.args[1];
  int64_t first = 0;
  for (size_t part = 2; part < i.args.size(); part += 3) {
    const Packed& weight = program_.matrices[size_t(i.args[part])];
    const int32_t bias = i.args[part + 1], out = i.args[part + 2];
    const int64_t count = tiles_of(weight.out);
    const int64_t start = std::max<int64_t>(share.start - first, 0);
    const int64_t stop = std::min(share.stop - first, count);
    first += count;
    if (start >= stop) continue;
    const int64_t sizes[] = {sizeof(float), sizeof(QuantBlock), sizeof(uint16_t)};
    Matmul job = {};
    job.weight = &weight;
    job.bias = bias < 0 ? nullptr : program_.vectors[size_t(bias)];
    job.x = buffer<uint8_t>(x, 0);
    job.x_stride = program_.buffers[size_t(x)].row_bytes / sizes[form];
    job.out = floats(out, 0);
    job.out_stride = out == kLogits ? program_.vocab
                                    : program_.buffers[size_t(out)].row_bytes / sizes[0];
    job.rows = rows(i);
    job.scratch = scratch(member);
    const auto kernel = form == 0 ? kernels_.matmul_f32
                      : form == 1 ? kernels_.matmul_int8 : kernels_.matmul_bf16;
    kernel(job, int32_t(start), int32_t(stop));
  }
}

// The product of position and frequency is rounded to f32, as the checkpoints' own code does.
void CpuForward::angles(const Instruction& i, Share share) {
  const Rope& rope = program_.ropes[size_t(i.args[0])];
  const size_t pairs = rope.frequencies.size();
  for (int64_t item = share.start; item < share.stop; ++item) {
    const int64_t row = item / int64_t(pairs), pair = item % int64_t(pairs);
    const float angle = float(rows_[size_t(row)].position) * rope.frequencies[size_t(pair)];
    float* out = floats(i.args[1], row);
    out[pair] = float(std::cos(double(angle))) * rope.factor;
    out[pair + int64_t(pairs)] = float(std::sin(double(angle))) * rope.factor;
  }
}

void CpuForward::rope(const Instruction& i, Share share) {
  const Rope& rope = program_.ropes[size_t(i.args[2])];
  const int32_t heads = i.args[4], dim = i.args[5], rotary = int32_t(rope.frequencies.size()) * 2;
  for (int64_t item = share.start; item < share.stop; ++item) {
    const int64_t row = item / heads, at = item % heads * dim;
    kernels_.rope(floats(i.args[0], row) + at, floats(i.args[3], row), dim, rotary,
                  rope.interleaved, floats(i.args[1], row) + at);
  }
}

uint8_t* CpuForward::block(int32_t row, int32_t layer, int32_t head) const {
  const Row& at = rows_[size_t(row)];
  const int32_t slot = at.position % limits_.page_tokens;
  return storage_.data() + at.pages[at.position / limits_.page_tokens] * layout_.page_bytes() +
         layout_.head_offset(layer, head) + slot / 16 * layout_.block_bytes(layer);
}

void CpuForward::keep(const Instruction& i, Share share) {
  const KvSpec& kv = program_.layers[size_t(i.args[5])];
  const int32_t heads = (i.args[3] < 0 ? 0 : i.args[6]) + kv.kv_heads;  // query heads to rotate
  for (int64_t item = share.start; item < share.stop; ++item)
    keep_head(i, int32_t(item / heads), int32_t(item % heads));
}

// Head of keys and values, or, after those, a query head.
void CpuForward::keep_head(const Instruction& i, int32_t row, int32_t head) {
  const int32_t layer = i.args[5];
  const KvSpec& kv = program_.layers[size_t(layer)];
  const int32_t dim = kv.head_dim;
  const bool query = head >= kv.kv_heads;
  float* x = floats(i.args[query ? 0 : 1], row) + (query ? head - kv.kv_heads : head) * dim;
  if (i.args[3] >= 0) {
    const Rope& rope = program_.ropes[size_t(i.args[3])];
    kernels_.rope(x, floats(i.args[4], row), dim, int32_t(rope.frequencies.size()) * 2,
                  rope.interleaved, x);
  }
  if (query) return;
  uint8_t* keys = block(row, layer, head);
  uint8_t* values = keys + layout_.block_bytes(layer) / 2;
  const int32_t slot = rows_[size_t(row)].position % 16;
  kernels_.store_key(x, dim, slot, program_.kv_f32, keys);
  kernels_.store_value(floats(i.args[2], row) + head * dim, dim, slot, program_.kv_f32, values);
}

void CpuForward::attend(const Instruction& i, Share share, int member) {
  const int64_t units = int64_t(units_.size());
  for (int64_t item = share.start; item < share.stop; ++item)
    attend_unit(i, member, units_[size_t(item % units)], int32_t(item / units));
}

void CpuForward::attend_unit(const Instruction& i, int member, const Unit& unit, int32_t kv_head) {
  const Tile tile = tiles_[size_t(unit.tile)];
  const Attend job = attend_job(i, member, tile, kv_head);
  if (unit.segments == 1) {
    kernels_.attend(job);
  } else {
    const int64_t stride = most_kv_heads_ * part_floats_;
    float* parts = parts_.data() + (unit.slot - unit.segment) * stride + kv_head * part_floats_;
    kernels_.attend_part(job, unit.segment, parts + unit.segment * stride);
    // Who is last merges, in the order of segments.
    std::atomic<int32_t>& done = parts_done_[size_t(unit.tile * most_kv_heads_ + kv_head)];
    if (done.fetch_add(1) + 1 < unit.segments) return;
    done = 0;
    kernels_.attend_merge(job, parts, stride, unit.segments);
  }
  const int32_t* forms = &i.args[6];
  for (int32_t r = 0; r < tile.count; ++r)
    emit(forms, tile.row + r, kv_head * job.group * job.head_dim, job.group * job.head_dim,
         job.out + r * job.out_stride);
}

Attend CpuForward::attend_job(const Instruction& i, int member, Tile tile, int32_t kv_head) {
  const int32_t layer = i.args[1], *forms = &i.args[6];
  const KvSpec& kv = program_.layers[size_t(layer)];
  const int32_t group = i.args[2] / kv.kv_heads, width = group * kv.head_dim;
  const Row& first = rows_[size_t(tile.row)];
  Attend job = {};
  job.q = floats(i.args[0], tile.row) + kv_head * width;
  job.q_stride = program_.buffers[size_t(i.args[0])].row_bytes / int64_t(sizeof(float));
  job.out = floats(forms[0], tile.row) + kv_head * width;
  job.out_stride = program_.buffers[size_t(forms[0])].row_bytes / int64_t(sizeof(float));
  job.rows = tile.count;
  job.first = first.position;
  job.group = group;
  job.head_dim = kv.head_dim;
  job.pages = storage_.data();
  job.page_ids = first.pages;
  job.page_stride = layout_.page_bytes();
  job.head_offset = layout_.head_offset(layer, kv_head);
  job.block_stride = layout_.block_bytes(layer);
  job.page_tokens = limits_.page_tokens;
  job.kv_f32 = program_.kv_f32;
  job.scale = i.numbers[0];
  job.soft_cap = i.numbers[1];
  job.window = i.args[3];
  job.sinks = i.args[4] < 0 ? nullptr : program_.vectors[size_t(i.args[4])] + kv_head * group;
  job.scratch = scratch(member);
  return job;
}

void CpuForward::gated(const Instruction& i, Share share, int member) {
  const Unary kind = Unary(i.args[0]);
  pieces(share, member, i.args[3], &i.args[4], [&](int64_t row, int32_t at, int32_t n, float* out) {
    kernels_.gated(kind, floats(i.args[1], row) + at, floats(i.args[2], row) + at, n, out);
  });
}

void CpuForward::unary(const Instruction& i, Share share, int member) {
  const Unary kind = Unary(i.args[0]);
  pieces(share, member, i.args[2], &i.args[3], [&](int64_t row, int32_t at, int32_t n, float* out) {
    kernels_.unary(kind, i.numbers[0], floats(i.args[1], row) + at, n, out);
  });
}

void CpuForward::binary(const Instruction& i, Share share, int member) {
  const Binary kind = Binary(i.args[0]);
  pieces(share, member, i.args[3], &i.args[4], [&](int64_t row, int32_t at, int32_t n, float* out) {
    kernels_.binary(kind, floats(i.args[1], row) + at, floats(i.args[2], row) + at, n, out);
  });
}

void CpuForward::select(const Instruction& i, Share share, int member) {
  pieces(share, member, i.args[1], &i.args[2], [&](int64_t row, int32_t at, int32_t n, float* out) {
    std::memcpy(out, floats(i.args[0], step_.outputs[row]) + at, size_t(n) * sizeof(float));
  });
}

}  // namespace edgeserve
