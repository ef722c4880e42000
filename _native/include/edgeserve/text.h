// The text of one choice, as it becomes certain: token -> bytes -> characters -> stop strings.
//
// Withheld is only an incomplete character or a live prefix of a stop string. The first stop string
// to end ends the text; of several that end there, the longest. Special tokens are boundaries: no
// character and no stop string reaches across one, and their own text feeds no stop string.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "edgeserve/stops.h"
#include "edgeserve/utf8.h"
#include "edgeserve/vocabulary.h"

namespace edgeserve {

struct Mark {
  int32_t offset;  // bytes into the text of the piece
  int32_t token;
};

struct TextSettings {
  std::shared_ptr<const Stops> stops;
  bool include_stop = false;
  bool skip_special_tokens = true;
};

class TextStream {
 public:
  struct Gain {
    std::string text;
    std::vector<Mark> marks;
    int32_t stop = -1;  // index of the stop string that ended the text
  };

  TextStream(const Vocabulary& vocabulary, TextSettings settings)
      : vocabulary_(vocabulary), settings_(std::move(settings)) {}

  // While not `armed`, stop strings do not end the text.
  void feed(int32_t token, bool armed, Gain& gain);
  // A token that ends the choice: no text, but a mark when it is special.
  void mark_end(int32_t token, bool armed, Gain& gain);
  // A boundary, as of a phase or the end: everything withheld that is no stop string comes out.
  void cut(bool armed, Gain& gain);

  const Stops& stops() const { return *settings_.stops; }

 private:
  void scan(bool armed, Gain& gain);
  void close_segment(bool armed, Gain& gain);

  const Vocabulary& vocabulary_;
  const TextSettings settings_;
  Utf8 utf8_;
  std::string fresh_;   // characters not scanned yet
  std::string held_;    // scanned, and live as a prefix of a stop string
  int32_t state_ = 0;   // of the stops
  bool ended_ = false;  // by a stop string: nothing more comes out
};

}  // namespace edgeserve
