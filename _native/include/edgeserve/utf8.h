// Bytes to whole UTF-8 characters, a byte at a time; what is not UTF-8 becomes U+FFFD.
//
// The result over any cutting equals Python's bytes.decode("utf-8", "replace"): one U+FFFD for each
// maximal prefix of a character that breaks off, one for each byte that starts none.
#pragma once

#include <cstdint>
#include <string>

namespace edgeserve {

class Utf8 {
 public:
  // Appends to `out` the characters that are complete with this byte.
  void push(uint8_t byte, std::string& out) {
    if (count_ > 0 && (byte < low_ || byte > high_)) flush(out);
    if (count_ == 0) {
      start(byte, out);
      return;
    }
    held_[count_++] = static_cast<char>(byte);
    low_ = 0x80;
    high_ = 0xBF;
    if (count_ == need_) {
      out.append(held_, count_);
      count_ = 0;
    }
  }

  // The text ends, or a boundary follows: an incomplete character becomes U+FFFD.
  void flush(std::string& out) {
    if (count_ > 0) out.append(kReplacement);
    count_ = 0;
  }

  bool is_whole() const { return count_ == 0; }

 private:
  static constexpr const char* kReplacement = "\xEF\xBF\xBD";

  // The range of the second byte rules out overlong forms, surrogates and beyond U+10FFFF.
  void start(uint8_t byte, std::string& out) {
    if (byte < 0x80) {
      out.push_back(static_cast<char>(byte));
      return;
    }
    if (byte < 0xC2 || byte > 0xF4) {
      out.append(kReplacement);
      return;
    }
    need_ = byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
    low_ = byte == 0xE0 ? 0xA0 : byte == 0xF0 ? 0x90 : 0x80;
    high_ = byte == 0xED ? 0x9F : byte == 0xF4 ? 0x8F : 0xBF;
    held_[0] = static_cast<char>(byte);
    count_ = 1;
  }

  char held_[4] = {};
  int32_t count_ = 0;  // bytes held
  int32_t need_ = 0;   // bytes of the character
  uint8_t low_ = 0;    // range of the next byte
  uint8_t high_ = 0;
};

}  // namespace edgeserve
