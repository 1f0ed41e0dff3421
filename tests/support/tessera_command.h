#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/command.h"

namespace tessera::testing {

/// Runs `tessera` as a user does, in a folder of its own. For the executables of tests that are
/// told where the binary is.
class TesseraCommand : public ::testing::Test {
 protected:
  /// The exit codes that scripts can trust.
  static constexpr int kSuccess = 0, kNegativeResult = 1, kUsage = 2, kBadInput = 3, kLimit = 4,
                       kUnknown = 5;

  Outcome tessera(const std::vector<std::string>& arguments) const {
    return run_command(TESSERA_BINARY, arguments, folder.path());
  }
  nlohmann::json json(const std::vector<std::string>& arguments) const {
    return nlohmann::json::parse(tessera(arguments).out);
  }

  const TemporaryFolder folder;
};

}  // namespace tessera::testing
