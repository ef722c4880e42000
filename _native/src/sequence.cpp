#include "edgeserve/sequence.h"

#include <algorithm>
#include <stdexcept>

namespace edgeserve {

namespace {

void require(bool condition, const char* message) {
  if (!condition) throw std::invalid_argument(message);
}

bool contains(const std::vector<int32_t>& ids, int32_t id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

// The ids that end this choice are those that may not be chosen before min_tokens.
SequenceSettings with_end_ids(SequenceSettings settings) {
  std::vector<int32_t>& end_ids = settings.sampler.end_ids;
  end_ids = settings.stop_token_ids;
  if (!settings.ignore_eos) {
    end_ids.insert(end_ids.end(), settings.eos_ids.begin(), settings.eos_ids.end());
  }
  return settings;
}

}  // namespace

Sequence::Sequence(int64_t id, int32_t choice, std::vector<int32_t> prompt,
                   const Vocabulary& vocabulary, PagePool& pool, int32_t page_tokens,
                   SequenceSettings settings)
    : id_(id),
      choice_(choice),
      prompt_length_(static_cast<int32_t>(prompt.size())),
      vocabulary_(vocabulary),
      pool_(pool),
      page_tokens_(page_tokens),
      settings_(with_end_ids(std::move(settings))),
      tokens_(std::move(prompt)),
      text_(vocabulary, settings_.text),
      reasoning_(settings_.reasoning, prompt_length_) {
  require(page_tokens >= 1, "a page has at least 1 token");
  require(choice >= 0, "a choice is not negative");
  require(prompt_length_ >= 1, "a prompt has at least 1 token");
  require(*std::min_element(tokens_.begin(), tokens_.end()) >= 0, "token ids are not negative");
  require(settings_.max_tokens >= 1, "max_tokens is at least 1");
  require(prompt_length_ < settings_.max_length, "the prompt leaves no room for a token");
  settings_.sampler.check();
  settings_.reasoning.check();
  if (settings_.sampler.has_penalties()) {
    for (const int32_t token : tokens_) penalties_.note_prompt(token);
  }
  force_closing();
}

int32_t Sequence::pages_for(int32_t count) const {
  const int64_t stop = static_cast<int64_t>(computed_) + count;
  const int32_t needed = static_cast<int32_t>((stop + page_tokens_ - 1) / page_tokens_);
  const int32_t held = static_cast<int32_t>(pages_.size());
  const int32_t first = computed_ / page_tokens_;  // the page written first
  const bool copies = count > 0 && first < held && pool_.references(pages_[first]) > 1;
  return std::max(needed - held, 0) + copies;
}

std::pair<int32_t, int32_t> Sequence::take_pages(int32_t count) {
  std::pair<int32_t, int32_t> copy{-1, -1};
  const int32_t needed = pages_for(count);
  if (needed == 0) return copy;
  if (needed > pool_.available()) throw PagesShort();
  const size_t first = computed_ / page_tokens_;
  int32_t left = needed;
  if (first < pages_.size() && pool_.references(pages_[first]) > 1) {
    copy = {pages_[first], pool_.take()};
    pages_[first] = copy.second;
    pool_.give(copy.first);
    --left;
  }
  for (; left > 0; --left) pages_.push_back(pool_.take());
  return copy;
}

int32_t Sequence::adopt(PrefixTree& tree, int32_t limit) {
  require(&tree.pool() == &pool_ && tree.page_tokens() == page_tokens_,
          "the tree belongs to another pool");
  require(computed_ == 0 && pages_.empty(), "a sequence adopts before it computes");
  if (wants_prompt_logprobs()) return 0;  // needs every position computed
  computed_ = tree.adopt(tokens_.data(), std::min(limit, length()), settings_.salt, pages_);
  return computed_;
}

int32_t Sequence::publish(PrefixTree& tree, int32_t tokens) const {
  require(&tree.pool() == &pool_ && tree.page_tokens() == page_tokens_,
          "the tree belongs to another pool");
  return tree.publish(tokens_.data(), std::min(tokens, computed_), settings_.salt, pages_.data());
}

Sequence* Sequence::fork(int64_t id, int32_t choice) const {
  require(generated() == 0 && computed_ < length(),
          "a sequence forks before its first token is sampled");
  SequenceSettings settings = settings_;
  settings.prompt_logprobs = -1;
  Sequence* fork =
      new Sequence(id, choice, tokens_, vocabulary_, pool_, page_tokens_, std::move(settings));
  fork->constrained = constrained;
  fork->forced_ = forced_;
  for (const int32_t page : pages_) {
    pool_.hold(page);
    fork->pages_.push_back(page);
  }
  fork->computed_ = computed_;
  return fork;
}

void Sequence::release() {
  for (const int32_t page : pages_) pool_.give(page);
  pages_.clear();
  computed_ = 0;
}

Draft Sequence::draft() const {
  return {settings_.sampler, penalties_, tokens_, generated(), choice_,
          mask_.empty() ? nullptr : mask_.data(), static_cast<int32_t>(mask_.size()),
          constrained && constraint_rests()};
}

void Sequence::advance(int32_t token, Piece& piece) {
  piece.sequence = id_;
  piece.phase = reasoning_.phase();
  mask_.clear();
  TextStream::Gain gain;
  if (token < 0) {
    end(FAILED, gain, piece);
  } else {
    tokens_.push_back(token);
    piece.tokens.push_back(token);
    if (settings_.sampler.has_penalties()) penalties_.note_generated(token);
    const Finish finish = judge(token, gain, piece);
    if (finish != GOING) end(finish, gain, piece);
    force_closing();
  }
  if (gain.stop >= 0) {
    piece.has_stop = true;
    piece.stop = text_.stops().string(gain.stop);
  }
  piece.text = std::move(gain.text);
  piece.marks = std::move(gain.marks);
}

int32_t Sequence::take_forced() {
  const int32_t token = forced_.front();
  forced_.pop_front();
  return token;
}

// The budget is used up: nothing that was forced before comes in between.
void Sequence::force_closing() {
  if (finish_ != GOING || !reasoning_.take_closing()) return;
  const std::vector<int32_t>& closing = settings_.reasoning.closing;
  forced_.assign(closing.begin(), closing.end());
}

// Stop strings end the answer, not the reasoning before it.
bool Sequence::is_armed() const {
  return reasoning_.phase() == CONTENT && generated() >= settings_.sampler.min_tokens;
}

// What the token does to phase and text, and whether it is the last. Text of one phase never joins
// with text of the next.
Finish Sequence::judge(int32_t token, TextStream::Gain& gain, Piece& piece) {
  const bool armed = is_armed();
  const bool ended_phase = reasoning_.note(tokens_, !constrained);
  if (contains(settings_.stop_token_ids, token)) piece.stop_token = token;
  if (contains(settings_.sampler.end_ids, token)) {
    text_.mark_end(token, armed, gain);
    return STOP;
  }
  text_.feed(token, armed, gain);
  if (ended_phase) text_.cut(armed, gain);
  if (gain.stop >= 0) return STOP;
  const bool full = generated() >= settings_.max_tokens || length() >= settings_.max_length;
  return full ? LENGTH : GOING;
}

void Sequence::end(Finish finish, TextStream::Gain& gain, Piece& piece) {
  text_.cut(is_armed(), gain);
  finish_ = gain.stop >= 0 && finish == LENGTH ? STOP : finish;
  piece.finish = finish_;
}

// Fills the piece with the prompt's logprobs when all have just come.
bool Sequence::report_prompt(Piece& piece) {
  if (!wants_prompt_logprobs() || prompt_done() < prompt_length_ - 1) return false;
  piece.sequence = id_;
  piece.is_prompt = true;
  piece.logprobs = std::move(prompt_logprobs_);
  prompt_reported_ = true;
  return true;
}

}  // namespace edgeserve
