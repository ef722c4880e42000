// The CPU kernels beside what the machine can do, measured in turns in one run, on one thread.
//
//   g++ -O2 -std=c++17 -march=native -I_native/include bench/kernels.cpp _native/libedgeserve.so
//       -Wl,-rpath,$PWD/_native -o /tmp/kernels && /tmp/kernels [OUT IN]
//
// Limits: bytes read per second from caches and memory (huge pages), products per second. Kernels:
// linear layers [OUT, IN] by format, instruction set and rows; results are checked against the
// scalar kernels first. Times are CPU time of the thread, the best of many: what a quiet moment
// gives.
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <random>
#include <string>
#include <vector>

#include "edgeserve/kernels.h"
#include "edgeserve/memory.h"

#ifdef __AVX512VNNI__
#include <immintrin.h>
#endif

using namespace edgeserve;

namespace {

constexpr int kRounds = 20;
const int kRows[] = {1, 4, 8, 16, 64, 256};
constexpr int kChecked = 19;  // rows: a block of 16 and some that are left

double cpu_seconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

template <class Fn>
double timed(Fn fn) {
  const double start = cpu_seconds();
  fn();
  return cpu_seconds() - start;
}

template <class Fn>
double best_of(int rounds, Fn fn) {
  double best = INFINITY;
  for (int i = 0; i < rounds; ++i) best = std::min(best, timed(fn));
  return best;
}

typedef uint64_t Line __attribute__((vector_size(64)));  // in as many registers as it takes

uint64_t read_all(const uint8_t* data, size_t bytes) {
  Line sums[4] = {};
  for (size_t at = 0; at < bytes; at += sizeof sums)
    for (size_t i = 0; i < 4; ++i) sums[i] += *(const Line*)(data + at + i * sizeof(Line));
  const Line sum = sums[0] + sums[1] + sums[2] + sums[3];
  return sum[0] + sum[1] + sum[2] + sum[3] + sum[4] + sum[5] + sum[6] + sum[7];
}

void bandwidth() {
  volatile uint64_t sink = 0;
  for (size_t mib : {1, 8, 32, 96, 256}) {
    Memory memory(mib << 20);
    std::memset(memory.data(), 1, mib << 20);
    const size_t repeats = std::max<size_t>(1, 64 / mib);
    const double s = best_of(9, [&] {
      for (size_t i = 0; i < repeats; ++i) sink = sink + read_all(memory.data(), mib << 20);
    });
    std::printf("read %4zu MiB: %7.1f GB/s\n", mib, double((mib << 20) * repeats) / s / 1e9);
  }
}

#ifdef __AVX512VNNI__
void products() {
  constexpr long count = 1'000'000;
  const double s = best_of(kRounds, [] {
    __m512i a = _mm512_setzero_si512(), sums[12];
    std::fill(sums, sums + 12, a);
    for (long i = 0; i < count; ++i) {
#pragma GCC unroll 12
      for (int j = 0; j < 12; ++j) sums[j] = _mm512_dpbusd_epi32(sums[j], a, a);
      asm volatile("" : "+v"(a));
    }
    for (__m512i& sum : sums) asm volatile("" : : "v"(sum));
  });
  std::printf("vpdpbusd: %.0f Gop/s (a product and a sum are 2)\n", 12.0 * count * 128 / s / 1e9);
}
#else
void products() {}
#endif

struct Case {
  const char* name;
  Format format;
};

const Case kCases[] = {
    {"q4_0", {Kind::INT, 4, 32, 8, 0, 0}},   {"q4_1", {Kind::INT, 4, 32, 0, 1, 0}},
    {"q8_0", {Kind::INT, 8, 32, 128, 0, 0}}, {"q4_k", {Kind::INT, 4, 32, 0, 1, 1}},
    {"q6_k", {Kind::INT, 8, 16, 32, 0, 1}},  {"bf16", {Kind::BF16, 16, 0, 0, 0, 0}},
};

// Inputs of one layer, and a place for its outputs.
struct Layer {
  Packed weight;
  Memory data, x, out, scratch;
  int64_t x_stride;

  Layer(const Format& f, int32_t out_size, int32_t in)
      : weight{f, out_size, in, nullptr},
        data(size_t(packed_bytes(f, out_size, in))),
        x(size_t(256) * size_t(in_padded(in)) * 4),
        out(size_t(256) * size_t(out_size) * 4),
        scratch(size_t(kPanels) * size_t(in_padded(in)) * kTile * 4),
        x_stride(f.kind == Kind::INT ? in_padded(in) / kBlock : in_padded(in)) {
    std::mt19937 random(1);
    const size_t bytes = size_t(packed_bytes(f, out_size, in));
    for (size_t i = 0; i < bytes; ++i)
      data.data()[i] = (uint8_t(random()) & 0x3b) | 0x20;  // no scale is subnormal
    weight.data = data.data();
    std::vector<float> row(static_cast<size_t>(in));
    for (int64_t r = 0; r < 256; ++r) {
      for (float& value : row) value = float(int(random() % 2001) - 1000) / 700;
      if (f.kind == Kind::INT)
        kernels("scalar").quantise(row.data(), in, (QuantBlock*)x.data() + r * x_stride);
      else
        kernels("scalar").to_bf16(row.data(), in, (uint16_t*)x.data() + r * x_stride);
    }
  }

  void run(const Kernels& k, int rows) {
    const Matmul job = {&weight, nullptr, x.data(), x_stride, (float*)out.data(), weight.out, rows,
                        (float*)scratch.data()};
    const auto kernel = weight.format.kind == Kind::INT ? k.matmul_int8 : k.matmul_bf16;
    const int32_t tiles = tiles_of(weight.out);
    for (int32_t tile = 0; tile < tiles; tile += kPanels)
      kernel(job, tile, std::min(tile + kPanels, tiles));
  }

  std::vector<float> result(const Kernels& k, int rows) {
    run(k, rows);
    const float* from = (const float*)out.data();
    return {from, from + size_t(rows) * size_t(weight.out)};
  }
};

// Integer kernels must agree to the bit, bf16 ones to rounding.
void check(Layer& layer, const Kernels& k, const std::vector<float>& expected) {
  const auto got = layer.result(k, kChecked);
  const bool exact = layer.weight.format.kind == Kind::INT;
  for (size_t i = 0; i < got.size(); ++i) {
    const float error = std::fabs(got[i] - expected[i]);
    if (exact ? got[i] != expected[i] : !(error <= 1e-3f * (1.0f + std::fabs(expected[i])))) {
      std::fprintf(stderr, "%s: a wrong result\n", k.isa);
      std::exit(1);
    }
  }
}

void layers(const Case& c, int32_t out, int32_t in, const std::vector<const char*>& isas) {
  Layer layer(c.format, out, in);
  std::vector<double> best(isas.size() * std::size(kRows), INFINITY);
  const std::vector<float> expected = layer.result(kernels("scalar"), kChecked);
  for (const char* isa : isas) check(layer, kernels(isa), expected);
  for (int round = 0; round < kRounds; ++round)
    for (size_t at = 0; at < best.size(); ++at) {
      const Kernels& k = kernels(isas[at / std::size(kRows)]);
      const int rows = kRows[at % std::size(kRows)];
      best[at] = std::min(best[at], timed([&] { layer.run(k, rows); }));
    }
  for (size_t at = 0; at < best.size(); ++at) {
    const int rows = kRows[at % std::size(kRows)];
    if (rows == 1) std::printf("\n%-5s %-12s", c.name, isas[at / std::size(kRows)]);
    std::printf(" %4d rows %6.0f", rows, 2.0 * rows * out * in / best[at] / 1e9);
  }
}

}  // namespace

int main(int count, char** words) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const int32_t out = count > 2 ? std::atoi(words[1]) : 576;
  const int32_t in = count > 2 ? std::atoi(words[2]) : 1536;
  bandwidth();
  products();
  const char* names[16];
  std::vector<const char*> isas(names, names + available_isas(names, 16));
  isas.pop_back();  // scalar: the oracle
  std::printf("linear layer [%d, %d], Gop/s:", out, in);
  for (const Case& c : kCases) layers(c, out, in, isas);
  std::printf("\n");
}
