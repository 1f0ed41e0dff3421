#pragma once

#include <chrono>
#include <utility>

namespace tessera {

/// How long something takes, in seconds of a clock on the wall.
class Stopwatch {
 public:
  /// Since it was made, or since the last lap.
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

  /// The same, and begins anew.
  double lap() {
    const Clock::time_point now = Clock::now();
    return std::chrono::duration<double>(now - std::exchange(start_, now)).count();
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

}  // namespace tessera
