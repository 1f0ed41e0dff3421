#include "tessera/report/graphviz.h"

#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <thread>

namespace tessera::report {
namespace {

Diagnostic no_graphviz(std::string message) {
  return {.id = "picture-graphviz",
          .message = std::move(message),
          .note = "a .svg picture is drawn by the program dot of Graphviz",
          .help = "install Graphviz, or ask for a .dot file"};
}

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

/// Exit status of a child process; none if it runs for longer, and is killed.
std::optional<int> wait_for(pid_t child, double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::duration<double>(seconds);
  int status = 0;
  while (true) {
    if (Clock::now() >= deadline) break;
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child) return status;
    if (ended < 0 && errno != EINTR) return std::nullopt;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  kill(child, SIGKILL);
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return std::nullopt;
}

}  // namespace

Expected<std::string> run_dot(const std::string& dot, const DotOptions& options) {
  const std::unique_ptr<std::FILE, Close> in(std::tmpfile()), out(std::tmpfile());
  if (!in || !out || std::fwrite(dot.data(), 1, dot.size(), in.get()) != dot.size() ||
      std::fflush(in.get()) != 0)
    return no_graphviz(fmt::format("cannot create a picture: {}", std::strerror(errno)));
  std::rewind(in.get());
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, fileno(in.get()), 0);
  posix_spawn_file_actions_adddup2(&files, fileno(out.get()), 1);
  std::string words[] = {"dot", "-T" + options.format};
  char* arguments[] = {words[0].data(), words[1].data(), nullptr};
  pid_t child = 0;
  const int error = posix_spawnp(&child, "dot", &files, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) return no_graphviz(fmt::format("dot does not start: {}", std::strerror(error)));
  const std::optional<int> status = wait_for(child, options.seconds);
  if (!status || !WIFEXITED(*status) || WEXITSTATUS(*status) != 0)
    return no_graphviz("dot draws no picture");
  std::rewind(out.get());
  std::string text;
  char buffer[1 << 14];
  while (const std::size_t read = std::fread(buffer, 1, sizeof buffer, out.get()))
    text.append(buffer, read);
  return text;
}

}  // namespace tessera::report
