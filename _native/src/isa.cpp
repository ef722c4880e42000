// Which kernel tables this build has, and which of them this chip can run.
#include <cstring>
#include <stdexcept>
#include <string>

#include "edgeserve/kernels.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace edgeserve {

#define ES_DECLARE(isa) \
  namespace isa {       \
  const Kernels& table(); \
  }
#ifdef ES_HAS_SCALAR
ES_DECLARE(scalar)
#endif
#ifdef ES_HAS_AVX2
ES_DECLARE(avx2)
#endif
#ifdef ES_HAS_AVX512
ES_DECLARE(avx512)
#endif
#ifdef ES_HAS_AVX512_VNNI
ES_DECLARE(avx512_vnni)
#endif
#ifdef ES_HAS_AVX512_BF16
ES_DECLARE(avx512_bf16)
#endif
#ifdef ES_HAS_AMX
ES_DECLARE(amx)
#endif
#ifdef ES_HAS_NEON
ES_DECLARE(neon)
#endif

namespace {

struct Choice {
  const char* name;
  bool runs;
  const Kernels& (*table)();
};

#if defined(__x86_64__)
bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("f16c");
}
bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
}
bool has_vnni() { return has_avx512() && __builtin_cpu_supports("avx512vnni"); }
bool has_bf16() { return has_vnni() && __builtin_cpu_supports("avx512bf16"); }

// Besides the chip, the system must let this process use the matrix registers.
bool has_amx() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!has_bf16() || !__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
  const unsigned needed = 1u << 22 | 1u << 24 | 1u << 25;  // bf16, tiles, int8
  constexpr int request_permission = 0x1023, tile_data = 18;
  return (d & needed) == needed && syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
}
#endif

// Best first.
const Choice kChoices[] = {
#ifdef ES_HAS_AMX
    {"amx", has_amx(), amx::table},
#endif
#ifdef ES_HAS_AVX512_BF16
    {"avx512_bf16", has_bf16(), avx512_bf16::table},
#endif
#ifdef ES_HAS_AVX512_VNNI
    {"avx512_vnni", has_vnni(), avx512_vnni::table},
#endif
#ifdef ES_HAS_AVX512
    {"avx512", has_avx512(), avx512::table},
#endif
#ifdef ES_HAS_AVX2
    {"avx2", has_avx2(), avx2::table},
#endif
#ifdef ES_HAS_NEON
    {"neon", true, neon::table},
#endif
    {"scalar", true, scalar::table},
};

}  // namespace

int32_t available_isas(const char** names, int32_t most) {
  int32_t count = 0;
  for (const Choice& choice : kChoices)
    if (choice.runs && count < most) names[count++] = choice.name;
  return count;
}

const Kernels& kernels(const char* isa) {
  std::string able;
  for (const Choice& choice : kChoices) {
    if (!choice.runs) continue;
    if (!isa || !*isa || !std::strcmp(isa, choice.name)) return choice.table();
    able += able.empty() ? "" : ", ";
    able += choice.name;
  }
  throw std::runtime_error("this machine cannot run the instruction set '" + std::string(isa) +
                           "'; it can run: " + able);
}

}  // namespace edgeserve
