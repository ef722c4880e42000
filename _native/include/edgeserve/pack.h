// Stored blocks of a checkpoint to packed tiles; see packed.h for the layout.
#pragma once

#include <cstdint>

#include "edgeserve/packed.h"

namespace edgeserve {

enum class Source : int32_t {
  F32 = 0, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q6_K,
};

// The format that holds a quantised source exactly; F32, F16 and BF16 for themselves.
Format exact_format(Source source);

// Tiles [start, stop) of a matrix [out, in]. `rows`: its stored rows, `row_bytes` apart. Float
// sources convert to any float kind (rounding to nearest even); others need their exact format.
// `to` is where the matrix's tile 0 goes. Throws std::invalid_argument.
void pack(Source source, const uint8_t* rows, int64_t row_bytes, int32_t out, int32_t in,
          const Format& format, int32_t start, int32_t stop, uint8_t* to);

// All tiles, on several threads.
void pack_matrix(Source source, const uint8_t* rows, int64_t row_bytes, int32_t out, int32_t in,
                 const Format& format, int threads, uint8_t* to);

}  // namespace edgeserve
