// A team of threads that run one function together, stage by stage.
//
// The calling thread is member 0; members 1.. are persistent and pinned when asked. They spin for a
// while after a job, then park: an idle team uses no CPU. One caller at a time.
//
// A stage is some chunks of work. Each member has a static share of them, the same at every step, so
// that weights stay in its caches; who is done takes what a late member has not begun. A member that
// lost its core thus holds up the others by one chunk at most, and when that happens the caller works
// alone for a while.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace edgeserve {

// A counter to wait on: spins first, then yields, then sleeps in the kernel until it changes.
class Signal {
 public:
  uint32_t value() const { return value_.load(std::memory_order_acquire); }
  void raise();                        // adds 1 and wakes all that wait
  void wait(uint32_t seen, int spins);  // until value() != seen

 private:
  std::atomic<uint32_t> value_{0};
  std::atomic<int32_t> sleepers_{0};
};

// The stages that are going on. A stage has a number; numbers only grow. All words carry the number
// of the stage they belong to, so nothing is ever reset, and a member that comes late finds that its
// stage is over.
class Stages {
 public:
  static constexpr uint32_t kAtOnce = 8;  // stages that may be unfinished at a time

  explicit Stages(int members);
  // A chunk of [0, total) that nobody else gets: of the member's own share first, in order. -1: all
  // are taken. Every member that passes a stage must ask until it gets -1.
  int32_t take(uint32_t stage, int32_t total, int member);
  // `count` chunks that were taken are done.
  void finish(uint32_t stage, int32_t total, int32_t count);
  void wait(uint32_t stage);  // until all chunks are done
  // Whether a member waited for long, as when another lost its core; clears the mark.
  bool take_stall() { return stalled_.exchange(false, std::memory_order_relaxed); }

 private:
  struct alignas(64) Word {
    std::atomic<uint64_t> value{0};  // stage in the upper half, chunks left in the lower
  };
  Word& left(uint32_t stage, int owner) {
    return words_[size_t(stage % kAtOnce) * (members_ + 1) + 1 + owner];
  }
  Word& unfinished(uint32_t stage) { return words_[size_t(stage % kAtOnce) * (members_ + 1)]; }
  bool is_over(uint32_t stage, std::memory_order order);

  const uint32_t members_;
  std::vector<Word> words_;
  alignas(64) std::atomic<int32_t> sleepers_{0};
  std::atomic<bool> stalled_{false};
};

class Threads {
 public:
  // `cpus`: where member i is pinned; empty: not pinned. The caller of run() is pinned at its first
  // call unless it is the main thread of the process, whose children would inherit that.
  Threads(int members, std::vector<int> cpus);
  ~Threads();
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  using Job = void (*)(void* context, int member);
  int members() const { return members_; }
  // Calls job on this thread and, unless they were late of late, on the others. Returns when it
  // returns here: the job itself waits for its stages. Others may return later.
  void run(Job job, void* context);
  Stages& stages() { return stages_; }

 private:
  void serve(int member);
  void pin_caller(bool alone);
  bool is_alone();
  void judge(bool alone);

  const int members_;
  const std::vector<int> cpus_;
  Stages stages_;
  Signal start_;
  std::atomic<Job> job_{nullptr};
  std::atomic<void*> context_{nullptr};
  std::atomic<bool> stop_{false};
  int64_t pinned_ = 0;  // thread id of the last caller that was pinned
  int64_t alone_until_ = 0;  // ns of the steady clock
  int strikes_ = 0;          // how often working together stalled of late
  uint32_t calm_ = 0;        // runs together without a stall
  std::vector<std::thread> threads_;
};

// CPUs this process may use, in order.
std::vector<int> available_cpus();

}  // namespace edgeserve
