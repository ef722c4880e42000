#include "edgeserve/memory.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <stdexcept>
#include <sys/mman.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace edgeserve {
namespace {

constexpr size_t kHuge = size_t(2) << 20;
constexpr size_t kChunk = size_t(8) << 20;  // of one read

bool read_chunk(int file, uint8_t* to, size_t from, size_t bytes) {
  while (bytes) {
    const ssize_t got = pread(file, to, bytes, off_t(from));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    to += got;
    from += size_t(got);
    bytes -= size_t(got);
  }
  return true;
}

}  // namespace

Memory::Memory(size_t bytes) : size_(std::max<size_t>((bytes + kHuge - 1) / kHuge * kHuge, kHuge)) {
  // One huge page more, so that the start can be aligned; the rest is never touched.
  void* base = mmap(nullptr, size_ + kHuge, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED)
    throw std::runtime_error("no memory for " + std::to_string(bytes) + " bytes");
  const uintptr_t at = reinterpret_cast<uintptr_t>(base);
  const uintptr_t start = (at + kHuge - 1) / kHuge * kHuge;
  if (start != at) munmap(base, start - at);
  if (at + kHuge != start) munmap(reinterpret_cast<void*>(start + size_), at + kHuge - start);
  data_ = reinterpret_cast<uint8_t*>(start);
  madvise(data_, size_, MADV_HUGEPAGE);  // refused: 4 KiB pages, slower and right
}

Memory::~Memory() { munmap(data_, size_); }

void Memory::read_file(const std::string& path, int threads) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat info = {};
  if (file < 0 || fstat(file, &info) != 0) {
    if (file >= 0) close(file);
    throw std::runtime_error("cannot open the packed weights");
  }
  const size_t bytes = std::min(size_, size_t(info.st_size));
  std::atomic<size_t> next{0};
  std::atomic<bool> failed{false};
  auto work = [&] {
    for (size_t at; (at = next.fetch_add(kChunk)) < bytes && !failed.load();)
      if (!read_chunk(file, data_ + at, at, std::min(kChunk, bytes - at))) failed.store(true);
  };
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();
  close(file);
  if (failed.load()) throw std::runtime_error("cannot read the packed weights");
}

}  // namespace edgeserve
