// Attention of a few rows of one sequence over its pages, for one head of keys and values.
//
// Online softmax in blocks of 16 absolute positions, in order: one row does the same operations in
// the same order whatever other rows stand beside it, so prefill in any chunking and decode agree
// bitwise. Keys and values are always read back from pages, where they were rounded.
#include "edgeserve/kernels.h"
#include "vec.h"

namespace edgeserve {
namespace ES_ISA {
namespace {

constexpr int kHeads = 4;  // query heads of a row that share registers

struct Query {  // a row and a head: what the softmax has seen so far
  float most;
  float total;
};

// 16 positions of keys and values as floats: keys [dim][16], values [16][dim].
struct Block {
  const float* keys;
  const float* values;
};

inline Block read_block(const Attend& a, int32_t position) {
  const uint8_t* at = a.pages + a.page_ids[position / a.page_tokens] * a.page_stride +
                      a.head_offset + position % a.page_tokens / 16 * a.block_stride;
  const int64_t floats = 16 * int64_t(dim_padded(a.head_dim));
  if (a.kv_f32) return {(const float*)at, (const float*)at + floats};
  float* keys = a.scratch;
  float* values = a.scratch + floats;
  for (int d = 0; d < a.head_dim; d += 2) {
    const I pairs = load_i(at + 32 * d);
    store(keys + 16 * d, bf16_low(pairs));
    store(keys + 16 * d + 16, bf16_high(pairs));
  }
  const uint16_t* from = (const uint16_t*)at + floats;
  for (int i = 0; i < floats; i += kTile) store(values + i, load_bf16(from + i));
  return {keys, values};
}

inline F shape_scores(const Attend& a, F dot, int low, int count) {
  F s = mul(dot, set1(a.scale));
  if (a.soft_cap != 0.0f) s = mul(set1(a.soft_cap), tanh(div(s, set1(a.soft_cap))));
  s = keep_below(s, count, -__builtin_inff());
  return low > 0 ? keep_from(s, low, -__builtin_inff()) : s;
}

// H heads of one row meet the positions [low, count) of a block.
template <int H>
inline void meet(const Attend& a, const Block& block, const float* q, int low, int count,
                 Query* queries, float* outs) {
  const int dim = a.head_dim, padded = dim_padded(dim);
  F even[H], odd[H];
  for (int h = 0; h < H; ++h) even[h] = odd[h] = set1(0.0f);
  for (int d = 0; d < dim; d += 2) {
    const F k0 = load(block.keys + 16 * d), k1 = load(block.keys + 16 * d + 16);
    for (int h = 0; h < H; ++h) {
      even[h] = fma(set1(q[h * dim + d]), k0, even[h]);
      odd[h] = fma(set1(q[h * dim + d + 1]), k1, odd[h]);
    }
  }
  float weights[H][kTile];
  F fade[H];
  for (int h = 0; h < H; ++h) {
    const F s = shape_scores(a, add(even[h], odd[h]), low, count);
    const float before = queries[h].most, here = greatest(s);
    const float most = before > here ? before : here;
    const F p = exp(sub(s, set1(most)));
    fade[h] = exp(set1(before - most));
    float first[kTile];
    store(first, fade[h]);
    queries[h].total = __builtin_fmaf(queries[h].total, first[0], sum(p));
    queries[h].most = most;
    store(weights[h], p);
  }
  for (int v = 0; v < padded; v += kTile) {
    F acc[H];
    for (int h = 0; h < H; ++h) acc[h] = mul(load(outs + h * padded + v), fade[h]);
    for (int j = 0; j < count; ++j) {
      const F value = load(block.values + j * padded + v);
      for (int h = 0; h < H; ++h) acc[h] = fma(set1(weights[h][j]), value, acc[h]);
    }
    for (int h = 0; h < H; ++h) store(outs + h * padded + v, acc[h]);
  }
}

inline int first_position(const Attend& a, int position) {
  return a.window && position >= a.window ? position - a.window + 1 : 0;
}

inline void start(const Attend& a, Query* queries, float* outs) {
  const int padded = dim_padded(a.head_dim);
  for (int i = 0; i < a.rows * a.group; ++i) {
    queries[i].most = a.sinks ? a.sinks[i % a.group] : -__builtin_inff();
    queries[i].total = a.sinks ? 1.0f : 0.0f;
    for (int d = 0; d < padded; d += kTile) store(outs + i * padded + d, set1(0.0f));
  }
}

inline void finish(const Attend& a, const Query* queries, const float* outs) {
  for (int i = 0; i < a.rows * a.group; ++i) {
    float* out = a.out + i / a.group * a.out_stride + i % a.group * a.head_dim;
    const F total = set1(queries[i].total);
    for (int d = 0; d < a.head_dim; d += kTile)
      store_n(out + d, div(load(outs + i * dim_padded(a.head_dim) + d), total),
              least(kTile, a.head_dim - d));
  }
}

}  // namespace

void attend(const Attend& a) {
  const int padded = dim_padded(a.head_dim);
  float* outs = a.scratch + 32 * padded;
  Query* queries = (Query*)(outs + a.rows * a.group * padded);
  start(a, queries, outs);
  const int last = a.first + a.rows - 1;
  for (int base = first_position(a, a.first) / 16 * 16; base <= last; base += 16) {
    const Block block = read_block(a, base);
    for (int r = 0; r < a.rows; ++r) {
      const int position = a.first + r, low = first_position(a, position) - base;
      if (position < base || low >= 16) continue;
      const int count = least(16, position + 1 - base);
      for (int h = 0; h < a.group;) {
        const int i = r * a.group + h, left = a.group - h;
        const float* q = a.q + r * a.q_stride + h * a.head_dim;
        float* out = outs + i * padded;
        if (left >= kHeads) meet<4>(a, block, q, low, count, queries + i, out), h += 4;
        else if (left == 3) meet<3>(a, block, q, low, count, queries + i, out), h += 3;
        else if (left == 2) meet<2>(a, block, q, low, count, queries + i, out), h += 2;
        else meet<1>(a, block, q, low, count, queries + i, out), h += 1;
      }
    }
  }
  finish(a, queries, outs);
}

}  // namespace ES_ISA
}  // namespace edgeserve
