#include "tessera/support/dtype.h"

#include <algorithm>
#include <array>

namespace tessera {
namespace {

struct Row {
  DType dtype;
  std::string_view name;
  int bits;
  Sort sort;
  bool has_sign = false;
};

constexpr std::array<Row, kDTypeCount> kRows = {{
    {DType::F16, "f16", 16, Sort::Value, true},
    {DType::BF16, "bf16", 16, Sort::Value, true},
    {DType::F32, "f32", 32, Sort::Value, true},
    {DType::F64, "f64", 64, Sort::Value, true},
    {DType::I8, "i8", 8, Sort::Integer, true},
    {DType::I16, "i16", 16, Sort::Integer, true},
    {DType::I32, "i32", 32, Sort::Integer, true},
    {DType::I64, "i64", 64, Sort::Integer, true},
    {DType::U8, "u8", 8, Sort::Integer},
    {DType::U16, "u16", 16, Sort::Integer},
    {DType::U32, "u32", 32, Sort::Integer},
    {DType::U64, "u64", 64, Sort::Unsigned},
    {DType::Bool, "bool", 1, Sort::Bool},
    {DType::String, "string", 0, Sort::Text},
    {DType::F8E4M3FN, "f8e4m3fn", 8, Sort::Value, true},
    {DType::F8E4M3FNUZ, "f8e4m3fnuz", 8, Sort::Value, true},
    {DType::F8E5M2, "f8e5m2", 8, Sort::Value, true},
    {DType::F8E5M2FNUZ, "f8e5m2fnuz", 8, Sort::Value, true},
    {DType::F8E8M0, "f8e8m0", 8, Sort::Value},
    {DType::F4E2M1, "f4e2m1", 4, Sort::Value, true},
    {DType::I4, "i4", 4, Sort::Integer, true},
    {DType::U4, "u4", 4, Sort::Integer},
    {DType::I2, "i2", 2, Sort::Integer, true},
    {DType::U2, "u2", 2, Sort::Integer},
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
  return (row(dtype).bits + 7) / 8;
}
int bit_width(DType dtype) {
  return row(dtype).bits;
}
Sort sort_of(DType dtype) {
  return row(dtype).sort;
}

bool is_signed(DType dtype) {
  return is_integer(dtype) && row(dtype).has_sign;
}
bool is_unsigned(DType dtype) {
  return is_integer(dtype) && !row(dtype).has_sign;
}

DType storage_of(DType dtype) {
  if (!is_small(dtype)) return dtype;
  return is_signed(dtype) ? DType::I8 : DType::U8;
}

std::int64_t wrapped_to(DType dtype, std::int64_t value) {
  const int unused = 64 - bit_width(dtype);
  const std::uint64_t top = static_cast<std::uint64_t>(value) << unused;
  return is_signed(dtype) ? static_cast<std::int64_t>(top) >> unused
                          : static_cast<std::int64_t>(top >> unused);
}

IntegerRange integer_range(DType dtype) {
  const int digits = std::min(bit_width(dtype) - (is_signed(dtype) ? 1 : 0), 63);
  const auto most = static_cast<std::int64_t>((std::uint64_t{1} << digits) - 1);
  return {is_signed(dtype) ? -most - 1 : 0, most};
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
