#include "tessera/support/dtype.h"

#include <array>

namespace tessera {
namespace {

struct Row {
  DType dtype;
  std::string_view name;
  int bytes;
  Sort sort;
};

constexpr std::array<Row, 14> kRows = {{
    {DType::F16, "f16", 2, Sort::Value},
    {DType::BF16, "bf16", 2, Sort::Value},
    {DType::F32, "f32", 4, Sort::Value},
    {DType::F64, "f64", 8, Sort::Value},
    {DType::I8, "i8", 1, Sort::Integer},
    {DType::I16, "i16", 2, Sort::Integer},
    {DType::I32, "i32", 4, Sort::Integer},
    {DType::I64, "i64", 8, Sort::Integer},
    {DType::U8, "u8", 1, Sort::Integer},
    {DType::U16, "u16", 2, Sort::Integer},
    {DType::U32, "u32", 4, Sort::Integer},
    {DType::U64, "u64", 8, Sort::Unsigned},
    {DType::Bool, "bool", 1, Sort::Bool},
    {DType::String, "string", 0, Sort::Text},
}};

constexpr const Row& row(DType dtype) {
  return kRows[static_cast<std::size_t>(dtype)];
}

constexpr bool rows_in_order() {
  for (std::size_t i = 0; i < kRows.size(); ++i)
    if (static_cast<std::size_t>(kRows[i].dtype) != i) return false;
  return true;
}
static_assert(rows_in_order());

}  // namespace

std::string_view to_string(DType dtype) {
  return row(dtype).name;
}
int byte_width(DType dtype) {
  return row(dtype).bytes;
}
Sort sort_of(DType dtype) {
  return row(dtype).sort;
}

std::optional<DType> parse_dtype(std::string_view name) {
  for (const Row& r : kRows)
    if (r.name == name) return r.dtype;
  return std::nullopt;
}

std::string_view to_string(Sort sort) {
  switch (sort) {
    case Sort::Value: return "value";
    case Sort::Integer: return "integer";
    case Sort::Unsigned: return "unsigned";
    case Sort::Bool: return "bool";
    case Sort::Text: return "text";
  }
  return "?";
}

}  // namespace tessera
