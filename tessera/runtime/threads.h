#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace tessera::runtime {

/// Thread pool; idle threads sleep, and the calling thread takes part in the work.
///
/// Concurrent and nested calls are allowed: one of them gets the other threads, the rest run on
/// their calling thread alone. So does the child of a fork(), which has none of these threads; it
/// must not destroy the pool.
class Threads {
 public:
  /// A pool of so many threads, the caller's among them.
  explicit Threads(int count);
  ~Threads();
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  int count() const;

  /// A parallel loop: `run(context, first, last, scratch)` is called for chunks that cover [0,
  /// count). A chunk that does not return 0 stops the loop, and its result is the result.
  struct Work {
    int (*run)(const void* context, std::int64_t first, std::int64_t last,
               std::byte* scratch) = nullptr;
    const void* context = nullptr;
    std::int64_t count = 0;
    std::int64_t chunk = 1;  // chunks are multiples of it
    /// Scratch bytes per thread, aligned to 128; kept between calls. Work with scratch must not
    /// start other work with scratch: a thread has one.
    std::int64_t scratch_bytes = 0;
  };
  /// Runs the loop on up to `threads` threads; with 1 on this thread alone, without locks. Throws
  /// std::bad_alloc before it begins if scratch cannot be allocated.
  int run(const Work& work, int threads);

  /// Scope in which idle threads spin for a while before they sleep, for the time between
  /// consecutive steps. They stop early where spinning is in vain, or where another process needs
  /// their core.
  class Burst {
   public:
    explicit Burst(Threads& threads);
    ~Burst();
    Burst(const Burst&) = delete;
    Burst& operator=(const Burst&) = delete;

   private:
    Threads& threads_;
  };

  /// Scratch memory of the calling thread, at least this much, aligned to 128.
  static std::byte* scratch(std::int64_t bytes);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Thread pool of the process: one thread per physical core.
Threads& process_threads();

}  // namespace tessera::runtime
