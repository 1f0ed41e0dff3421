#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <thread>

#include "tessera/support/cpu_time.h"

namespace tessera::prove {

/// Time limit: a cancellation flag that is raised when the thread that made it has used so much CPU
/// time, or when another flag is raised. What it limits ends the same way on a machine under load.
class Alarm {
 public:
  explicit Alarm(const std::atomic<bool>* outer)
      : outer_(outer), watch_([this](auto token) {
          std::condition_variable_any sleeper;
          std::unique_lock lock(mutex_);
          while (!token.stop_requested()) {
            if (used_.seconds() > limit_ || over()) rung_ = true;
            sleeper.wait_for(lock, token, std::chrono::milliseconds(20), [] { return false; });
          }
        }) {}

  /// Starts anew: the flag is not raised before so many seconds are used.
  void set(double seconds) {
    const std::lock_guard lock(mutex_);
    used_ = CpuStopwatch(clock_);
    limit_ = seconds;
    rung_ = false;
  }
  const std::atomic<bool>* flag() const { return &rung_; }
  /// Whether the outer flag is raised.
  bool over() const { return outer_ != nullptr && *outer_; }

 private:
  const std::atomic<bool>* outer_;
  const clockid_t clock_ = thread_cpu_clock();
  std::mutex mutex_;  // of the time and its limit: none of them is that of the last call
  CpuStopwatch used_{clock_};
  double limit_ = std::numeric_limits<double>::infinity();
  std::atomic<bool> rung_ = false;
  std::jthread watch_;
};

}  // namespace tessera::prove
