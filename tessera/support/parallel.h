#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "tessera/support/expected.h"

namespace tessera {

/// Runs `work` on this thread and on up to `threads` - 1 others, and waits for all of them. The
/// first exception is thrown again here. Where the system has no more threads, fewer do the work.
void on_threads(std::size_t threads, const std::function<void()>& work);

/// Options of in_parallel.
struct ParallelOptions {
  int threads = 1;
  const std::atomic<bool>* stop = nullptr;
  std::function<void(std::size_t item)> done = {};  // called after each item, never concurrently
};

/// Parallel map: make(0), make(1), … on several threads, until all items exist, one fails, or
/// `stop` is set (`stopped`). Items start in order and every started item finishes, so the reported
/// failure is deterministic.
template <class T>
Expected<std::vector<T>> in_parallel(std::size_t count,
                                     const std::function<Expected<T>(std::size_t)>& make,
                                     const ParallelOptions& options) {
  std::vector<std::optional<Expected<T>>> results(count);
  std::atomic<std::size_t> next = 0;
  std::atomic<bool> failed = false;
  std::mutex mutex;
  const auto is_stopped = [&] { return options.stop != nullptr && options.stop->load(); };
  const auto made_or_failed = [&](std::size_t i) {
    try {
      return make(i);
    } catch (...) {
      failed = true;
      throw;
    }
  };
  const auto work = [&] {
    while (!failed && !is_stopped()) {
      const std::size_t i = next++;
      if (i >= count) return;
      auto made = made_or_failed(i);
      if (!made) failed = true;
      const std::lock_guard lock(mutex);
      results[i] = std::move(made);
      if (options.done) options.done(i);
    }
  };
  on_threads(std::min(static_cast<std::size_t>(std::max(options.threads, 1)), count), work);
  if (is_stopped()) return Diagnostic{.id = "stopped", .message = "the compilation was stopped"};
  std::vector<T> all;
  for (auto& result : results) {
    TESSERA_TRY(T made, *std::move(result));
    all.push_back(std::move(made));
  }
  return all;
}

}  // namespace tessera
