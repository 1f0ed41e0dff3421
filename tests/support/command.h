#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tessera::testing {

/// What became of a command.
struct Outcome {
  int exit_code = 0;  // minus the signal that ended it
  std::string out, err;
  double cpu_seconds = 0;       // of all its threads, whatever else the machine runs
  std::int64_t peak_bytes = 0;  // of resident memory
};

/// Runs a program in a folder and waits for its end. Its cache of object code and measurements is
/// one of this process.
Outcome run_command(const std::filesystem::path& program, const std::vector<std::string>& arguments,
                    const std::filesystem::path& folder);

/// A folder of its own for one test, gone with it.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  void write(const std::string& name, const std::string& content) const;
  std::string read(const std::string& name) const;
  /// The names of the files in it, sorted.
  std::vector<std::string> files() const;

 private:
  std::filesystem::path path_;
};

/// The content of a file; one that is not there fails the test.
std::string content_of(const std::filesystem::path& path);

}  // namespace tessera::testing
