#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "tessera/onnx/call.h"

namespace tessera::onnx {

/// One operator of ONNX, from some opset on, and what it is here. Without an adapter inputs and
/// attributes are those of the catalog. Without an operator of its own the adapter does it all.
struct Row {
  std::string_view name;
  std::string_view op;
  std::int64_t since = 1;
  Adapter adapt = nullptr;
  std::string_view domain = {};  // the empty one is that of ONNX itself
};

/// All rows. Those of one operator follow each other, the newest form first.
std::span<const Row> rows();

/// The form that an operator has in an opset, or null if there is none.
const Row* find_row(std::string_view domain, std::string_view name, std::int64_t opset);

/// How an operator of the catalog is written in ONNX: its newest form; null if it has none.
const Row* spelling_of(std::string_view op);

/// An attribute or input that an operator has only later than the form in its row.
struct LaterPart {
  std::string_view op;
  std::string_view part;
  std::int64_t since;
};
std::span<const LaterPart> later_parts();

/// The first opset in which an operator of ONNX itself takes operands of a dtype, where that is
/// later than the form in its row; 1 elsewhere.
std::int64_t first_opset(std::string_view op, DType dtype);

/// The number of outputs that ONNX's schema does not make optional.
int required_outputs(std::string_view op, const Attrs& attrs);

/// Whether an attribute states a data type, which ONNX gives by number.
bool is_dtype_attribute(std::string_view name);

/// The newest opset that is read.
inline constexpr std::int64_t kNewestOpset = 28;

}  // namespace tessera::onnx
