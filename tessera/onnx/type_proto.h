#pragma once

#include <string>

#include "tessera/ir/type.h"
#include "tessera/support/expected.h"

namespace onnx {
class TypeProto;
}

namespace tessera::onnx {

/// Converts the declared type of a value; sizes that it does not state get symbols of their own. A
/// missing declaration is an unknown type.
Expected<Type> type_of(const ::onnx::TypeProto& proto, const std::string& name);

/// Writes a type as a TypeProto, as far as it is known.
void set_type(::onnx::TypeProto& proto, const Type& type);

/// Largest supported rank.
inline constexpr int kMaxRank = 64;

}  // namespace tessera::onnx
