#pragma once

#include "tessera/ops/opdef.h"

namespace tessera {

bool has_text(const Signature& in);

/// Numbers in place of text: what a core operator is defined over.
Signature numbered(Signature in);

/// Which results of a core operator are text, as some of its inputs are; a diagnostic where it
/// computes with text, and where its definition is one.
Expected<std::vector<bool>> text_results(const OpDef& op, const Attrs& attrs, const Signature& in);

}  // namespace tessera
