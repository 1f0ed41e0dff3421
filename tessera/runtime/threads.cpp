#include "tessera/runtime/threads.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <new>
#include <span>
#include <system_error>
#include <thread>
#include <vector>

#include "tessera/machine/machine.h"

namespace tessera::runtime {
namespace {

constexpr std::size_t kCacheLine = 128;  // two lines, because they are prefetched in pairs
constexpr std::size_t kHugePage = 2 << 20;
constexpr std::int64_t kMostScratchBytes = std::int64_t{1} << 40;  // more is an error

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;

/// Spin time before a thread sleeps: about the time to wake one.
constexpr microseconds kPatience{3};
/// Spin time between consecutive steps: as long as a step on one thread may take.
constexpr microseconds kBurstPatience{64};
/// A gap between two polls of at least this means that another process uses the core.
constexpr microseconds kUnseen{20};

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");
#endif
}

/// Waits until the value changes; returns the new one.
int wait_for_change(const std::atomic<int>& value, int old, microseconds patience = kPatience) {
  const auto start = Clock::now();
  for (auto last = start; value.load(std::memory_order_acquire) == old;) {
    relax();
    const auto now = Clock::now();
    if (now - start > patience || now - last > kUnseen) {
      value.wait(old, std::memory_order_acquire);
      break;
    }
    last = now;
  }
  return value.load(std::memory_order_acquire);
}

/// Growing scratch memory of one thread.
class Scratch {
 public:
  Scratch() = default;
  ~Scratch() { std::free(memory_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  /// Null if the allocation fails.
  std::byte* at_least(std::int64_t bytes) {
    if (bytes > size_) grow(bytes);
    return memory_;
  }

 private:
  void grow(std::int64_t bytes) {
    std::free(memory_);
    memory_ = nullptr;
    size_ = 0;
    if (bytes > kMostScratchBytes) return;
    const bool large = bytes >= static_cast<std::int64_t>(kHugePage);
    const std::size_t unit = large ? kHugePage : kCacheLine;
    const std::size_t size = (static_cast<std::size_t>(bytes) + unit - 1) / unit * unit;
    memory_ = static_cast<std::byte*>(std::aligned_alloc(unit, size));
    if (memory_ == nullptr) return;
    size_ = static_cast<std::int64_t>(size);
    // Huge pages: a panel spans hundreds of small pages, which exceeds the TLB.
    if (large) madvise(memory_, size, MADV_HUGEPAGE);
  }

  std::byte* memory_ = nullptr;
  std::int64_t size_ = 0;
};

Scratch& thread_scratch() {
  thread_local Scratch scratch;
  return scratch;
}

/// A parallel loop in progress.
struct Job {
  const Threads::Work& work;
  std::int64_t shares;  // a chunk is at most this fraction of the rest
  alignas(kCacheLine) std::atomic<std::int64_t> next = 0;
  std::atomic<int> result = 0;

  /// Guided scheduling: large chunks first, to have few, and small ones last, so that all threads
  /// finish together.
  void take_part(std::byte* scratch) {
    const std::int64_t count = work.count, chunk = std::max<std::int64_t>(work.chunk, 1);
    std::int64_t first = next.load(std::memory_order_relaxed);
    while (first < count) {
      const std::int64_t chunks = std::max<std::int64_t>((count - first) / shares / chunk, 1);
      const std::int64_t last = count - first > chunks * chunk ? first + chunks * chunk : count;
      if (!next.compare_exchange_weak(first, last, std::memory_order_relaxed)) continue;
      if (const int failed = work.run(work.context, first, last, scratch); failed != 0) {
        int none = 0;
        result.compare_exchange_strong(none, failed, std::memory_order_relaxed);
        next.store(count, std::memory_order_relaxed);
      }
      first = next.load(std::memory_order_relaxed);
    }
  }
};

/// State of a worker. The caller posts work, and withdraws it if all chunks were taken before the
/// worker woke; only the worker sets Running.
enum Turn : int { kIdle, kPosted, kRunning, kStop };

struct alignas(kCacheLine) Worker {
  std::atomic<int> turn = kIdle;
  Job* job = nullptr;
  std::thread thread;

  void live(const std::atomic<int>& bursts) {
    // The next gap is expected to be as long as the last one.
    bool short_gap = true;
    const auto next = [&] {
      if (bursts.load(std::memory_order_relaxed) == 0) return wait_for_change(turn, kIdle);
      const auto start = Clock::now();
      const int now = wait_for_change(turn, kIdle, short_gap ? kBurstPatience : kPatience);
      short_gap = Clock::now() - start < 2 * kBurstPatience;
      return now;
    };
    for (int now = kIdle; now != kStop; now = next()) {
      int posted = kPosted;
      if (!turn.compare_exchange_strong(posted, kRunning, std::memory_order_acquire)) continue;
      std::byte* scratch = thread_scratch().at_least(job->work.scratch_bytes);
      // If the allocation fails, the other threads do the work.
      if (scratch != nullptr || job->work.scratch_bytes == 0) job->take_part(scratch);
      turn.store(kIdle, std::memory_order_release);
      turn.notify_one();
    }
  }

  void post(Job& work) {
    job = &work;
    turn.store(kPosted, std::memory_order_release);
    turn.notify_one();
  }

  /// Returns when the worker has finished its job, or will never begin.
  void finish() {
    int now = kPosted;
    if (turn.compare_exchange_strong(now, kIdle, std::memory_order_acquire)) return;
    while (now == kRunning) now = wait_for_change(turn, kRunning);
  }

  void stop() {
    turn.store(kStop, std::memory_order_release);
    turn.notify_one();
    thread.join();
  }
};

}  // namespace

struct Threads::State {
  std::vector<Worker> workers;
  std::atomic<bool> busy = false;
  alignas(kCacheLine) std::atomic<int> bursts = 0;
};

Threads::Threads(int count) : state_(std::make_unique<State>()) {
  constexpr int kMost = 1024;
  state_->workers = std::vector<Worker>(static_cast<std::size_t>(std::clamp(count, 1, kMost) - 1));
  try {
    for (Worker& worker : state_->workers)
      worker.thread = std::thread([&worker, &bursts = state_->bursts] { worker.live(bursts); });
  } catch (const std::system_error&) {
    // If the system allows no more threads, fewer do the work. Work is posted to the first ones;
    // threads that were never started never take it.
  }
}

Threads::~Threads() {
  for (Worker& worker : state_->workers)
    if (worker.thread.joinable()) worker.stop();
}

int Threads::count() const {
  return static_cast<int>(state_->workers.size()) + 1;
}

int Threads::run(const Work& work, int threads) {
  if (work.count <= 0) return 0;
  std::byte* own = scratch(work.scratch_bytes);
  if (threads <= 1 || work.count <= work.chunk || state_->busy.exchange(true))
    return work.run(work.context, 0, work.count, own);

  const std::int64_t chunks = (work.count - 1) / std::max<std::int64_t>(work.chunk, 1) + 1;
  const std::int64_t others = std::min({chunks, std::int64_t{threads}, std::int64_t{count()}}) - 1;
  Job job{.work = work, .shares = 2 * (others + 1)};
  const auto workers = std::span(state_->workers).first(static_cast<std::size_t>(others));
  for (Worker& worker : workers) worker.post(job);
  job.take_part(own);
  for (Worker& worker : workers) worker.finish();
  state_->busy.store(false);
  return job.result.load(std::memory_order_relaxed);
}

Threads::Burst::Burst(Threads& threads) : threads_(threads) {
  threads_.state_->bursts.fetch_add(1, std::memory_order_relaxed);
}

Threads::Burst::~Burst() {
  threads_.state_->bursts.fetch_sub(1, std::memory_order_relaxed);
}

std::byte* Threads::scratch(std::int64_t bytes) {
  std::byte* memory = thread_scratch().at_least(bytes);
  if (memory == nullptr && bytes > 0) throw std::bad_alloc();
  return memory;
}

Threads& process_threads() {
  // Never destroyed: work may run until the end of the process.
  // NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): one per process
  static auto* const threads = new Threads(machine::host().cores);
  return *threads;
}

}  // namespace tessera::runtime
