// A compiled network: a flat list of instructions over buffers, weights and pages.
//
// Made by edgeserve/backends/cpu/compile.py, which is the other side of this file: codes and the
// order of arguments must agree. All threads run the list together; `wait` on an instruction means
// that all must have finished what stands before it.
#pragma once

#include <cstdint>
#include <vector>

#include "edgeserve/packed.h"

namespace edgeserve {

// A buffer index of -1 means none; kLogits is the caller's memory. "forms" are three buffers that
// get the same result: f32, QuantBlock, bf16.
constexpr int32_t kLogits = -2;

enum class Code : int32_t {
  EMBED = 0,  // matrix, width, forms; scale
  CONVERT,    // x, width, forms
  NORM,       // layer?, x, residual, sum, weight, bias, width, group, forms; eps, offset
  MATMUL,     // form of x, x, then per part: matrix, bias, out
  ANGLES,     // rope, out
  ROPE,       // x, out, rope, angles, heads, head_dim
  KEEP,       // q, k, v, rope, angles, layer, heads: rotates q and k, writes k and v to pages
  ATTEND,     // q, layer, heads, window, sinks, quantisable?, forms; scale, soft cap
  GATED,      // kind, gate, up, width, forms
  UNARY,      // kind, x, width, forms; number
  BINARY,     // kind, a, b, width, forms
  SELECT,     // x, width, forms: rows whose logits are wanted
};

struct Instruction {
  Code code;
  bool wait;
  bool outputs;  // rows are those of the logits, not the tokens
  std::vector<int32_t> args;
  std::vector<float> numbers;
};

struct Rope {
  std::vector<float> frequencies;  // radians per position of each pair
  float factor;                    // of cos and sin
  bool interleaved;
};

struct BufferSpec {
  int64_t offset;     // in the arena, per row of a step: times the most rows
  int64_t row_bytes;  // a multiple of 64
};

struct KvSpec {
  int32_t kv_heads;
  int32_t head_dim;
};

struct Program {
  std::vector<Packed> matrices;
  std::vector<const float*> vectors;
  std::vector<Rope> ropes;
  std::vector<BufferSpec> buffers;
  int64_t arena_row_bytes;
  std::vector<KvSpec> layers;
  bool kv_f32;
  int32_t vocab;
  std::vector<Instruction> instructions;
};

}  // namespace edgeserve
