#include "tessera/ops/families.h"

namespace tessera::define {
namespace {

Expected<Definition> converted(const Attrs& attrs, const Signature& in, DType to) {
  TESSERA_TRY(const Narrowing how, narrowing_attr(attrs));
  const Broadcast x = broadcast({"x"}, {in[0]});
  const Scalar& value = x.values[0];
  // A truth value says whether a number is not zero.
  const bool tested = to == DType::Bool && value.sort() != Sort::Bool;
  const Scalar result = tested                ? !tessera::equal(value, like(value, 0))
                        : to == in[0].dtype() ? value
                                              : narrowed(to, value, how);
  return Definition{.inputs = tessera::concat(x.operands, rest_as_given({"target"}, in)),
                    .outputs = {output(to, each(x.axes), result)}};
}

/// They speak of small floats.
std::vector<AttrSpec> with_rounding(std::vector<AttrSpec> attrs) {
  attrs.push_back(flag_attr("saturate", 1));
  attrs.push_back({"round_mode", std::string("up")});
  return attrs;
}

}  // namespace

OpDef cast() {
  return {.name = "cast",
          .summary = "x converted to a dtype; to integers numbers truncate towards zero and wrap",
          .inputs = {"x"},
          .attrs = with_rounding({required_attr("to", std::string())}),
          .define = [](const Attrs& attrs, const Signature& in) -> Expected<Definition> {
            TESSERA_TRY(const DType to, dtype_attr(attrs, "to", DType::F32));
            return converted(attrs, in, to);
          }};
}

OpDef cast_like() {
  return {.name = "cast_like",
          .summary = "x converted to the dtype of target",
          .inputs = {"x", "target"},
          .attrs = with_rounding({}),
          .define = [](const Attrs& attrs, const Signature& in) -> Expected<Definition> {
            return converted(attrs, in, in[1].dtype());
          }};
}

OpDef identity() {
  return elementwise(
      "identity", "x", [](const Scalar& x) { return x; }, Domain::Any);
}

}  // namespace tessera::define
