#pragma once

#include <string>
#include <vector>

namespace tessera::testing {

/// A form of calls of an operator that is often valid: what its operands and attributes are drawn
/// from. An operator may have several.
struct OperandPattern {
  std::string op;
  std::string operands;
  std::string attributes = {};
};

/// Forms for every operator but those of control flow and those that draw random numbers.
const std::vector<OperandPattern>& operand_patterns();

}  // namespace tessera::testing
