#include "tessera/ops/composite.h"

#include <algorithm>
#include <numeric>

#include "tessera/ops/families.h"

namespace tessera {

Expected<DType> float_type(const Attrs& attrs, std::string_view name, DType otherwise) {
  TESSERA_TRY(const DType dtype, dtype_attr(attrs, name, otherwise));
  TESSERA_TRY_DONE(check_domain(Domain::Floats, dtype));
  return dtype;
}

Expected<Done> check_word(const Attrs& attrs, std::string_view name, const Strings& words) {
  if (std::ranges::find(words, attrs.s(name)) != words.end()) return Done{};
  std::string list;
  for (const std::string& word : words) list += (list.empty() ? "" : ", ") + word;
  return bad_operands(fmt::format("{} is {}", name, attrs.s(name)), "it has to be one of " + list);
}

Expected<Done> check_rank(const Val& x, std::string_view name, int rank) {
  if (x.rank() == rank) return Done{};
  return bad_operands(fmt::format("{} has {} axes", name, x.rank()),
                      fmt::format("it has to have {}", rank));
}

Ints counted(int first, int last) {
  Ints result(static_cast<std::size_t>(std::max(last - first, 0)));
  std::iota(result.begin(), result.end(), first);
  return result;
}

Val converted(const Val& x, DType to) {
  if (x.dtype() == to) return x;
  return x.body().op("cast", {x}, {{"to", std::string(to_string(to))}});
}

Val widened(const Val& x) {
  return byte_width(x.dtype()) < byte_width(DType::F32) ? converted(x, DType::F32) : x;
}

Val reduced(std::string_view op, const Val& x, const Ints& axes) {
  if (axes.empty()) return x.body().op(op, {x}, {{"noop_with_empty_axes", 1}});
  return x.body().op(op, {x, x.body().ints(axes)});
}

Val picked(const Val& x, int axis, std::int64_t at) {
  return x.body().op("gather", {x, x.body().number(static_cast<double>(at), DType::I64)},
                     {{"axis", axis}});
}

Val sliced(const Val& x, int axis, std::int64_t begin, std::int64_t end) {
  Body& b = x.body();
  return b.op("slice", {x, b.ints({begin}), b.ints({end}), b.ints({axis})});
}

Val unsqueezed(const Val& x, const Ints& axes) {
  if (axes.empty()) return x;
  return x.body().op("unsqueeze", {x, x.body().ints(axes)});
}

Val sizes_of(const Val& x, int first, int last) {
  return x.body().op("shape", {x}, {{"start", first}, {"end", last}});
}

Val reshaped(const Val& x, const Ints& sizes) {
  return x.body().op("reshape", {x, x.body().ints(sizes)});
}

Val transposed(const Val& x, const Ints& order) {
  return x.body().op("transpose", {x}, {{"perm", order}});
}

Val joined(const Vals& parts, int axis) {
  return parts.at(0).body().op("concat", parts, {{"axis", axis}});
}

Val filled(double number, DType dtype, const Vals& parts) {
  Body& b = parts.at(0).body();
  return b.op("expand", {b.number(number, dtype), joined(parts, 0)});
}

}  // namespace tessera
