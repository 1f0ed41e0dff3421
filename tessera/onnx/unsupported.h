#pragma once

#include "tessera/onnx/graph_reader.h"

namespace tessera::onnx {

/// Says of all operators of a model that are not supported how many nodes they have; `first` is the
/// diagnostic of the one that was met first.
Diagnostic unsupported_operators(const Reading& reading, const Opsets& opsets, Diagnostic first);

}  // namespace tessera::onnx
