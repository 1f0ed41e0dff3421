#include "tests/support/command.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>

namespace tessera::testing {
namespace fs = std::filesystem;

Outcome run_command(const fs::path& program, const std::vector<std::string>& arguments,
                    const fs::path& folder) {
  static const TemporaryFolder cache;  // not the user's, which other tests use at the same time
  const TemporaryFolder streams;
  std::vector<std::string> words = {program.string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const std::string out = streams.path() / "out", err = streams.path() / "err";

  const pid_t child = ::fork();
  if (child == 0) {
    const int flags = O_WRONLY | O_CREAT | O_TRUNC;
    ::dup2(::open("/dev/null", O_RDONLY), STDIN_FILENO);
    ::dup2(::open(out.c_str(), flags, 0600), STDOUT_FILENO);
    ::dup2(::open(err.c_str(), flags, 0600), STDERR_FILENO);
    ::setenv("XDG_CACHE_HOME", cache.path().c_str(), 1);
    if (::chdir(folder.c_str()) == 0) ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  int status = 0;
  rusage usage{};
  ::wait4(child, &status, 0, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return {.exit_code = WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status),
          .out = content_of(out),
          .err = content_of(err),
          .cpu_seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime),
          .peak_bytes = std::int64_t{usage.ru_maxrss} * 1024};
}

TemporaryFolder::TemporaryFolder() {
  std::string name = (fs::temp_directory_path() / "tessera-test-XXXXXX").string();
  EXPECT_NE(::mkdtemp(name.data()), nullptr) << name;
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

void TemporaryFolder::write(const std::string& name, const std::string& content) const {
  std::ofstream(path_ / name, std::ios::binary) << content;
}

std::string TemporaryFolder::read(const std::string& name) const {
  return content_of(path_ / name);
}

std::vector<std::string> TemporaryFolder::files() const {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(path_))
    names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

std::string content_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace tessera::testing
