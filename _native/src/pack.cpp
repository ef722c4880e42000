#include "edgeserve/pack.h"

#include <cstring>
#include <stdexcept>
#include <thread>
#include <vector>

namespace edgeserve {
namespace {

// One stored row, taken apart: codes, and scales and minimums as the bits of their packed type.
struct Row {
  std::vector<uint8_t> codes;
  std::vector<uint32_t> scales, minimums;
};

uint16_t u16(const uint8_t* p) {
  uint16_t x;
  std::memcpy(&x, p, 2);
  return x;
}

float to_float(uint16_t half) {
  const int exponent = half >> 10 & 31, fraction = half & 1023;
  float x;
  if (exponent == 0) {
    x = float(fraction) * 5.9604644775390625e-08f;
    return half & 0x8000 ? -x : x;
  }
  const uint32_t wide = exponent == 31 ? 255 : uint32_t(exponent + 112);
  const uint32_t bits = uint32_t(half & 0x8000) << 16 | wide << 23 | uint32_t(fraction) << 13;
  std::memcpy(&x, &bits, 4);
  return x;
}

uint32_t bits_of(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  return bits;
}

// Blocks of 32 with an f16 scale, perhaps an f16 minimum, perhaps a fifth bit. GGUF keeps code i and
// code i + 16 in the low and high half of a byte.
template <bool Minimum, bool Fifth>
void read_nibbles(const uint8_t* from, int32_t in, Row& row) {
  for (int b = 0; b < in / 32; ++b) {
    row.scales[b] = u16(from);
    from += 2;
    if (Minimum) {
      row.minimums[b] = u16(from);
      from += 2;
    }
    uint32_t fifth = 0;
    if (Fifth) {
      std::memcpy(&fifth, from, 4);
      from += 4;
    }
    uint8_t* codes = row.codes.data() + 32 * b;
    for (int i = 0; i < 16; ++i) {
      codes[i] = uint8_t((from[i] & 15) | (Fifth ? (fifth >> i & 1) << 4 : 0));
      codes[i + 16] = uint8_t((from[i] >> 4) | (Fifth ? (fifth >> (i + 16) & 1) << 4 : 0));
    }
    from += 16;
  }
}

void read_q8_0(const uint8_t* from, int32_t in, Row& row) {
  for (int b = 0; b < in / 32; ++b, from += 34) {
    row.scales[b] = u16(from);
    for (int i = 0; i < 32; ++i) row.codes[32 * b + i] = uint8_t(from[2 + i] ^ 0x80);
  }
}

// Superblocks of 256: f16 d and dmin, 8 scales and minimums of 6 bits, 128 bytes of nibbles.
void read_q4_k(const uint8_t* from, int32_t in, Row& row) {
  for (int b = 0; b < in / 256; ++b, from += 144) {
    const float d = to_float(u16(from)), dmin = to_float(u16(from + 2));
    const uint8_t* s = from + 4;
    for (int j = 0; j < 8; ++j) {
      const int scale = j < 4 ? s[j] & 63 : (s[j + 4] & 15) | (s[j - 4] >> 6) << 4;
      const int minimum = j < 4 ? s[j + 4] & 63 : s[j + 4] >> 4 | (s[j] >> 6) << 4;
      row.scales[8 * b + j] = bits_of(d * float(scale));
      row.minimums[8 * b + j] = bits_of(-(dmin * float(minimum)));
    }
    const uint8_t* q = from + 16;
    uint8_t* codes = row.codes.data() + 256 * b;
    for (int j = 0; j < 256; j += 64, q += 32)
      for (int i = 0; i < 32; ++i) {
        codes[j + i] = q[i] & 15;
        codes[j + 32 + i] = q[i] >> 4;
      }
  }
}

// Superblocks of 256: 128 bytes of low nibbles, 64 of high pairs, 16 int8 scales, f16 d.
void read_q6_k(const uint8_t* from, int32_t in, Row& row) {
  for (int b = 0; b < in / 256; ++b, from += 210) {
    const uint8_t *low = from, *high = from + 128;
    const int8_t* scales = reinterpret_cast<const int8_t*>(from + 192);
    const float d = to_float(u16(from + 208));
    for (int j = 0; j < 16; ++j) row.scales[16 * b + j] = bits_of(d * float(scales[j]));
    uint8_t* codes = row.codes.data() + 256 * b;
    for (int j = 0; j < 256; j += 128, low += 64, high += 32)
      for (int i = 0; i < 32; ++i) {
        codes[j + i] = uint8_t((low[i] & 15) | (high[i] & 3) << 4);
        codes[j + i + 32] = uint8_t((low[i + 32] & 15) | (high[i] >> 2 & 3) << 4);
        codes[j + i + 64] = uint8_t(low[i] >> 4 | (high[i] >> 4 & 3) << 4);
        codes[j + i + 96] = uint8_t(low[i + 32] >> 4 | (high[i] >> 6) << 4);
      }
  }
}

void read_row(Source source, const uint8_t* from, int32_t in, Row& row) {
  switch (source) {
    case Source::Q4_0: return read_nibbles<false, false>(from, in, row);
    case Source::Q4_1: return read_nibbles<true, false>(from, in, row);
    case Source::Q5_0: return read_nibbles<false, true>(from, in, row);
    case Source::Q5_1: return read_nibbles<true, true>(from, in, row);
    case Source::Q8_0: return read_q8_0(from, in, row);
    case Source::Q4_K: return read_q4_k(from, in, row);
    case Source::Q6_K: return read_q6_k(from, in, row);
    default: throw std::invalid_argument("not a quantised source");
  }
}

void put_scales(const std::vector<uint32_t>& from, bool wide, int lane, uint8_t* section) {
  for (size_t g = 0; g < from.size(); ++g) {
    const size_t at = g * kTile + size_t(lane);
    if (wide) std::memcpy(section + 4 * at, &from[g], 4);
    else std::memcpy(section + 2 * at, &from[g], 2);
  }
}

// A row becomes lane `lane` of a tile of zeros.
void put_codes(const std::vector<uint8_t>& codes, int bits, int lane, uint8_t* section) {
  for (size_t k = 0; k < codes.size(); k += 8) {
    if (bits == 8) {
      std::memcpy(section + k / 4 * 64 + lane * 4, &codes[k], 4);
      std::memcpy(section + k / 4 * 64 + 64 + lane * 4, &codes[k + 4], 4);
      continue;
    }
    uint8_t* to = section + k / 8 * 64 + lane * 4;
    for (size_t i = 0; i < 4; ++i) to[i] = uint8_t(codes[k + i] | codes[k + 4 + i] << 4);
  }
}

uint16_t round_bf16(float x) {
  const uint32_t bits = bits_of(x);
  return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// A float of the row, in f32. f16 and bf16 sources are exact in it.
float source_value(Source source, const uint8_t* row, int64_t k) {
  if (source == Source::F16) return to_float(u16(row + 2 * k));
  if (source == Source::BF16) {
    const uint32_t bits = uint32_t(u16(row + 2 * k)) << 16;
    float x;
    std::memcpy(&x, &bits, 4);
    return x;
  }
  float x;
  std::memcpy(&x, row + 4 * k, 4);
  return x;
}

void put_floats(Source source, const uint8_t* row, int32_t in, Kind kind, int lane, uint8_t* tile) {
  for (int64_t k = 0; k < in; ++k) {
    uint16_t* halves = reinterpret_cast<uint16_t*>(tile);
    if (kind == Kind::F32) {
      const float x = source_value(source, row, k);
      std::memcpy(tile + 4 * (k * kTile + lane), &x, 4);
    } else if (kind == Kind::F16) {
      halves[k * kTile + lane] = u16(row + 2 * k);
    } else {
      halves[k / 2 * 32 + lane * 2 + k % 2] =
          source == Source::BF16 ? u16(row + 2 * k) : round_bf16(source_value(source, row, k));
    }
  }
}

bool same(const Format& a, const Format& b) { return std::memcmp(&a, &b, sizeof a) == 0; }

}  // namespace

Format exact_format(Source source) {
  switch (source) {
    case Source::F32: return {Kind::F32, 32, 0, 0, 0, 0};
    case Source::F16: return {Kind::F16, 16, 0, 0, 0, 0};
    case Source::BF16: return {Kind::BF16, 16, 0, 0, 0, 0};
    case Source::Q4_0: return {Kind::INT, 4, 32, 8, 0, 0};
    case Source::Q4_1: return {Kind::INT, 4, 32, 0, 1, 0};
    case Source::Q5_0: return {Kind::INT, 8, 32, 16, 0, 0};
    case Source::Q5_1: return {Kind::INT, 8, 32, 0, 1, 0};
    case Source::Q8_0: return {Kind::INT, 8, 32, 128, 0, 0};
    case Source::Q4_K: return {Kind::INT, 4, 32, 0, 1, 1};
    case Source::Q6_K: return {Kind::INT, 8, 16, 32, 0, 1};
  }
  throw std::invalid_argument("unknown source format");
}

void pack(Source source, const uint8_t* rows, int64_t row_bytes, int32_t out, int32_t in,
          const Format& format, int32_t start, int32_t stop, uint8_t* to) {
  const bool quantised = format.kind == Kind::INT;
  if (quantised ? !same(format, exact_format(source)) : source > Source::BF16)
    throw std::invalid_argument("this source does not pack into this format");
  if (format.kind == Kind::F16 && source != Source::F16)
    throw std::invalid_argument("f16 is packed from f16 only");
  const int64_t bytes = tile_bytes(format, in);
  Row row;
  if (quantised) {
    row.codes.resize(in);
    row.scales.resize(in / format.group);
    row.minimums.resize(format.minimum ? in / format.group : 0);
  }
  for (int32_t tile = start; tile < stop; ++tile) {
    uint8_t* at = to + tile * bytes;
    std::memset(at, 0, size_t(bytes));
    for (int32_t lane = 0; lane < kTile && tile * kTile + lane < out; ++lane) {
      const uint8_t* from = rows + (int64_t(tile) * kTile + lane) * row_bytes;
      if (!quantised) {
        put_floats(source, from, in, format.kind, lane, at);
        continue;
      }
      read_row(source, from, in, row);
      put_scales(row.scales, format.wide_scale, lane, at);
      put_scales(row.minimums, format.wide_scale, lane, at + scale_bytes(format, in));
      put_codes(row.codes, format.bits, lane, at + codes_offset(format, in));
    }
  }
}

void pack_matrix(Source source, const uint8_t* rows, int64_t row_bytes, int32_t out, int32_t in,
                 const Format& format, int threads, uint8_t* to) {
  pack(source, rows, row_bytes, out, in, format, 0, 0, to);  // throws here, not in a thread
  const int32_t tiles = tiles_of(out);
  std::vector<std::thread> others;
  for (int i = 0; i < threads; ++i) {
    const int32_t start = int32_t(int64_t(tiles) * i / threads);
    const int32_t stop = int32_t(int64_t(tiles) * (i + 1) / threads);
    others.emplace_back([=] { pack(source, rows, row_bytes, out, in, format, start, stop, to); });
  }
  for (std::thread& other : others) other.join();
}

}  // namespace edgeserve
