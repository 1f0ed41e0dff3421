#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "tessera/onnx/call.h"

namespace tessera::onnx {

/// Row of the operator table: an ONNX operator from some opset on, and the operator of the catalog
/// that it becomes. Without an adapter the inputs and attributes are those of the catalog. Without
/// an operator of the catalog the adapter builds all nodes.
struct OperatorRow {
  std::string_view name;
  std::string_view op;
  std::int64_t since = 1;
  Adapter adapt = nullptr;
  std::string_view domain = {};  // empty for ai.onnx
};

/// The operator table. Rows of one operator are adjacent, the newest version first.
std::span<const OperatorRow> operator_table();

/// Row of an operator in an opset, or null if there is none.
const OperatorRow* import_row(std::string_view domain, std::string_view name, std::int64_t opset);

/// Row by which an operator of the catalog is exported: its newest version; null if it has none.
const OperatorRow* export_row(std::string_view op);

/// Attribute or input that an operator got later than the version in its row.
struct LaterPart {
  std::string_view op;
  std::string_view part;
  std::int64_t since;
};
std::span<const LaterPart> later_parts();

/// First opset in which an operator of ai.onnx accepts operands of a dtype, if later than the
/// version in its row; otherwise 1.
std::int64_t first_opset(std::string_view op, DType dtype);

/// Number of outputs that ONNX's schema requires.
int required_outputs(std::string_view op, const Attrs& attrs);

/// Whether an attribute is a data type, which ONNX states by number.
bool is_dtype_attribute(std::string_view name);

/// Newest supported opset.
inline constexpr std::int64_t kNewestOpset = 28;

}  // namespace tessera::onnx
