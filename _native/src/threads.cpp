#include "edgeserve/threads.h"

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <ctime>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace edgeserve {
namespace {

// Pauses before a thread stops spinning. One pause is 10 to 55 ns: a member that lost its core must
// not keep the others burning theirs.
constexpr int kStageSpins = 1000;
constexpr int kJobSpins = 8000;
constexpr int64_t kStall = 500'000;         // ns of waiting that no chunk takes
constexpr int64_t kAlone = 10'000'000;      // ns that the caller works alone after a stall
constexpr int kMostStrikes = 7;             // each doubles that
constexpr timespec kNap = {0, 2'000'000};
constexpr int kYields = 20;

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

void futex(void* word, int operation, uint32_t value, const timespec* limit = nullptr) {
  syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, limit, nullptr, 0);
}

int64_t clock_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

uint64_t word_of(uint32_t stage, uint32_t left) { return uint64_t(stage) << 32 | left; }
// Negative when the word belongs to a later stage.
int32_t age_of(uint64_t word, uint32_t stage) { return int32_t(stage - uint32_t(word >> 32)); }

int64_t thread_id() { return syscall(SYS_gettid); }

void pin(const int* cpus, size_t count) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (size_t i = 0; i < count; ++i) CPU_SET(cpus[i], &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);  // refused: we run unpinned
}

}  // namespace

void Signal::raise() {
  value_.fetch_add(1, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst)) futex(&value_, FUTEX_WAKE, INT_MAX);
}

void Signal::wait(uint32_t seen, int spins) {
  for (int i = 0; i < spins; ++i) {
    if (value() != seen) return;
    pause();
  }
  for (int i = 0; i < kYields; ++i) {
    if (value() != seen) return;
    sched_yield();
  }
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  while (value_.load(std::memory_order_seq_cst) == seen) futex(&value_, FUTEX_WAIT, seen);
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
}

Stages::Stages(int members) : members_(uint32_t(members)), words_(kAtOnce * (members + 1)) {}

int32_t Stages::take(uint32_t stage, int32_t total, int member) {
  const int64_t members = members_;
  for (int64_t i = 0; i < members; ++i) {
    const int owner = int((member + i) % members);
    const int32_t start = int32_t((total * int64_t(owner) + members - 1) / members);
    const int32_t stop = int32_t((total * int64_t(owner + 1) + members - 1) / members);
    std::atomic<uint64_t>& word = left(stage, owner).value;
    uint64_t seen = word.load(std::memory_order_relaxed);
    for (;;) {
      const int32_t age = age_of(seen, stage);
      if (age < 0) break;
      const uint32_t left = age ? uint32_t(stop - start) : uint32_t(seen);
      const uint64_t next = word_of(stage, left ? left - 1 : 0);
      if (next == seen) break;
      if (!word.compare_exchange_weak(seen, next, std::memory_order_relaxed)) continue;
      if (left) return stop - int32_t(left);
      break;
    }
  }
  if (total == 0) {  // nobody will finish a chunk
    std::atomic<uint64_t>& word = unfinished(stage).value;
    uint64_t seen = word.load(std::memory_order_relaxed);
    while (age_of(seen, stage) > 0 && !word.compare_exchange_weak(seen, word_of(stage, 0))) {
    }
  }
  return -1;
}

void Stages::finish(uint32_t stage, int32_t total, int32_t count) {
  std::atomic<uint64_t>& word = unfinished(stage).value;
  uint64_t seen = word.load(std::memory_order_relaxed), next;
  do {
    next = word_of(stage, (age_of(seen, stage) ? uint32_t(total) : uint32_t(seen)) - count);
  } while (!word.compare_exchange_weak(seen, next, std::memory_order_seq_cst));
  if (uint32_t(next) == 0 && sleepers_.load(std::memory_order_seq_cst))
    futex(&word, FUTEX_WAKE, INT_MAX);
}

bool Stages::is_over(uint32_t stage, std::memory_order order) {
  const uint64_t seen = unfinished(stage).value.load(order);
  return age_of(seen, stage) < 0 || seen == word_of(stage, 0);
}

// NOTE: the kernel watches the lower half of the word, the chunks left: this needs a little-endian
// machine. A nap ends by itself, so a word that belongs to an earlier stage yet does no harm.
void Stages::wait(uint32_t stage) {
  for (int i = 0; i < kStageSpins; ++i) {
    if (is_over(stage, std::memory_order_acquire)) return;
    pause();
  }
  const int64_t start = clock_ns();
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  for (;;) {
    const uint64_t seen = unfinished(stage).value.load(std::memory_order_seq_cst);
    if (age_of(seen, stage) < 0 || seen == word_of(stage, 0)) break;
    futex(&unfinished(stage).value, FUTEX_WAIT, uint32_t(seen), &kNap);
  }
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
  if (clock_ns() - start > kStall) stalled_.store(true, std::memory_order_relaxed);
}

Threads::Threads(int members, std::vector<int> cpus)
    : members_(members), cpus_(std::move(cpus)), stages_(members) {
  for (int member = 1; member < members_; ++member)
    threads_.emplace_back([this, member] { serve(member); });
}

Threads::~Threads() {
  stop_.store(true);
  start_.raise();
  for (std::thread& thread : threads_) thread.join();
}

// Alone, the caller may go where there is room.
void Threads::pin_caller(bool alone) {
  const int64_t id = alone ? -thread_id() : thread_id();
  if (cpus_.empty() || id == pinned_ || std::abs(id) == getpid()) return;
  pin(cpus_.data(), alone ? cpus_.size() : 1);
  pinned_ = id;
}

bool Threads::is_alone() {
  if (members_ == 1 || alone_until_ == 0) return members_ == 1;
  if (clock_ns() < alone_until_) return true;
  alone_until_ = 0;
  return false;
}

void Threads::judge(bool alone) {
  if (alone) return;
  if (!stages_.take_stall()) {
    strikes_ -= strikes_ > 0 && ++calm_ % 16 == 0;
    return;
  }
  strikes_ = std::min(strikes_ + 1, kMostStrikes);
  alone_until_ = clock_ns() + (kAlone << strikes_);
}

void Threads::run(Job job, void* context) {
  const bool alone = is_alone();
  pin_caller(alone && members_ > 1);
  job_ = job;
  context_ = context;
  if (!alone) start_.raise();
  job(context, 0);
  judge(alone);
}

void Threads::serve(int member) {
  if (!cpus_.empty()) pin(&cpus_[member % cpus_.size()], 1);
  uint32_t seen = 0;
  for (;;) {
    start_.wait(seen, kJobSpins);
    seen = start_.value();
    if (stop_.load()) return;
    job_.load()(context_.load(), member);
  }
}

std::vector<int> available_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (sched_getaffinity(getpid(), sizeof set, &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  return cpus;
}

}  // namespace edgeserve
