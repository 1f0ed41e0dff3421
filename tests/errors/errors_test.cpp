/// A bad input and its exact diagnostic for every diagnostic id. A case is a folder beside this
/// file, named after the id or `id.what`, with
///
///   command    what is typed, without the name of the program; runs in a copy of the folder
///   expected   what is written to standard error, then the exit code
///
/// and the files that the command names. `TESSERA_UPDATE_GOLDEN=1` writes `expected` anew.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "tests/support/command.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using testing::content_of;
using testing::Outcome;
using testing::run_command;
using testing::TemporaryFolder;

const fs::path kSource = TESSERA_SOURCE_DIR;
const fs::path kCases = kSource / "tests" / "errors";

/// Diagnostics that no input of the command line brings about, and why.
const std::map<std::string, std::string> kOfTheLibraryAlone = {
    {"stopped", "the command line stops for the time limit only, and says so"},
    {"onnx-inexpressible", "every operator of the catalog has a name in ONNX or its extensions"},
    {"pass-changed-meaning", "passes are tested to keep the meaning; this one is for our own bugs"},
    {"graph-invalid", "readers build valid graphs; the verifier guards those built by hand"},
    {"eval-unbound-size", "the interpreter binds every size before it evaluates"},
    {"run-missing-result", "readers count the results of a node"},
    {"run-no-host-function", "a test of host functions compares them with the catalog"},
    {"guard-open", "a guard that cannot be told does not hold; nobody is asked to tell"},
    {"sizes-contradict", "part of a verdict: it says why there is no proof"},
    {"prove-unsupported", "part of a verdict: it says why there is no proof"},
    {"run-not-repeatable", "runs give the same bits; this one is for our own bugs"},
    {"picture-graphviz", "depends on the machine; tests/cli/rules_test.cpp looks at it"},
    {"output-unwritable", "depends on standard output; tests/cli/files_test.cpp looks at it"},
    {"cache-unusable", "depends on the disk; tests/runtime/object_cache_test.cpp looks at it"},
    {"cli-saved-program", "a case would be a binary file; tests/cli/compile_test.cpp looks at it"},
    {"store-damaged", "a case would be a binary file; tests/cost/store_test.cpp looks at it"},
    {"store-version", "a case would be a binary file; tests/cost/store_test.cpp looks at it"},
    {"store-no-target", "a case would be a binary file; tests/cost/model_test.cpp looks at it"},
    {"store-busy", "depends on another process; tests/cost/store_test.cpp looks at several"},
    {"compare-input", "the command line compares no programs of its own"},
    {"object-unloadable", "object code comes from the compiler or from the cache, which checks it"},
    {"tile-steps", "the command line sets no limit of steps; a time limit ends a kernel"},
    {"tile-memory", "tiles of the command line are within the interpreter's own limit"},
    {"tile-structure",
     "text is well formed once it is read; the verifier guards what is built by hand"},
    {"tile-control", "of the C++ kernel language; tests/tile/lang_test.cpp looks at it"},
    {"cost-model-malformed",
     "cost models are embedded by the build; tests/lower/cost_model_test.cpp looks at it"},
    {"schedule-size", "the command line gives every axis a size"},
    {"schedule-stage", "a definition of the command line is one stage"},
    {"lower-unsupported", "part of a report: such an operator is interpreted"},
    {"cuda-missing", "depends on the machine; tests/codegen/ptx_test.cpp looks at it"},
    {"cuda-driver", "depends on the machine; tests/codegen/gpu_test.cpp looks at it"},
    {"cuda-error", "depends on the machine"},
    {"compile-precision", "the command line accepts the names of precisions alone"},
    {"compile-target", "the command line accepts the names of targets alone"},
    {"cuda-capture", "depends on the machine"},
    {"cuda-graph", "depends on the machine"},
    {"tune-target", "depends on the machine"},
    {"cuda-grid", "depends on the machine"},
    {"cuda-memory", "depends on the machine"},
    {"cuda-architecture", "depends on the machine"},
    {"interrupted", "comes of Ctrl-C alone"},
    {"peer-failed", "depends on what ONNX Runtime makes of a model"},
    {"run-opaque-number", "the command line runs in floating point"},
    {"program-invalid", "a file that was changed is damaged first; tests/runtime looks at it"},
    {"program-cpu", "depends on the machine; tests/runtime/session_test.cpp looks at it"},
    {"program-memory", "depends on the machine"},
    {"program-swap", "depends on the disk; tests/runtime/session_test.cpp looks at it"},
    {"program-host", "the command line brings a host; tests/runtime/session_test.cpp looks at it"},
    {"program-argument", "readers check inputs first; tests/runtime/session_test.cpp looks at it"},
    {"program-kernel", "compiled kernels have no assertions; tests/runtime looks at it"},
};

std::vector<std::string> cases() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(kCases))
    if (entry.is_directory()) names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

std::string id_of(const std::string& name) {
  return name.substr(0, name.find('.'));
}

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream stream(line);
  return {std::istream_iterator<std::string>(stream), {}};
}

std::string answer(const Outcome& outcome) {
  return outcome.err + "exit code " + std::to_string(outcome.exit_code) + "\n";
}

class Errors : public ::testing::TestWithParam<std::string> {};

TEST_P(Errors, SaysWhatIsWrong) {
  const fs::path folder = kCases / GetParam();
  const TemporaryFolder copy;
  fs::copy(folder, copy.path(), fs::copy_options::recursive);
  const Outcome outcome =
      run_command(TESSERA_BINARY, words_of(content_of(folder / "command")), copy.path());
  if (std::getenv("TESSERA_UPDATE_GOLDEN") != nullptr)
    std::ofstream(folder / "expected") << answer(outcome);
  EXPECT_EQ(answer(outcome), content_of(folder / "expected"));
  EXPECT_NE(outcome.err.find("error[" + id_of(GetParam()) + "]: "), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Case, Errors, ::testing::ValuesIn(cases()), [](const auto& info) {
  return std::regex_replace(info.param, std::regex("[^A-Za-z0-9]"), "_");
});

TEST(DiagnosticIds, HaveACaseEach) {
  std::set<std::string> tested;
  for (const std::string& name : cases()) tested.insert(id_of(name));
  const std::regex pattern("\\bid = \"([a-z][a-z0-9_-]*)\"");
  for (const char* tree : {"tessera", "cli"})
    for (const auto& entry : fs::recursive_directory_iterator(kSource / tree)) {
      if (!entry.is_regular_file()) continue;
      const std::string text = content_of(entry.path());
      for (std::sregex_iterator it(text.begin(), text.end(), pattern), end; it != end; ++it) {
        const std::string id = (*it)[1];
        EXPECT_TRUE(tested.contains(id) || kOfTheLibraryAlone.contains(id))
            << "error[" << id << "] of " << entry.path() << " has no folder in tests/errors";
      }
    }
}

}  // namespace
}  // namespace tessera
