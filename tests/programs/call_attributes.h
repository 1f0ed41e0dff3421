#pragma once

#include <optional>
#include <string>

#include "tessera/ops/catalog.h"
#include "tests/programs/operand_contents.h"

namespace tessera::testing {

/// Attributes as a pattern has them, `axis=axis(0) group!=$g`: one with `!` is always given,
/// another in half of the calls. Nothing if one that has to be given fits no operand.
std::optional<Attrs> draw_attributes(const OpDef& op, const std::string& forms,
                                     const OperandContents& operands, Bindings& bound,
                                     Draws& draws);

}  // namespace tessera::testing
