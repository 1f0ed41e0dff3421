#pragma once

#include <chrono>
#include <utility>

namespace tessera {

/// Wall-clock timer, in seconds.
class Stopwatch {
 public:
  /// Seconds since construction or since the last lap.
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

  /// Returns seconds() and restarts the timer.
  double lap() {
    const Clock::time_point now = Clock::now();
    return std::chrono::duration<double>(now - std::exchange(start_, now)).count();
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

}  // namespace tessera
