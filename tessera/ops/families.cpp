#include "tessera/ops/families.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "tessera/support/small_float.h"

namespace tessera {
namespace {

std::string name_of(const std::vector<std::string>& names, std::size_t i) {
  if (i < names.size()) return names[i];
  return names.back() + std::to_string(i + 1 - names.size());
}

bool contains(Domain domain, DType dtype) {
  switch (domain) {
    case Domain::Numbers: return is_float(dtype) || is_integer(dtype);
    case Domain::Floats: return is_float(dtype);
    case Domain::Integers: return is_integer(dtype);
    case Domain::Truths: return dtype == DType::Bool;
    case Domain::Any: return dtype != DType::String;
  }
  return false;
}

std::string_view to_string(Domain domain) {
  switch (domain) {
    case Domain::Numbers: return "numbers";
    case Domain::Floats: return "floating-point numbers";
    case Domain::Integers: return "integers";
    case Domain::Truths: return "truth values";
    case Domain::Any: return "numbers or truth values";
  }
  return "?";
}

}  // namespace

Broadcast broadcast(const std::vector<std::string>& names, const Signature& in) {
  std::size_t rank = 0;
  for (const Argument& argument : in)
    if (argument.present) rank = std::max(rank, argument.type.shape.size());

  Broadcast result;
  result.axes = axes("i", static_cast<int>(rank));
  for (std::size_t axis = 0; axis < rank; ++axis) {
    const bool single = std::ranges::all_of(in, [&](const Argument& argument) {
      const std::size_t missing = rank - argument.type.shape.size();
      return !argument.present || axis < missing || argument.type.shape[axis - missing].is(1);
    });
    if (single) result.axes[axis].extent = 1;
  }
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (!in[i].present) continue;
    Operand operand{.name = name_of(names, i), .dtype = in[i].dtype()};
    std::vector<Scalar> at;
    const std::size_t missing = rank - in[i].type.shape.size();
    for (std::size_t axis = missing; axis < rank; ++axis) {
      const bool repeated = in[i].type.shape[axis - missing].is(1);
      operand.shape.push_back(repeated ? Dim(1) : result.axes[axis].size());
      at.push_back(repeated ? Scalar(0) : Scalar(result.axes[axis]));
    }
    result.values.push_back(operand(at));
    result.at.push_back(std::move(at));
    result.operands.push_back(std::move(operand));
  }
  return result;
}

Expected<Done> check_domain(Domain domain, DType dtype) {
  if (contains(domain, dtype)) return Done{};
  return bad_operands(fmt::format("an operand is of type {}", tessera::to_string(dtype)),
                      fmt::format("it has to consist of {}", to_string(domain)));
}

Expected<Done> check_same_dtype(const Signature& in) {
  const Argument* first = nullptr;
  for (const Argument& argument : in) {
    if (!argument.present) continue;
    if (first == nullptr) first = &argument;
    if (argument.dtype() != first->dtype())
      return bad_operands(
          fmt::format("the operands are of types {} and {}", tessera::to_string(first->dtype()),
                      tessera::to_string(argument.dtype())),
          "they have to be of one type");
  }
  return Done{};
}

DType dtype_for(const Scalar& value, DType dtype) {
  return value.sort() == Sort::Bool ? DType::Bool : dtype;
}

Output output(DType dtype, std::vector<MergedAxis> axes, const Scalar& value) {
  return {.name = "out",
          .dtype = dtype,
          .axes = std::move(axes),
          .value = value.sort() == sort_of(dtype) ? value : cast(dtype, value)};
}

OpDef elementwise(std::string name, std::string summary, std::vector<AttrSpec> attrs, UnaryWith f,
                  Domain domain) {
  return {.name = std::move(name),
          .summary = std::move(summary),
          .inputs = {"x"},
          .attrs = std::move(attrs),
          .define = [f = std::move(f), domain](const Attrs& given,
                                               const Signature& in) -> Expected<Definition> {
            TESSERA_TRY_DONE(check_domain(domain, in[0].dtype()));
            const Broadcast x = broadcast({"x"}, in);
            const Scalar value = f(given, x.values[0]);
            return Definition{
                .inputs = x.operands,
                .outputs = {output(dtype_for(value, in[0].dtype()), each(x.axes), value)}};
          }};
}

OpDef elementwise(std::string name, std::string summary, std::vector<AttrSpec> attrs, BinaryWith f,
                  Domain domain) {
  return {.name = std::move(name),
          .summary = std::move(summary),
          .inputs = {"x", "y"},
          .attrs = std::move(attrs),
          .define = [f = std::move(f), domain](const Attrs& given,
                                               const Signature& in) -> Expected<Definition> {
            TESSERA_TRY_DONE(check_same_dtype(in));
            TESSERA_TRY_DONE(check_domain(domain, in[0].dtype()));
            const Broadcast both = broadcast({"x", "y"}, in);
            const Scalar value = f(given, both.values[0], both.values[1]);
            return Definition{
                .inputs = both.operands,
                .outputs = {output(dtype_for(value, in[0].dtype()), each(both.axes), value)}};
          }};
}

OpDef elementwise(std::string name, std::string summary, Unary f, Domain domain) {
  return elementwise(
      std::move(name), std::move(summary), {},
      [f = std::move(f)](const Attrs&, const Scalar& x) { return f(x); }, domain);
}

OpDef elementwise(std::string name, std::string summary, Binary f, Domain domain) {
  return elementwise(
      std::move(name), std::move(summary), {},
      [f = std::move(f)](const Attrs&, const Scalar& x, const Scalar& y) { return f(x, y); },
      domain);
}

OpDef semigroup(OpDef op, Laws::Associative associative) {
  op.laws = {.commutative = true, .associative = associative};
  return op;
}

bool given(const Signature& in, std::size_t index) {
  return index < in.size() && in[index].present;
}

Operand as_given(std::string name, const Argument& argument) {
  return {std::move(name), argument.dtype(), argument.type.shape};
}

std::vector<Operand> rest_as_given(const std::vector<std::string>& names, const Signature& in) {
  std::vector<Operand> result;
  for (std::size_t i = 1; i < in.size(); ++i)
    if (in[i].present) result.push_back(as_given(name_of(names, i - 1), in[i]));
  return result;
}

Expected<Scalar> only_element(const Operand& operand) {
  for (const Dim& size : operand.shape)
    if (size.constant() && !size.is(1))
      return bad_operands(fmt::format("{} has an axis of size {}", operand.name, size.to_string()),
                          "it has to have one element");
  return operand(std::vector<Scalar>(operand.shape.size(), Scalar(0)));
}

Expected<std::vector<Dim>> known_sizes(const Signature& in, std::size_t index,
                                       std::string_view name) {
  if (!is_integer(in[index].dtype()))
    return bad_operands(fmt::format("{} is of type {}", name, to_string(in[index].dtype())),
                        "it has to consist of integers");
  if (!in[index].value) return needs_value(name);
  return *in[index].value;
}

Expected<Ints> known_integers(const Signature& in, std::size_t index, std::string_view name) {
  TESSERA_TRY(const std::vector<Dim> dims, known_sizes(in, index, name));
  Ints result;
  for (const Dim& dim : dims) {
    if (!dim.constant()) return needs_value(name);
    result.push_back(*dim.constant());
  }
  return result;
}

Expected<std::int64_t> known_integer(const Signature& in, std::size_t index,
                                     std::string_view name) {
  TESSERA_TRY(const Ints values, known_integers(in, index, name));
  if (values.size() != 1)
    return bad_operands(fmt::format("{} has {} elements", name, values.size()),
                        "it has to have one");
  return values[0];
}

Expected<std::vector<int>> normal_axes(const Ints& axes, int rank) {
  std::vector<int> result;
  std::set<int> seen;
  for (const std::int64_t axis : axes) {
    TESSERA_TRY(const int normal, normal_axis(axis, rank));
    if (!seen.insert(normal).second)
      return bad_operands(fmt::format("axis {} is named twice", normal));
    result.push_back(normal);
  }
  return result;
}

Ints all_axes(int rank) {
  Ints result(static_cast<std::size_t>(rank));
  std::iota(result.begin(), result.end(), std::int64_t{0});
  return result;
}

Expected<DType> dtype_attr(const Attrs& attrs, std::string_view name, DType otherwise) {
  if (!attrs.has(name)) return otherwise;
  const std::optional<DType> dtype = parse_dtype(attrs.s(name));
  if (!dtype || *dtype == DType::String)
    return bad_operands(fmt::format("{} is {}", name, attrs.s(name)),
                        "it has to be a type of numbers or truth values");
  return *dtype;
}

Expected<Narrowing> narrowing_attr(const Attrs& attrs) {
  using Rounding = Narrowing::Rounding;
  Narrowing result{.saturates = attrs.i("saturate") != 0};
  if (!attrs.has("round_mode")) return result;
  const std::string& mode = attrs.s("round_mode");
  if (mode == "down")
    result.rounding = Rounding::Down;
  else if (mode == "nearest")
    result.rounding = Rounding::Nearest;
  else if (mode != "up")
    return bad_operands(fmt::format("round_mode is {}", mode), "it has to be up, down or nearest");
  return result;
}

Scalar narrowed(DType to, const Scalar& x, const Narrowing& how) {
  if (!is_small(to) || !is_float(to)) return cast(to, x);
  Scalar number = x.sort() == Sort::Value ? x : cast(DType::F32, x);
  const double most = largest_number(to);
  const double least = to == DType::F8E8M0 ? smallest_number(to) : -most;
  if (how.saturates) number = min(max(number, least), most);
  if (to != DType::F8E8M0 || how.rounding == Narrowing::Rounding::Down) return cast(to, number);
  const Scalar below = cast(DType::F32, cast(to, number));
  const Scalar is_above =
      how.rounding == Narrowing::Rounding::Up ? below < number : below * 1.5 <= number;
  const Scalar rounded = select(is_above, below * 2.0, below);
  return cast(to, how.saturates ? min(rounded, most) : rounded);
}

Scalar widened(DType dtype, const Scalar& element) {
  if (!is_small(dtype)) return element;
  return cast(is_float(dtype) ? DType::F32 : DType::I32, element);
}

Scalar constant_of(const Tensor& tensor, std::int64_t position) {
  if (is_float(tensor.dtype)) return number_at(tensor, position);
  return Scalar(
      Node(node::Constant{.sort = sort_of(tensor.dtype), .integer = integer_at(tensor, position)}));
}

Scalar wrapped(const Scalar& index, const Dim& size) {
  return select(index < like(index, 0), index + Scalar(size), index);
}

}  // namespace tessera
