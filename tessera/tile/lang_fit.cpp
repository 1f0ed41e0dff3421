#include "tessera/tile/lang_fit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tessera/tile/type_check.h"

namespace tessera::tile {
namespace {

/// Order of kinds: bool < integer < float.
int kind_of(DType dtype) {
  return dtype == DType::Bool ? 0 : (is_float(dtype) ? 2 : 1);
}
int kind_of(Sort sort) {
  return sort == Sort::Bool ? 0 : (sort == Sort::Value ? 2 : 1);
}

DType own_dtype(Sort sort) {
  constexpr DType kOwn[] = {DType::Bool, DType::I64, DType::F32};
  return kOwn[kind_of(sort)];
}

/// Promotion of a C++ number with the dtype of a value.
DType with_number(Sort number, DType dtype, Division division) {
  if (kind_of(number) > kind_of(dtype)) return number == Sort::Value ? DType::F32 : DType::I32;
  return division == Division::Yes && is_half(dtype) ? DType::F32 : dtype;
}

DType with_value(DType a, DType b, Division division) {
  const auto either = [&](DType dtype) { return a == dtype || b == dtype; };
  if (either(DType::F64)) return DType::F64;
  if (either(DType::F32)) return DType::F32;
  if (is_half(a) || is_half(b)) {
    if (division == Division::Yes) return DType::F32;
    if (either(DType::F16)) return DType::F16;
    return a == b ? DType::BF16 : DType::F32;
  }
  if (a == b) return a;
  if (either(DType::Bool)) return a == DType::Bool ? b : a;
  if (byte_width(a) != byte_width(b)) return byte_width(a) > byte_width(b) ? a : b;
  return is_signed(a) ? b : a;
}

/// The number as a literal of the dtype. A negative number of an unsigned dtype wraps around.
Literal literal(const Operand::Number& number, DType dtype) {
  if (is_float(dtype)) {
    const double exact = number.sort == Sort::Value ? number.literal.number
                                                    : static_cast<double>(number.literal.integer);
    switch (dtype) {
      case DType::F16: return {to_float(to_half(exact)), 0};
      case DType::BF16: return {to_float(to_bfloat16(exact)), 0};
      case DType::F32: return {static_cast<float>(exact), 0};
      default: return {exact, 0};
    }
  }
  if (number.sort == Sort::Value) return literal_of(dtype, number.literal.number);
  const std::int64_t integer = number.literal.integer;
  if (dtype == DType::Bool) return {0, integer != 0};
  const int bits = 8 * byte_width(dtype);
  if (!fits(dtype, integer) && !is_signed(dtype) && bits < 64 && integer < 0 &&
      integer >= -(std::int64_t{1} << (bits - 1))) {
    return {0, integer + (std::int64_t{1} << bits)};
  }
  return {0, integer};  // the builder reports numbers that do not fit
}

ValueId checked(ValueId id) {
  return Trace::current().checked(id);
}

ValueId spread(ValueId id, const Extents& shape) {
  Trace& trace = Trace::current();
  Builder& build = trace.builder();
  const Type type = build.type(id);
  if (type.shape == shape) return id;
  const bool fits = !type.is_view() && type.shape.size() <= shape.size();
  const std::size_t more = fits ? shape.size() - type.shape.size() : 0;
  Extents aligned(more, 1);
  aligned.insert(aligned.end(), type.shape.begin(), type.shape.end());
  const bool each = fits && std::equal(shape.begin(), shape.end(), aligned.begin(), aligned.end(),
                                       [](auto to, auto from) { return from == 1 || from == to; });
  if (!each) {
    trace.fail(
        "tile-type",
        fmt::format("{} does not fit into the shape [{}]", to_string(type), fmt::join(shape, ", ")),
        "axes are aligned at the end; extents are equal, or 1");
  }
  if (!type.shape.empty() && more > 0) id = checked(build.reshape(id, aligned));
  return aligned == shape && !type.shape.empty() ? id : checked(build.broadcast(id, shape));
}

}  // namespace

Type type_of(const Operand& x) {
  return x.is_number() ? Type::scalar(own_dtype(x.number().sort))
                       : Trace::current().builder().type(x.id());
}

DType common_dtype(const Operands& list, Division division) {
  std::optional<DType> dtype;
  for (const Operand& x : list) {
    if (x.is_number()) continue;
    const DType own = type_of(x).dtype;
    dtype = dtype ? with_value(*dtype, own, division) : own;
  }
  const bool adapts = dtype.has_value();
  for (const Operand& x : list) {
    if (!x.is_number()) continue;
    const DType own = type_of(x).dtype;
    if (adapts)
      dtype = with_number(x.number().sort, *dtype, division);
    else
      dtype = dtype ? with_value(*dtype, own, division) : own;
  }
  return dtype.value_or(DType::F32);
}

Extents common_shape(const Extents& a, const Extents& b) {
  Extents shape = a.size() >= b.size() ? a : b;
  const Extents& other = a.size() >= b.size() ? b : a;
  for (std::size_t i = 0; i < other.size(); ++i) {
    std::int64_t& extent = shape[shape.size() - 1 - i];
    const std::int64_t wanted = other[other.size() - 1 - i];
    if (extent != wanted && extent != 1 && wanted != 1) {
      Trace::current().fail("tile-type",
                            fmt::format("the shapes [{}] and [{}] do not fit together",
                                        fmt::join(a, ", "), fmt::join(b, ", ")),
                            "axes are aligned at the end; extents are equal, or one of them is 1");
    }
    if (extent == 1) extent = wanted;
  }
  return shape;
}

ValueId value_of(const Operand& x) {
  return x.is_number() ? fit(x, own_dtype(x.number().sort), {}) : x.id();
}

ValueId spread(const Operand& x, const Extents& shape) {
  return x.is_number() ? fit(x, own_dtype(x.number().sort), shape) : spread(x.id(), shape);
}

ValueId fit(const Operand& x, DType dtype, const Extents& shape) {
  Builder& build = tile::build();
  if (x.is_number())
    return checked(build.constant(Type::tile(dtype, shape), literal(x.number(), dtype)));
  const bool same = build.type(x.id()).dtype == dtype;
  return spread(same ? x.id() : checked(build.cast(x.id(), dtype)), shape);
}

ValueId truth(const Operand& x) {
  if (x.is_number() || type_of(x).dtype == DType::Bool)
    return fit(x, DType::Bool, type_of(x).shape);
  return (x != 0).id();
}

ValueId truth(const Operand& x, const Extents& shape) {
  return spread(truth(x), shape);
}

}  // namespace tessera::tile
