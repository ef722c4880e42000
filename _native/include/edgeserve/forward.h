// The one thing the core asks of a backend: run a step of tokens through the network.
//
// Owned and called by the engine thread. A backend implements Forward, owns the storage of keys and
// values, and knows nothing of requests, sampling or text.
#pragma once

#include <cstdint>

namespace edgeserve {

// A contiguous run of tokens of one sequence: a prefill chunk, or one token of decoding.
struct Span {
  int32_t start;         // absolute position of the first token
  int32_t count;         // tokens
  const int32_t* pages;  // page ids of the sequence, covering positions [0, start + count)
};

struct Step {
  const int32_t* ids;      // [tokens], spans one after another
  int32_t tokens;
  const Span* spans;       // [span_count]
  int32_t span_count;
  const int32_t* outputs;  // [output_count] ascending indices into tokens whose logits are wanted
  int32_t output_count;
  float* logits;           // [output_count, vocab], written; rows are contiguous
};

class Forward {
 public:
  virtual ~Forward() = default;
  virtual int32_t vocab() const = 0;       // width of a row of logits
  virtual int32_t page_tokens() const = 0; // positions in a page
  virtual int32_t pages() const = 0;       // pages in its storage; ids are [0, pages)
  virtual int32_t step_tokens() const = 0; // most tokens in one step
  // Reads and writes keys and values of the spans' pages. Throws std::runtime_error on a fault,
  // after which the backend is not usable any more.
  virtual void run(const Step& step) = 0;
  // All layers' keys and values of page `from` become those of page `to` (copy-on-write).
  virtual void copy_page(int32_t from, int32_t to) = 0;
};

}  // namespace edgeserve
