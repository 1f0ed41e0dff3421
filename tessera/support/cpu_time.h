#pragma once

#include <pthread.h>

#include <ctime>

namespace tessera {

/// CPU clock of the calling thread, which other threads may read while it lives.
inline clockid_t thread_cpu_clock() {
  clockid_t clock = CLOCK_THREAD_CPUTIME_ID;
  pthread_getcpuclockid(pthread_self(), &clock);
  return clock;
}

/// Timer of CPU time, in seconds; other load on the machine does not count.
class CpuStopwatch {
 public:
  explicit CpuStopwatch(clockid_t clock = CLOCK_THREAD_CPUTIME_ID) : clock_(clock) {}

  /// Seconds since construction.
  double seconds() const { return now(clock_) - start_; }

 private:
  static double now(clockid_t clock) {
    timespec time{};
    clock_gettime(clock, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  }

  clockid_t clock_;
  double start_ = now(clock_);
};

}  // namespace tessera
