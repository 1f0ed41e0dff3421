#include "tessera/ops/opdef.h"

namespace tessera::define {
namespace {

/// Body of a composite along one axis.
using Along = std::function<Val(Body&, const Val& x, int axis)>;
OpDef along_axis(std::string name, std::string summary, Along f) {
  return {
      .name = std::move(name),
      .summary = std::move(summary),
      .inputs = {"x"},
      .attrs = {{"axis", -1}},
      .expand = [f = std::move(f)](Body& b, const Attrs& attrs, const Vals& in) -> Expected<Vals> {
        TESSERA_TRY(const int axis, normal_axis(attrs.i("axis"), in[0].rank()));
        return Vals{f(b, in[0], axis)};
      }};
}

/// x minus its maximum: the same softmax without overflow.
Val shifted(Body& b, const Val& x, int axis) {
  return x - b.op("reduce_max", {x, b.ints({axis})});
}

}  // namespace

OpDef softmax() {
  return along_axis("softmax", "exp(x) / sum(exp(x)) along an axis",
                    [](Body& b, const Val& x, int axis) {
                      const Val powers = b.op("exp", {shifted(b, x, axis)});
                      return powers / b.op("reduce_sum", {powers, b.ints({axis})});
                    });
}

OpDef log_softmax() {
  return along_axis("log_softmax", "x - log(sum(exp(x))) along an axis",
                    [](Body& b, const Val& x, int axis) {
                      const Val lower = shifted(b, x, axis);
                      const Val total = b.op("reduce_sum", {b.op("exp", {lower}), b.ints({axis})});
                      return lower - b.op("log", {total});
                    });
}

OpDef hardmax() {
  return along_axis("hardmax", "1 at the first maximum along an axis, else 0",
                    [](Body& b, const Val& x, int axis) {
                      const Val at = b.op("arg_max", {x}, {{"axis", axis}, {"keepdims", 0}});
                      const Val depth = b.op("shape", {x}, {{"start", axis}, {"end", axis + 1}});
                      const Val values = b.op("cast", {b.ints({0, 1})},
                                              {{"to", std::string(to_string(x.dtype()))}});
                      return b.op("one_hot", {at, depth, values}, {{"axis", axis}});
                    });
}

}  // namespace tessera::define
