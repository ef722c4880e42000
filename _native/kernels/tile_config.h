// The matrix unit's registers: what shape each has. A thread sets it before it uses them.
#pragma once

#include <cstdint>

namespace edgeserve {
namespace ES_ISA {

constexpr int kMatrixRows = 16;  // of a register

struct alignas(64) TileConfig {
  uint8_t palette = 1, start = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};

  void set(int index, int count, int bytes) {
    rows[index] = uint8_t(count);
    row_bytes[index] = uint16_t(bytes);
  }
};

}  // namespace ES_ISA
}  // namespace edgeserve
