#pragma once

#include <string>

#include "tessera/ir/type.h"
#include "tessera/support/expected.h"

namespace onnx {
class TypeProto;
}

namespace tessera::onnx {

/// The type that a file states for a value of this name; sizes that it does not state get names of
/// their own. Nothing stated is an unknown type.
Expected<Type> type_of(const ::onnx::TypeProto& proto, const std::string& name);

/// The inverse, as far as the type is known.
void set_type(::onnx::TypeProto& proto, const Type& type);

/// Tensors have at most so many axes.
inline constexpr int kMaxRank = 64;

}  // namespace tessera::onnx
