#include "edgeserve/ring.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace edgeserve {

Ring::Ring() : fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (fd_ < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
}

Ring::~Ring() { close(); }

void Ring::write(Piece&& piece) {
  std::lock_guard<std::mutex> lock(mutex_);
  pieces_.push_back(std::move(piece));
  if (pieces_.size() > 1 || fd_ < 0) return;  // the reader is awake already
  const uint64_t one = 1;
  (void)!::write(fd_, &one, sizeof one);
}

std::vector<Piece> Ring::drain() {
  std::vector<Piece> pieces;
  std::lock_guard<std::mutex> lock(mutex_);
  pieces.swap(pieces_);
  uint64_t count;
  if (fd_ >= 0 && !pieces.empty()) (void)!::read(fd_, &count, sizeof count);
  return pieces;
}

void Ring::close() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

}  // namespace edgeserve
