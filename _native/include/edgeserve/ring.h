// Pieces on their way from the engine thread to one reader, with an eventfd that wakes it.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "edgeserve/sampler.h"
#include "edgeserve/text.h"

namespace edgeserve {

struct Piece {
  int64_t sequence = 0;
  bool is_prompt = false;  // logprobs of the prompt, and nothing else
  std::string text;        // whole UTF-8 characters
  std::vector<int32_t> tokens;
  std::vector<TokenLogprob> logprobs;
  std::vector<Mark> marks;
  int32_t finish = 0;
  int32_t stop_token = -1;
  bool has_stop = false;   // `stop` is the stop string that ended the choice
  std::string stop;
  int32_t phase = 0;       // of all its tokens and its text
};

class Ring {
 public:
  Ring();
  ~Ring();
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  int fileno() const { return fd_; }
  void write(Piece&& piece);
  // Everything written since, in order. The eventfd is unreadable until the next write.
  std::vector<Piece> drain();
  void close();

 private:
  std::mutex mutex_;
  std::vector<Piece> pieces_;
  int fd_;
};

}  // namespace edgeserve
