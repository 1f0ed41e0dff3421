#include "tessera/tune/worker.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "tessera/support/stopwatch.h"

namespace tessera::tune {
namespace {

void write_all(int to, const std::string& text) {
  const char* at = text.data();
  for (std::size_t left = text.size(); left > 0;) {
    const ssize_t written = ::write(to, at, left);
    if (written <= 0) break;
    at += written;
    left -= static_cast<std::size_t>(written);
  }
}

/// Reads until the other end is closed, or a limit is reached.
WorkerOutput read_until_end(int from, const WorkerLimits& limits,
                            const std::function<bool()>& is_late) {
  constexpr int kPollMs = 50;
  WorkerOutput output;
  while (true) {
    if (limits.stop != nullptr && *limits.stop) {
      output.status = WorkerOutput::Status::Stopped;
      return output;
    }
    if (is_late()) {
      output.status = WorkerOutput::Status::TimedOut;
      return output;
    }
    pollfd wait{.fd = from, .events = POLLIN, .revents = 0};
    if (::poll(&wait, 1, kPollMs) <= 0) continue;
    char buffer[4096];
    const ssize_t count = ::read(from, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return output;
    output.text.append(buffer, static_cast<std::size_t>(count));
  }
}

}  // namespace

WorkerOutput run_in_worker(const std::function<std::string()>& work, const WorkerLimits& limits) {
  int pipe_ends[2];
  if (::pipe(pipe_ends) != 0) return {.status = WorkerOutput::Status::Crashed};
  const Stopwatch watch;
  const auto now = [&] { return limits.clock ? limits.clock() : watch.seconds(); };
  const double deadline = now() + limits.timeout_seconds;
  const pid_t child = ::fork();
  if (child < 0) {
    ::close(pipe_ends[0]);
    ::close(pipe_ends[1]);
    return {.status = WorkerOutput::Status::Crashed};
  }
  if (child == 0) {
    ::close(pipe_ends[0]);
    write_all(pipe_ends[1], work());
    ::_exit(0);
  }
  ::close(pipe_ends[1]);
  WorkerOutput output = read_until_end(pipe_ends[0], limits, [&] { return now() > deadline; });
  ::close(pipe_ends[0]);
  if (output.status != WorkerOutput::Status::Done) ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (output.status == WorkerOutput::Status::Done &&
      (!WIFEXITED(status) || WEXITSTATUS(status) != 0))
    output.status = WorkerOutput::Status::Crashed;
  return output;
}

}  // namespace tessera::tune
