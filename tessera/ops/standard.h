#pragma once

#include "tessera/ops/opdef.h"

/// Operators that graph construction inserts by itself, so that other folders do not look them up
/// by name.
namespace tessera {

/// `identity`: copies a value, to give it another name.
const OpDef& identity_op();
/// `scan`: runs a subgraph over the slices of tensors.
const OpDef& scan_op();

}  // namespace tessera
