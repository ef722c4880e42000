// Everything that is done row by row: quantising, norms, activations, rotary embedding.
#include "edgeserve/kernels.h"
#include "vec.h"

namespace edgeserve {
namespace ES_ISA {
namespace {

inline F load_some(const float* p, int n) { return n == kTile ? load(p) : load_n(p, n); }
inline void store_some(float* p, F a, int n) { n == kTile ? store(p, a) : store_n(p, a, n); }

// fn(i, lanes) for each register of a row; lanes is 16 but for the last.
template <class Fn>
inline void each(int width, Fn fn) {
  for (int i = 0; i < width; i += kTile) fn(i, least(kTile, width - i));
}

inline void quantise_block(const float* x, int lanes, QuantBlock* out) {
  const F a = lanes >= 16 ? load(x) : load_n(x, lanes);
  const F b = lanes >= 32 ? load(x + 16) : lanes > 16 ? load_n(x + 16, lanes - 16) : set1(0.0f);
  const float most = greatest(max(abs(a), abs(b)));
  const float scale = most / 127.0f;
  const F inverse = set1(most > 0.0f ? 127.0f / most : 0.0f);
  const I low = round_i(mul(a, inverse)), high = round_i(mul(b, inverse));
  store_i8(out->codes, low);
  store_i8(out->codes + 16, high);
  const int32_t sum_low = sum_i(low), sum_high = sum_i(high);
  out->scale = scale;
  out->minus_sum = -(sum_low + sum_high);
  out->minus_sum_low = -sum_low;
  out->minus_sum_high = -sum_high;
  out->sum = scale * float(sum_low + sum_high);
  out->sum_low = scale * float(sum_low);
  out->sum_high = scale * float(sum_high);
}

// scale and soft cap carry a number; it is 0 otherwise
template <Unary U>
inline F apply(F x, float number) {
  switch (U) {
    case Unary::SILU: return mul(x, sigmoid(x));
    case Unary::GELU: {
      float lanes[kTile];
      store(lanes, x);
      for (int i = 0; i < kTile; ++i)
        lanes[i] = 0.5f * lanes[i] * (1.0f + __builtin_erff(lanes[i] * 0.70710678118654752f));
      return load(lanes);
    }
    case Unary::GELU_TANH: {
      const F cube = mul(mul(x, x), x);
      const F inner = mul(fma(set1(0.044715f), cube, x), set1(0.79788456080286536f));
      return mul(mul(set1(0.5f), x), add(set1(1.0f), tanh(inner)));
    }
    case Unary::RELU: return max(x, set1(0.0f));
    case Unary::RELU2: {
      const F positive = max(x, set1(0.0f));
      return mul(positive, positive);
    }
    case Unary::SCALE: return mul(x, set1(number));
    default: return mul(set1(number), tanh(div(x, set1(number))));
  }
}

template <Unary U>
inline void unary_row(float number, const float* x, int width, float* out) {
  each(width, [=](int i, int n) { store_some(out + i, apply<U>(load_some(x + i, n), number), n); });
}

template <Unary U>
inline void gated_row(const float* gate, const float* up, int width, float* out) {
  each(width, [=](int i, int n) {
    store_some(out + i, mul(apply<U>(load_some(gate + i, n), 0.0f), load_some(up + i, n)), n);
  });
}

}  // namespace

void quantise(const float* x, int32_t width, QuantBlock* out) {
  for (int i = 0; i < width; i += kBlock) quantise_block(x + i, least(kBlock, width - i), out++);
}

void to_bf16(const float* x, int32_t width, uint16_t* out) {
  const int padded = in_padded(width);
  for (int i = 0; i < padded; i += kTile) {
    const int n = width - i;
    store_bf16(out + i, n >= kTile ? load(x + i) : n > 0 ? load_n(x + i, n) : set1(0.0f));
  }
}

void rms_norm(const Norm& norm, const float* x, float* out) {
  F squares = set1(0.0f);
  each(norm.width, [&](int i, int n) {
    const F v = load_some(x + i, n);
    squares = fma(v, v, squares);
  });
  const F mean = set1(sum(squares) / float(norm.width) + norm.eps);
  const F inverse = div(set1(1.0f), sqrt(mean));
  each(norm.width, [&](int i, int n) {
    const F weight = add(load_some(norm.weight + i, n), set1(norm.offset));
    store_some(out + i, mul(mul(load_some(x + i, n), inverse), weight), n);
  });
}

void layer_norm(const Norm& norm, const float* x, float* out) {
  F total = set1(0.0f);
  each(norm.width, [&](int i, int n) { total = add(total, load_some(x + i, n)); });
  const F mean = set1(sum(total) / float(norm.width));
  F squares = set1(0.0f);
  each(norm.width, [&](int i, int n) {
    const F v = keep_below(sub(load_some(x + i, n), mean), n, 0.0f);
    squares = fma(v, v, squares);
  });
  const F variance = set1(sum(squares) / float(norm.width) + norm.eps);
  const F inverse = div(set1(1.0f), sqrt(variance));
  each(norm.width, [&](int i, int n) {
    const F weight = add(load_some(norm.weight + i, n), set1(norm.offset));
    const F bias = norm.bias ? load_some(norm.bias + i, n) : set1(0.0f);
    store_some(out + i, fma(mul(sub(load_some(x + i, n), mean), inverse), weight, bias), n);
  });
}

void unary(Unary kind, float number, const float* x, int32_t width, float* out) {
  switch (kind) {
    case Unary::SILU: return unary_row<Unary::SILU>(number, x, width, out);
    case Unary::GELU: return unary_row<Unary::GELU>(number, x, width, out);
    case Unary::GELU_TANH: return unary_row<Unary::GELU_TANH>(number, x, width, out);
    case Unary::RELU: return unary_row<Unary::RELU>(number, x, width, out);
    case Unary::RELU2: return unary_row<Unary::RELU2>(number, x, width, out);
    case Unary::SCALE: return unary_row<Unary::SCALE>(number, x, width, out);
    case Unary::SOFT_CAP: return unary_row<Unary::SOFT_CAP>(number, x, width, out);
  }
}

void gated(Unary kind, const float* gate, const float* up, int32_t width, float* out) {
  switch (kind) {
    case Unary::GELU: return gated_row<Unary::GELU>(gate, up, width, out);
    case Unary::GELU_TANH: return gated_row<Unary::GELU_TANH>(gate, up, width, out);
    case Unary::RELU: return gated_row<Unary::RELU>(gate, up, width, out);
    case Unary::RELU2: return gated_row<Unary::RELU2>(gate, up, width, out);
    default: return gated_row<Unary::SILU>(gate, up, width, out);
  }
}

void binary(Binary kind, const float* a, const float* b, int32_t width, float* out) {
  if (kind == Binary::ADD) {
    each(width, [=](int i, int n) {
      store_some(out + i, add(load_some(a + i, n), load_some(b + i, n)), n);
    });
  } else {
    each(width, [=](int i, int n) {
      store_some(out + i, mul(load_some(a + i, n), load_some(b + i, n)), n);
    });
  }
}

// One head. Each product is rounded, as a reference without fused multiply-add does.
void rope(const float* x, const float* angles, int32_t head_dim, int32_t rotary, bool interleaved,
          float* out) {
  const int half = rotary / 2;
  const float* cosines = angles;
  const float* sines = angles + half;
  if (interleaved) {
    for (int i = 0; i < half; ++i) {
      const float a = x[2 * i], b = x[2 * i + 1];
      out[2 * i] = a * cosines[i] - b * sines[i];
      out[2 * i + 1] = b * cosines[i] + a * sines[i];
    }
  } else {
    each(half, [=](int i, int n) {
      const F a = load_some(x + i, n), b = load_some(x + half + i, n);
      const F c = load_some(cosines + i, n), s = load_some(sines + i, n);
      store_some(out + i, sub(mul(a, c), mul(b, s)), n);
      store_some(out + half + i, add(mul(b, c), mul(a, s)), n);
    });
  }
  for (int i = rotary; i < head_dim; ++i) out[i] = x[i];
}

void store_key(const float* key, int32_t head_dim, int32_t slot, bool f32, uint8_t* block) {
  if (f32) {
    for (int d = 0; d < head_dim; ++d) ((float*)block)[16 * d + slot] = key[d];
    return;
  }
  for (int d = 0; d < head_dim; d += kTile) {
    uint16_t rounded[kTile];
    const int lanes = least(kTile, head_dim - d);
    store_bf16(rounded, load_some(key + d, lanes));
    for (int i = 0; i < lanes; i += 2)
      std::memcpy((uint16_t*)block + (d + i) * 16 + slot * 2, rounded + i, 4);
  }
}

void store_value(const float* value, int32_t head_dim, int32_t slot, bool f32, uint8_t* block) {
  const int64_t row = int64_t(slot) * dim_padded(head_dim);
  for (int d = 0; d < head_dim; d += kTile) {
    const F some = load_some(value + d, least(kTile, head_dim - d));
    if (f32) store((float*)block + row + d, some);
    else store_bf16((uint16_t*)block + row + d, some);
  }
}

}  // namespace ES_ISA
}  // namespace edgeserve
