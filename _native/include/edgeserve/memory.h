// Private anonymous memory in huge pages: what weights, pages and scratch of the CPU backend live in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace edgeserve {

class Memory {
 public:
  explicit Memory(size_t bytes);  // zeroed, taken from the system when first touched
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  uint8_t* data() const { return data_; }
  size_t size() const { return size_; }
  // Fill from the start of a file, on several threads. Throws std::runtime_error.
  void read_file(const std::string& path, int threads);

 private:
  size_t size_;
  uint8_t* data_;
};

}  // namespace edgeserve
