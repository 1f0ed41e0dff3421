#include "tessera/tune/worker.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>

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

/// Length of a message, in the digits before it.
constexpr std::size_t kLengthDigits = 10;

std::string message(const std::string& text) {
  std::string length = std::to_string(text.size());
  return std::string(kLengthDigits - length.size(), '0') + length + text;
}

/// Whether what was read has a whole message; without its length then.
bool take_message(std::string& read) {
  std::size_t length = 0;
  if (read.size() < kLengthDigits) return false;
  std::from_chars(read.data(), read.data() + kLengthDigits, length);
  if (read.size() < kLengthDigits + length) return false;
  read.erase(0, kLengthDigits);
  return true;
}

/// Sends all of a text; a peer that has ended is no signal.
bool send_all(int to, const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t sent = ::send(to, text.data() + at, text.size() - at, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    at += static_cast<std::size_t>(sent);
  }
  return true;
}

/// Reads until the text is complete or the other end is closed, or a limit is reached.
WorkerOutput read_until_end(int from, const WorkerLimits& limits,
                            const std::function<bool()>& is_late,
                            const std::function<bool(std::string&)>& is_complete) {
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
    if (is_complete(output.text)) return output;
  }
}

void wait_for(pid_t child, int& status) {
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
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
  WorkerOutput output = read_until_end(
      pipe_ends[0], limits, [&] { return now() > deadline; }, [](std::string&) { return false; });
  ::close(pipe_ends[0]);
  if (output.status != WorkerOutput::Status::Done) ::kill(child, SIGKILL);
  int status = 0;
  wait_for(child, status);
  if (output.status == WorkerOutput::Status::Done &&
      (!WIFEXITED(status) || WEXITSTATUS(status) != 0))
    output.status = WorkerOutput::Status::Crashed;
  return output;
}

bool RequestWorker::start() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return false;
  child_ = ::fork();
  if (child_ < 0) {
    ::close(ends[0]);
    ::close(ends[1]);
    child_ = 0;
    return false;
  }
  if (child_ > 0) {
    ::close(ends[1]);
    socket_ = ends[0];
    return true;
  }
  ::close(ends[0]);
  std::string read;
  while (true) {
    char buffer[4096];
    const ssize_t count = ::read(ends[1], buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) ::_exit(0);  // nobody asks any more
    read.append(buffer, static_cast<std::size_t>(count));
    if (!take_message(read)) continue;
    const std::optional<std::string> answer = work_(std::exchange(read, {}));
    if (!answer || !send_all(ends[1], message(*answer))) ::_exit(1);
  }
}

void RequestWorker::end() {
  if (child_ == 0) return;
  ::close(socket_);
  ::kill(child_, SIGKILL);
  int status = 0;
  wait_for(child_, status);
  child_ = 0;
}

WorkerOutput RequestWorker::ask(const std::string& request, const WorkerLimits& limits) {
  const Stopwatch watch;
  const auto now = [&] { return limits.clock ? limits.clock() : watch.seconds(); };
  const double deadline = now() + limits.timeout_seconds;
  WorkerOutput output{.status = WorkerOutput::Status::Crashed};
  if (child_ == 0 && !start()) return output;
  bool is_whole = false;
  if (send_all(socket_, message(request)))
    output = read_until_end(
        socket_, limits, [&] { return now() > deadline; },
        [&](std::string& read) { return is_whole = take_message(read); });
  if (output.status == WorkerOutput::Status::Done && !is_whole)
    output.status = WorkerOutput::Status::Crashed;
  if (output.status != WorkerOutput::Status::Done) end();
  return output;
}

}  // namespace tessera::tune
