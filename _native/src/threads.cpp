#include "edgeserve/threads.h"

#include <climits>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace edgeserve {
namespace {

// Pauses before a thread stops spinning. One pause is 10 to 45 ns: a member that lost its core must
// not keep the others burning theirs.
constexpr int kBarrierSpins = 4000;
constexpr int kJobSpins = 8000;
constexpr int kYields = 20;

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

void futex(std::atomic<uint32_t>* word, int operation, uint32_t value) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(word), operation | FUTEX_PRIVATE_FLAG, value,
          nullptr, nullptr, 0);
}

int64_t thread_id() { return syscall(SYS_gettid); }

void pin(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
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

void Barrier::wait() {
  const uint32_t seen = gone_.value();
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == members_) {
    arrived_.store(0, std::memory_order_relaxed);
    gone_.raise();
  } else {
    gone_.wait(seen, kBarrierSpins);
  }
}

Threads::Threads(int members, std::vector<int> cpus)
    : members_(members), cpus_(std::move(cpus)), barrier_(members) {
  for (int member = 1; member < members_; ++member)
    threads_.emplace_back([this, member] { serve(member); });
}

Threads::~Threads() {
  stop_.store(true);
  start_.raise();
  for (std::thread& thread : threads_) thread.join();
}

void Threads::pin_caller() {
  const int64_t id = thread_id();
  if (cpus_.empty() || id == pinned_ || id == getpid()) return;
  pin(cpus_[0]);
  pinned_ = id;
}

void Threads::run(Job job, void* context) {
  pin_caller();
  job_ = job;
  context_ = context;
  if (members_ > 1) start_.raise();
  job(context, 0);
  barrier();
}

void Threads::serve(int member) {
  if (!cpus_.empty()) pin(cpus_[member % cpus_.size()]);
  uint32_t seen = 0;
  for (;;) {
    start_.wait(seen, kJobSpins);
    ++seen;
    if (stop_.load()) return;
    job_(context_, member);
    barrier();
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
