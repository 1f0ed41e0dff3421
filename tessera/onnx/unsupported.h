#pragma once

#include "tessera/onnx/graph_reader.h"

namespace tessera::onnx {

/// Diagnostic that lists all unsupported operators of a model with their node counts; `first` is
/// the diagnostic of the first one.
Diagnostic unsupported_operators(const ImportContext& reading, const Opsets& opsets,
                                 Diagnostic first);

}  // namespace tessera::onnx
