#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

namespace tessera::tune {

/// Limits of a worker process.
struct WorkerLimits {
  double timeout_seconds = 20;
  const std::atomic<bool>* stop = nullptr;
  /// Time in seconds that the timeout is counted in; the steady clock unless a test gives another.
  std::function<double()> clock = {};
};

/// Output of a worker process.
struct WorkerOutput {
  enum class Status : std::uint8_t { Done, Crashed, TimedOut, Stopped };
  Status status = Status::Done;
  std::string text = {};
};

/// Runs a function in a forked process and returns what it returned. A crash, or more time than the
/// limit, ends that process alone.
WorkerOutput run_in_worker(const std::function<std::string()>& work, const WorkerLimits& limits);

/// Worker process that answers requests one after the other, for work that is expensive to begin
/// with, such as measurements on a GPU. One that crashes, exceeds its time or returns none is
/// ended, and the next request starts another one.
class RequestWorker {
 public:
  /// Called in the worker process with a request.
  using Work = std::function<std::optional<std::string>(const std::string& request)>;
  explicit RequestWorker(Work work) : work_(std::move(work)) {}
  RequestWorker(const RequestWorker&) = delete;
  RequestWorker& operator=(const RequestWorker&) = delete;
  ~RequestWorker() { end(); }

  WorkerOutput ask(const std::string& request, const WorkerLimits& limits);

 private:
  bool start();
  void end();

  Work work_;
  int child_ = 0;  // process id; 0: there is none
  int socket_ = -1;
};

}  // namespace tessera::tune
