// Attention of a few rows of one sequence over its pages, for one head of keys and values.
//
// Online softmax in blocks of 16 absolute positions, in order, afresh in each segment of kSegment
// positions; segments are merged in order. So one row does the same operations whatever other rows
// stand beside it and whether one thread does all segments or many: prefill in any chunking and
// decode agree bitwise. Keys and values are always read back from pages, where they were rounded.
#include "edgeserve/kernels.h"
#include "vec.h"

namespace edgeserve {
namespace ES_ISA {
namespace {

constexpr int kQueries = kMaxRows > 4 ? 6 : 4;  // queries that share what is read of a block
constexpr int kSums = kMaxRows > 4 ? 24 : 6;    // registers of their outputs

struct Query {  // a row and a head: what the softmax has seen so far
  float most;
  float total;
};

// 16 positions of keys and values: keys [dim][16] or in pairs, values [16][dim].
struct Floats {
  const float* keys;
  const float* values;
  inline void two_keys(int d, F* k) const {
    k[0] = load(keys + 16 * d), k[1] = load(keys + 16 * d + 16);
  }
  inline F value(int at) const { return load(values + at); }
};

struct Halves {
  const uint8_t* keys;
  const uint16_t* values;
  inline void two_keys(int d, F* k) const {
    const I pairs = load_i(keys + 32 * d);
    k[0] = bf16_low(pairs), k[1] = bf16_high(pairs);
  }
  inline F value(int at) const { return load_bf16(values + at); }
};

inline const uint8_t* block_at(const Attend& a, int32_t position) {
  return a.pages + a.page_ids[position / a.page_tokens] * a.page_stride + a.head_offset +
         position % a.page_tokens / 16 * a.block_stride;
}

inline Halves halves_at(const Attend& a, const uint8_t* at) {
  return {at, (const uint16_t*)at + 16 * int64_t(dim_padded(a.head_dim))};
}

// As floats in memory, where many queries meet a block.
inline Floats floats_at(const Attend& a, const uint8_t* at) {
  const int64_t floats = 16 * int64_t(dim_padded(a.head_dim));
  if (a.kv_f32) return {(const float*)at, (const float*)at + floats};
  const Halves from = halves_at(a, at);
  float* keys = a.scratch;
  float* values = a.scratch + floats;
  for (int d = 0; d < a.head_dim; d += 2) {
    F k[2];
    from.two_keys(d, k);
    store(keys + 16 * d, k[0]);
    store(keys + 16 * d + 16, k[1]);
  }
  for (int i = 0; i < floats; i += kTile) store(values + i, from.value(i));
  return {keys, values};
}

inline F shape_scores(const Attend& a, F dot, int low, int count) {
  F s = mul(dot, set1(a.scale));
  if (a.soft_cap != 0.0f) s = mul(set1(a.soft_cap), tanh(div(s, set1(a.soft_cap))));
  s = keep_below(s, count, -__builtin_inff());
  return low > 0 ? keep_from(s, low, -__builtin_inff()) : s;
}

// Columns [v, v + 16 V) of H outputs take the values of a block.
template <int H, int V, class Block>
inline void add_values(const float (*weights)[kTile], const F* fade, bool fades, int count,
                       const Block& block, int column, int padded, float* outs) {
  F acc[H][V];
  for (int h = 0; h < H; ++h)
    for (int v = 0; v < V; ++v) {
      acc[h][v] = load(outs + h * padded + v * kTile);
      if (fades) acc[h][v] = mul(acc[h][v], fade[h]);
    }
  for (int j = 0; j < count; ++j) {
    F value[V];
    for (int v = 0; v < V; ++v) value[v] = block.value(j * padded + column + v * kTile);
    for (int h = 0; h < H; ++h) {
      const F weight = set1(weights[h][j]);
      for (int v = 0; v < V; ++v) acc[h][v] = fma(weight, value[v], acc[h][v]);
    }
  }
  for (int h = 0; h < H; ++h)
    for (int v = 0; v < V; ++v) store(outs + h * padded + v * kTile, acc[h][v]);
}

// H queries meet the positions [low, count) of a block.
template <int H, class Block>
inline void meet(const Attend& a, const Block& block, const float* const* q, int low, int count,
                 Query* queries, float* outs) {
  const int dim = a.head_dim, padded = dim_padded(dim);
  F even[H], odd[H];
  for (int h = 0; h < H; ++h) even[h] = odd[h] = set1(0.0f);
  for (int d = 0; d < dim; d += 2) {
    F k[2];
    block.two_keys(d, k);
    for (int h = 0; h < H; ++h) {
      even[h] = fma(set1(q[h][d]), k[0], even[h]);
      odd[h] = fma(set1(q[h][d + 1]), k[1], odd[h]);
    }
  }
  float weights[H][kTile];
  F fade[H];
  bool fades = false;  // where no query saw a larger score than before, all fade by 1
  for (int h = 0; h < H; ++h) {
    const F s = shape_scores(a, add(even[h], odd[h]), low, count);
    const float before = queries[h].most, here = greatest(s);
    const float most = before > here ? before : here;
    const F p = exp(sub(s, set1(most)));
    float first[kTile] = {1.0f};
    fade[h] = set1(1.0f);
    if (before < most) {
      fade[h] = exp(set1(before - most));
      store(first, fade[h]);
      fades = true;
    }
    queries[h].total = __builtin_fmaf(queries[h].total, first[0], sum(p));
    queries[h].most = most;
    store(weights[h], p);
  }
  constexpr int V = kSums / H >= 4 ? 4 : kSums / H >= 2 ? 2 : 1;
  int v = 0;
  for (; v + V * kTile <= padded; v += V * kTile)
    add_values<H, V>(weights, fade, fades, count, block, v, padded, outs + v);
  for (; v < padded; v += kTile)
    add_values<H, 1>(weights, fade, fades, count, block, v, padded, outs + v);
}

inline int first_position(const Attend& a, int position) {
  return a.window && position >= a.window ? position - a.window + 1 : 0;
}

inline void start(const Attend& a, bool sinks, Query* queries, float* outs) {
  const int padded = dim_padded(a.head_dim);
  for (int i = 0; i < a.rows * a.group; ++i) {
    queries[i].most = sinks ? a.sinks[i % a.group] : -__builtin_inff();
    queries[i].total = sinks ? 1.0f : 0.0f;
    for (int d = 0; d < padded; d += kTile) store(outs + i * padded + d, set1(0.0f));
  }
}

inline float exp_of(float x) {
  float lanes[kTile];
  store(lanes, exp(set1(x)));
  return lanes[0];
}

// What queries saw in one segment joins what they saw before.
inline void merge(const Attend& a, const Query* seen, const float* seen_outs, Query* queries,
                  float* outs) {
  const int padded = dim_padded(a.head_dim);
  for (int i = 0; i < a.rows * a.group; ++i) {
    if (seen[i].most == -__builtin_inff()) continue;  // a window begins later
    const float most = queries[i].most > seen[i].most ? queries[i].most : seen[i].most;
    const float old = exp_of(queries[i].most - most), fresh = exp_of(seen[i].most - most);
    queries[i].total = __builtin_fmaf(queries[i].total, old, seen[i].total * fresh);
    queries[i].most = most;
    for (int d = i * padded; d < (i + 1) * padded; d += kTile)
      store(outs + d, fma(load(outs + d), set1(old), mul(load(seen_outs + d), set1(fresh))));
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

// Queries [i, stop), heads of one row after those of another, meet the positions [low, count).
template <class Block>
inline void meet_all(const Attend& a, const Block& block, int i, int stop, int low, int count,
                     Query* queries, float* outs) {
  const int padded = dim_padded(a.head_dim);
  while (i < stop) {
    const int n = least(kQueries, stop - i);
    const float* q[kQueries];
    for (int h = 0; h < n; ++h)
      q[h] = a.q + (i + h) / a.group * a.q_stride + (i + h) % a.group * a.head_dim;
    Query* seen = queries + i;
    float* out = outs + i * padded;
    if (n >= kQueries) meet<kQueries>(a, block, q, low, count, seen, out), i += kQueries;
    else if (n >= 4) meet<4>(a, block, q, low, count, seen, out), i += 4;
    else if (n == 3) meet<3>(a, block, q, low, count, seen, out), i += 3;
    else if (n == 2) meet<2>(a, block, q, low, count, seen, out), i += 2;
    else meet<1>(a, block, q, low, count, seen, out), i += 1;
  }
}

// All rows meet what they see of the 16 positions from base on.
template <class Block>
inline void meet_block(const Attend& a, const Block& block, int base, Query* queries, float* outs) {
  for (int r = 0, next; r < a.rows; r = next) {
    const int position = a.first + r, low = first_position(a, position) - base;
    next = r + 1;
    if (position < base || low >= 16) continue;
    const int count = least(16, position + 1 - base);
    // Rows that see the whole block go together.
    if (low <= 0 && count == 16)
      while (next < a.rows && first_position(a, a.first + next) <= base) ++next;
    meet_all(a, block, r * a.group, next * a.group, low, count, queries, outs);
  }
}

// All rows meet what they see of the positions of one segment.
inline void walk(const Attend& a, int segment, Query* queries, float* outs) {
  start(a, false, queries, outs);
  const bool few = a.rows * a.group <= kQueries;
  const int first = first_position(a, a.first) / 16 * 16, last = a.first + a.rows - 1;
  const int from = segment * kSegment > first ? segment * kSegment : first;
  for (int base = from; base <= least(last, (segment + 1) * kSegment - 1); base += 16) {
    const uint8_t* at = block_at(a, base);
    // PERF: each block lies elsewhere, so the chip's own prefetcher cannot know the next one.
    if (few && base + 16 <= last) {
      const uint8_t* next = block_at(a, base + 16);
      for (int64_t line = 0; line < a.block_stride; line += 64) prefetch(next + line);
    }
    if (few && !a.kv_f32) meet_block(a, halves_at(a, at), base, queries, outs);
    else meet_block(a, floats_at(a, at), base, queries, outs);
  }
}

inline Query* queries_of(const Attend& a, float* part) {
  return (Query*)(part + a.rows * a.group * dim_padded(a.head_dim));
}

}  // namespace

void attend_part(const Attend& a, int32_t segment, float* part) {
  walk(a, segment, queries_of(a, part), part);
}

void attend_merge(const Attend& a, float* parts, int64_t stride, int32_t count) {
  float* whole = a.scratch;
  start(a, a.sinks, queries_of(a, whole), whole);
  for (int i = 0; i < count; ++i) {
    float* part = parts + i * stride;
    merge(a, queries_of(a, part), part, queries_of(a, whole), whole);
  }
  finish(a, queries_of(a, whole), whole);
}

void attend(const Attend& a) {
  float* whole = a.scratch + 32 * dim_padded(a.head_dim);
  float* part = whole + attend_part_floats(a.rows, a.group, a.head_dim);
  start(a, a.sinks, queries_of(a, whole), whole);
  const int last = (a.first + a.rows - 1) / kSegment;
  for (int segment = first_position(a, a.first) / kSegment; segment <= last; ++segment) {
    walk(a, segment, queries_of(a, part), part);
    merge(a, queries_of(a, part), part, queries_of(a, whole), whole);
  }
  finish(a, queries_of(a, whole), whole);
}

}  // namespace ES_ISA
}  // namespace edgeserve
