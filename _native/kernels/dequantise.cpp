// Packed weights back to float: a tile for the float kernels, a row for the embedding.
#include "edgeserve/kernels.h"
#include "vec.h"

namespace edgeserve {
namespace ES_ISA {
namespace {

struct Group {
  F scale, minimum;
  float zero;
  bool has_minimum;
  // The reference does scale * code, then the minimum, each rounded; scale * code is exact.
  inline F value(F code) const {
    return has_minimum ? fma(code, scale, minimum) : mul(sub(code, set1(zero)), scale);
  }
};

inline F load_scale(const Format& f, const uint8_t* base, int64_t group) {
  return f.wide_scale ? load((const float*)base + group * kTile)
                      : load_f16((const uint16_t*)base + group * kTile);
}

inline Group load_group(const Packed& w, const uint8_t* tile, int64_t group) {
  const Format& f = w.format;
  Group g = {load_scale(f, tile, group), set1(0.0f), float(f.zero), f.minimum != 0};
  if (f.minimum) g.minimum = load_scale(f, tile + scale_bytes(f, w.in), group);
  return g;
}

inline void four(const Group& g, I codes, float* panel) {
  store(panel, g.value(to_f32(byte_of<0>(codes))));
  store(panel + 16, g.value(to_f32(byte_of<1>(codes))));
  store(panel + 32, g.value(to_f32(byte_of<2>(codes))));
  store(panel + 48, g.value(to_f32(byte_of<3>(codes))));
}

void int_tile(const Packed& w, const uint8_t* tile, float* panel) {
  const Format& f = w.format;
  const uint8_t* codes = tile + codes_offset(f, w.in);
  const int width = in_padded(w.in);
  for (int k = 0; k < width; k += 8) {
    const Group g = load_group(w, tile, k / f.group);
    if (f.bits == 4) {
      const I raw = load_i(codes);
      four(g, low_nibbles(raw), panel);
      four(g, high_nibbles(raw), panel + 64);
      codes += 64;
    } else {
      four(g, load_i(codes), panel);
      four(g, load_i(codes + 64), panel + 64);
      codes += 128;
    }
    panel += 128;
  }
}

}  // namespace

void dequantise_tile(const Packed& w, int32_t tile, float* panel) {
  const uint8_t* from = w.data + tile * tile_bytes(w.format, w.in);
  const int width = in_padded(w.in);
  switch (w.format.kind) {
    case Kind::F32:
      for (int k = 0; k < width; ++k) store(panel + 16 * k, load((const float*)from + 16 * k));
      break;
    case Kind::F16:
      for (int k = 0; k < width; ++k) store(panel + 16 * k, load_f16((const uint16_t*)from + 16 * k));
      break;
    case Kind::BF16:
      for (int k = 0; k < width; k += 2) {
        const I pair = load_i(from + 32 * k);
        store(panel + 16 * k, bf16_low(pair));
        store(panel + 16 * k + 16, bf16_high(pair));
      }
      break;
    case Kind::INT: int_tile(w, from, panel); break;
  }
}

namespace {

inline float half(const uint8_t* base, int64_t at) {
  uint16_t lanes[16] = {((const uint16_t*)base)[at]};
  float out[16];
  store(out, load_f16(lanes));
  return out[0];
}

inline uint8_t code_at(const Format& f, const uint8_t* codes, int k, int lane) {
  if (f.bits == 8) return codes[(k / 4) * 64 + lane * 4 + k % 4];
  const uint8_t both = codes[(k / 8) * 64 + lane * 4 + k % 4];
  return k % 8 < 4 ? both & 15 : both >> 4;
}

void int_row(const Packed& w, const uint8_t* tile, int lane, float scale, float* out) {
  const Format& f = w.format;
  const uint8_t* codes = tile + codes_offset(f, w.in);
  const uint8_t* minimums = tile + scale_bytes(f, w.in);
  float d = 0.0f, m = 0.0f;
  for (int k = 0; k < w.in; ++k) {
    if (k % f.group == 0) {
      const int64_t at = int64_t(k / f.group) * kTile + lane;
      d = f.wide_scale ? ((const float*)tile)[at] : half(tile, at);
      if (f.minimum) m = f.wide_scale ? ((const float*)minimums)[at] : half(minimums, at);
    }
    const float code = code_at(f, codes, k, lane);
    out[k] = scale * (f.minimum ? __builtin_fmaf(code, d, m) : (code - float(f.zero)) * d);
  }
}

}  // namespace

void gather(const Packed& w, int32_t row, float scale, float* out) {
  const uint8_t* tile = w.data + row / kTile * tile_bytes(w.format, w.in);
  const int lane = row % kTile;
  switch (w.format.kind) {
    case Kind::F32:
      for (int k = 0; k < w.in; ++k) out[k] = scale * ((const float*)tile)[16 * k + lane];
      break;
    case Kind::F16:
      for (int k = 0; k < w.in; ++k) out[k] = scale * half(tile, 16 * k + lane);
      break;
    case Kind::BF16:
      for (int k = 0; k < w.in; ++k) {
        const uint32_t bits = uint32_t(((const uint16_t*)tile)[(k / 2) * 32 + lane * 2 + k % 2]) << 16;
        float value;
        std::memcpy(&value, &bits, 4);
        out[k] = scale * value;
      }
      break;
    case Kind::INT: int_row(w, tile, lane, scale, out); break;
  }
}

}  // namespace ES_ISA
}  // namespace edgeserve
