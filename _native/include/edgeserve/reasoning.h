// Whether a choice is reasoning or answering, by the ids it generates.
//
// A marker is one id or a few in a row. A token belongs to the phase it was generated in: a start
// marker to content, an end marker and the forced closing ids to reasoning. When as many tokens as
// the budget allows were generated in reasoning, the closing ids follow without being chosen, and
// content after the last of them.
#pragma once

#include <cstdint>
#include <vector>

namespace edgeserve {

// generation.Piece.phase in Python.
enum Phase : int32_t { CONTENT = 0, REASONING = 1 };

struct ReasoningSettings {
  bool starts_inside = false;                       // the prompt ends inside reasoning
  std::vector<std::vector<int32_t>> end_markers;
  std::vector<std::vector<int32_t>> start_markers;  // none: reasoning does not begin again
  int32_t budget = -1;                              // tokens in reasoning; -1 is no limit
  std::vector<int32_t> closing;                     // forced when the budget is used up
  bool constrained = false;                         // masks are asked for in reasoning too

  void check() const;  // throws std::invalid_argument
};

class Reasoning {
 public:
  // `prompt`: its length. The settings outlive this.
  Reasoning(const ReasoningSettings& settings, int32_t prompt);

  Phase phase() const { return phase_; }
  int32_t tokens() const { return tokens_; }  // generated in reasoning
  int32_t since() const { return since_; }    // position of the first token of this phase

  // The last of `tokens` was generated. Returns whether it ended its phase. While not `may_start`,
  // start markers mean nothing.
  bool note(const std::vector<int32_t>& tokens, bool may_start);
  // Whether the closing ids are to follow now. True once, until reasoning begins again.
  bool take_closing();

 private:
  bool ends_with(const std::vector<int32_t>& tokens,
                 const std::vector<std::vector<int32_t>>& markers) const;
  bool ends_reasoning(const std::vector<int32_t>& tokens);

  const ReasoningSettings& settings_;
  Phase phase_;
  int32_t since_;
  int32_t tokens_ = 0;
  int32_t closing_left_ = 0;  // closing ids that are still to come
};

}  // namespace edgeserve
