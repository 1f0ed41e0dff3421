#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <thread>

namespace tessera::prove {

/// Deadline: a cancellation flag that is raised when a time limit is over, or when another flag is.
class Alarm {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Alarm(const std::atomic<bool>* outer)
      : outer_(outer), watch_([this](auto token) {
          std::mutex mutex;
          std::condition_variable_any sleeper;
          std::unique_lock lock(mutex);
          while (!token.stop_requested()) {
            if (Clock::now().time_since_epoch().count() > deadline_ || over()) rung_ = true;
            sleeper.wait_for(lock, token, std::chrono::milliseconds(20), [] { return false; });
          }
        }) {}

  void set(double seconds) {
    const auto span =
        std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    deadline_ = (Clock::now() + span).time_since_epoch().count();
    rung_ = false;
  }
  const std::atomic<bool>* flag() const { return &rung_; }
  /// Whether the outer flag is raised.
  bool over() const { return outer_ != nullptr && *outer_; }

 private:
  const std::atomic<bool>* outer_;
  std::atomic<Clock::rep> deadline_ = std::numeric_limits<Clock::rep>::max();
  std::atomic<bool> rung_ = false;
  std::jthread watch_;
};

}  // namespace tessera::prove
