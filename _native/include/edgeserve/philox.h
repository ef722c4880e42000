// Philox4x32-10 (Salmon et al. 2011): random bits as a pure function of a counter and a key.
#pragma once

#include <array>
#include <cstdint>

namespace edgeserve {

using PhiloxCounter = std::array<uint32_t, 4>;
using PhiloxKey = std::array<uint32_t, 2>;

inline PhiloxCounter philox(PhiloxCounter counter, PhiloxKey key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t low = static_cast<uint64_t>(0xD2511F53u) * counter[0];
    const uint64_t high = static_cast<uint64_t>(0xCD9E8D57u) * counter[2];
    counter = {static_cast<uint32_t>(high >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(high),
               static_cast<uint32_t>(low >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(low)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

// What a random number is for: draws of different kinds at one position are independent.
enum class Draw : uint32_t { TOKEN = 0 };

// Uniform in [0, 1) with 53 bits, keyed by everything it may depend on.
inline double uniform(uint64_t seed, int32_t choice, int32_t position, Draw kind) {
  const PhiloxCounter bits =
      philox({static_cast<uint32_t>(position), static_cast<uint32_t>(choice),
              static_cast<uint32_t>(kind), 0},
             {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  return ((bits[0] >> 5) * 67108864.0 + (bits[1] >> 6)) * 0x1p-53;
}

}  // namespace edgeserve
