#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace tessera::runtime {

/// Threads that sleep when idle. The thread that asks for work does its share of it.
///
/// Several threads may ask at the same time, and work may ask for work: one gets the others, the
/// rest do theirs alone. So does the child of a fork(), which has none of these threads; it must
/// not destroy them.
class Threads {
 public:
  /// As many as asked for, the caller's among them.
  explicit Threads(int count);
  ~Threads();
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  int count() const;

  /// One piece of work: `run(context, first, last, scratch)` for parts of [0, count) that together
  /// are all of it. A part that does not return 0 ends the work, and its result is the result.
  struct Work {
    int (*run)(const void* context, std::int64_t first, std::int64_t last,
               std::byte* scratch) = nullptr;
    const void* context = nullptr;
    std::int64_t count = 0;
    std::int64_t chunk = 1;  // parts are multiples of it
    /// Of each thread, aligned to 128; kept between calls. Work with scratch must not ask for other
    /// work with scratch: a thread has one.
    std::int64_t scratch_bytes = 0;
  };
  /// Runs it on up to `threads` threads; with 1 on this thread alone, without any locks. Throws
  /// std::bad_alloc before the work begins if there is no memory for scratch.
  int run(const Work& work, int threads);

  /// While one lives, threads without work look for some a while longer before they sleep: for the
  /// time between steps that follow each other. They give up early where that is in vain, or where
  /// someone else needs their core.
  class Burst {
   public:
    explicit Burst(Threads& threads);
    ~Burst();
    Burst(const Burst&) = delete;
    Burst& operator=(const Burst&) = delete;

   private:
    Threads& threads_;
  };

  /// The scratch memory of the calling thread, at least this much, aligned to 128.
  static std::byte* scratch(std::int64_t bytes);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The threads of the process: one per physical core.
Threads& process_threads();

}  // namespace tessera::runtime
