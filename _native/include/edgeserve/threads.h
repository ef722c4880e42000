// A team of threads that run one function together and meet at barriers.
//
// The calling thread is member 0; members 1.. are persistent and pinned when asked. They spin for a
// while after a job, then park: an idle team uses no CPU. One caller at a time.
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

class Barrier {
 public:
  explicit Barrier(int members) : members_(members) {}
  void wait();

 private:
  const int members_;
  alignas(64) std::atomic<int32_t> arrived_{0};
  alignas(64) Signal gone_;
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
  void run(Job job, void* context);  // returns when all members are done
  void barrier() {
    if (members_ > 1) barrier_.wait();
  }

 private:
  void serve(int member);
  void pin_caller();

  const int members_;
  const std::vector<int> cpus_;
  Barrier barrier_;
  Signal start_;
  Job job_ = nullptr;
  void* context_ = nullptr;
  std::atomic<bool> stop_{false};
  int64_t pinned_ = 0;  // thread id of the last caller that was pinned
  std::vector<std::thread> threads_;
};

// CPUs this process may use, in order.
std::vector<int> available_cpus();

}  // namespace edgeserve
