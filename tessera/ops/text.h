#pragma once

#include "tessera/ops/opdef.h"

/// String tensors as inputs of core operators, which may move and compare strings but not compute
/// with them.
namespace tessera {

bool has_text(const Signature& in);

/// Signature with numbers in place of strings: what a core operator is defined over.
Signature numbered(Signature in);

/// String results of a core operator that gets strings as some inputs; a diagnostic if it computes
/// with strings.
Expected<std::vector<bool>> text_results(const OpDef& op, const Attrs& attrs, const Signature& in);

}  // namespace tessera
