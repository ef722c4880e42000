#include "edgeserve/text.h"

namespace edgeserve {

void TextStream::feed(int32_t token, bool armed, Gain& gain) {
  if (ended_) return;
  const std::string_view piece = vocabulary_.piece(token);
  if (!vocabulary_.is_special(token)) {
    for (const char byte : piece) utf8_.push(static_cast<uint8_t>(byte), fresh_);
    scan(armed, gain);
    return;
  }
  mark_end(token, armed, gain);
  if (ended_ || settings_.skip_special_tokens) return;
  Utf8 whole;
  for (const char byte : piece) whole.push(static_cast<uint8_t>(byte), gain.text);
  whole.flush(gain.text);
}

void TextStream::mark_end(int32_t token, bool armed, Gain& gain) {
  if (ended_ || !vocabulary_.is_special(token)) return;
  close_segment(armed, gain);
  if (!ended_) gain.marks.push_back({static_cast<int32_t>(gain.text.size()), token});
}

void TextStream::cut(bool armed, Gain& gain) {
  if (!ended_) close_segment(armed, gain);
}

// A boundary: nothing before it can become part of a character or a stop string any more.
void TextStream::close_segment(bool armed, Gain& gain) {
  utf8_.flush(fresh_);
  scan(armed, gain);
  gain.text += held_;
  held_.clear();
  state_ = 0;
}

void TextStream::scan(bool armed, Gain& gain) {
  const Stops& stops = *settings_.stops;
  if (stops.empty()) {
    gain.text += fresh_;
    fresh_.clear();
    return;
  }
  for (const char byte : fresh_) {
    held_.push_back(byte);
    state_ = stops.next(state_, static_cast<uint8_t>(byte));
    const int32_t match = stops.match(state_);
    if (!armed || match < 0) continue;
    const size_t kept = settings_.include_stop ? held_.size()
                                               : held_.size() - stops.string(match).size();
    gain.text.append(held_, 0, kept);
    gain.stop = match;
    ended_ = true;
    held_.clear();
    break;
  }
  fresh_.clear();
  if (ended_) return;
  const size_t certain = held_.size() - stops.live(state_);
  gain.text.append(held_, 0, certain);
  held_.erase(0, certain);
}

}  // namespace edgeserve
