#include "tessera/ops/composite.h"

namespace tessera::define {
namespace {

/// A reduction of an N C spatial… image over its spatial axes.
using PoolBody = std::function<Val(Body&, const Attrs&, const Val& x, const Ints& axes)>;
OpDef global_pool(std::string name, std::string summary, PoolBody pool,
                  std::vector<AttrSpec> attrs = {}) {
  return {.name = std::move(name),
          .summary = std::move(summary),
          .inputs = {"x"},
          .attrs = std::move(attrs),
          .expand = [pool = std::move(pool)](Body& b, const Attrs& given,
                                             const Vals& in) -> Expected<Vals> {
            if (in[0].rank() < 2)
              return bad_operands(fmt::format("the image has {} axes", in[0].rank()),
                                  "it has to have a batch and a channel axis");
            return Vals{pool(b, given, in[0], counted(2, in[0].rank()))};
          }};
}

}  // namespace

OpDef global_average_pool() {
  return global_pool("global_average_pool", "the mean of each channel",
                     [](Body&, const Attrs&, const Val& x, const Ints& axes) {
                       return reduced("reduce_mean", x, axes);
                     });
}

OpDef global_max_pool() {
  return global_pool("global_max_pool", "the maximum of each channel",
                     [](Body&, const Attrs&, const Val& x, const Ints& axes) {
                       return reduced("reduce_max", x, axes);
                     });
}

OpDef global_lp_pool() {
  return global_pool(
      "global_lp_pool", "the norm of order p of each channel",
      [](Body& b, const Attrs& attrs, const Val& x, const Ints& axes) {
        const auto p = static_cast<double>(attrs.i("p"));
        const Val wide = widened(x);
        const Val powers = b.op("pow", {b.op("abs", {wide}), b.number(p, wide.dtype())});
        const Val sum = reduced("reduce_sum", powers, axes);
        return converted(b.op("pow", {sum, b.number(1 / p, wide.dtype())}), x.dtype());
      },
      {{"p", 2}});
}

}  // namespace tessera::define
