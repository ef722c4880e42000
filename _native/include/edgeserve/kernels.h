// The kernels of the CPU backend: one table of functions per instruction set.
//
// Kernels trust their arguments and know nothing of threads: who calls gives the range of tiles,
// rows or heads to compute. A row's result never depends on which other rows are computed with it.
#pragma once

#include <cstdint>

#include "edgeserve/packed.h"

namespace edgeserve {

// One linear layer over some rows: out[r, n] = sum over k of x[r, k] * w[n, k], plus bias[n].
struct Matmul {
  const Packed* weight;
  const float* bias;    // [out] or null
  const void* x;        // [rows] of f32, bf16 or QuantBlock, as the kernel wants
  int64_t x_stride;     // elements (floats, halves, blocks) between rows
  float* out;
  int64_t out_stride;   // floats between rows
  int32_t rows;
  float* scratch;       // of this thread: kPanels * in_padded * 16 floats
};
constexpr int32_t kPanels = 4;  // tiles that a float kernel works on at a time

enum class Unary : int32_t { SILU = 0, GELU, GELU_TANH, RELU, RELU2, SCALE, SOFT_CAP };
enum class Binary : int32_t { ADD = 0, MULTIPLY };

struct Norm {
  const float* weight;  // [width]
  const float* bias;    // [width] or null; layer norm only
  int32_t width;
  float eps;
  float offset;         // added to weight
};

// Keys and values of 16 positions of one head, as they lie in a page:
//   keys    bf16 [dim / 2][16][2]  or f32 [dim][16]: a register holds one dim (pair) of all positions
//   values  [16][dim]
// where dim is head_dim filled up to a multiple of 16 (dim_padded).
struct Attend {
  const float* q;           // [rows, q_stride]; heads of one kv head stand beside each other
  int64_t q_stride;
  float* out;               // [rows, out_stride]
  int64_t out_stride;
  int32_t rows;             // consecutive positions of one sequence
  int32_t first;            // position of the first row
  int32_t group;            // query heads of this kv head
  int32_t head_dim;         // even
  const uint8_t* pages;     // storage of all pages
  const int32_t* page_ids;  // of the sequence
  int64_t page_stride;      // bytes between pages
  int64_t head_offset;      // bytes from a page to this layer's and head's first block
  int64_t block_stride;     // bytes between blocks of 16 positions in a page
  int32_t page_tokens;      // a multiple of 16
  bool kv_f32;
  float scale;
  float soft_cap;           // 0: none
  int32_t window;           // 0: none
  const float* sinks;       // [group] or null
  float* scratch;           // of this thread: attend_scratch() floats
};
constexpr int32_t kAttendRows = 8;  // rows of a tile that share the reading of a page

static inline int32_t dim_padded(int32_t head_dim) { return int32_t(round_up(head_dim, 16)); }
constexpr int32_t kSegment = 512;   // positions that a softmax runs over before it is merged

// Per query its output and what the softmax has seen.
static inline int64_t attend_part_floats(int32_t rows, int32_t group, int32_t head_dim) {
  return round_up(int64_t(rows) * group * (dim_padded(head_dim) + 2), 16);
}
// The keys and values of a block, then the queries as a whole and those of a segment.
static inline int64_t attend_scratch(int32_t group, int32_t head_dim) {
  return 32 * dim_padded(head_dim) + 2 * attend_part_floats(kAttendRows, group, head_dim);
}

struct Kernels {
  const char* isa;
  void (*matmul_int8)(const Matmul&, int32_t tile_start, int32_t tile_stop);  // x: QuantBlock
  void (*matmul_bf16)(const Matmul&, int32_t tile_start, int32_t tile_stop);  // x: bf16, w: bf16
  void (*matmul_f32)(const Matmul&, int32_t tile_start, int32_t tile_stop);   // x: f32, w: any
  void (*dequantise_tile)(const Packed&, int32_t tile, float* panel);  // panel [in_padded][16]
  void (*gather)(const Packed&, int32_t row, float scale, float* out);  // one row of a matrix

  void (*quantise)(const float* x, int32_t width, QuantBlock* out);
  void (*to_bf16)(const float* x, int32_t width, uint16_t* out);  // fills up to in_padded with 0
  void (*rms_norm)(const Norm&, const float* x, float* out);
  void (*layer_norm)(const Norm&, const float* x, float* out);
  void (*unary)(Unary, float number, const float* x, int32_t width, float* out);
  void (*binary)(Binary, const float* a, const float* b, int32_t width, float* out);
  void (*gated)(Unary, const float* gate, const float* up, int32_t width, float* out);
  // angles: [rotary] = cos then sin of rotary / 2 pairs
  void (*rope)(const float* x, const float* angles, int32_t head_dim, int32_t rotary,
               bool interleaved, float* out);
  void (*store_key)(const float* key, int32_t head_dim, int32_t slot, bool f32, uint8_t* block);
  void (*store_value)(const float* value, int32_t head_dim, int32_t slot, bool f32, uint8_t* block);
  void (*attend)(const Attend&);
  // The same in parts: each segment of positions [segment * kSegment, ...) into a part of its own of
  // attend_part_floats(), then parts of `count` segments from the first on, `stride` floats apart.
  void (*attend_part)(const Attend&, int32_t segment, float* part);
  void (*attend_merge)(const Attend&, float* parts, int64_t stride, int32_t count);
};

// The best table this chip can run, or the named one. Throws std::runtime_error with the choices
// when the name is unknown or the chip lacks it.
const Kernels& kernels(const char* isa = nullptr);
// Names of the tables this chip can run, best first.
int32_t available_isas(const char** names, int32_t most);

}  // namespace edgeserve
