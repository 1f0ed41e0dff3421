#include "tessera/ops/families.h"

namespace tessera::define {
namespace {

/// Prefix scan along an axis (reverse: suffix scan), including the position itself unless
/// `exclusive`.
OpDef prefixes(std::string name, std::string summary,
               Scalar (*fold)(std::vector<Bound>, const Scalar&)) {
  return {.name = std::move(name),
          .summary = std::move(summary),
          .inputs = {"x", "axis"},
          .attrs = {flag_attr("exclusive", 0), flag_attr("reverse", 0)},
          .define = [fold](const Attrs& attrs, const Signature& in) -> Expected<Definition> {
            TESSERA_TRY_DONE(check_domain(Domain::Numbers, in[0].dtype()));
            TESSERA_TRY(const std::int64_t along, known_integer(in, 1, "axis"));
            TESSERA_TRY(const int normal, normal_axis(along, in[0].rank()));
            const auto axis = static_cast<std::size_t>(normal);
            const std::vector<Axis> run = axes("i", in[0].rank());
            const Operand x{"x", in[0].dtype(), sizes(run)};
            const Scalar here = run[axis];
            // Indices count from the end where the scan is reversed; each one is within x.
            const bool reverse = attrs.i("reverse") != 0;
            const Scalar size = run[axis].size(), j = index_of("j");
            const Scalar count = reverse ? size - here : here + Scalar(1);
            const Bound taken{"j", attrs.i("exclusive") != 0 ? count - Scalar(1) : count};
            std::vector<Scalar> at = indices(run);
            at[axis] = reverse ? size - Scalar(1) - j : j;
            return Definition{.inputs = tessera::concat({x}, rest_as_given({"axis"}, in)),
                              .outputs = {output(x.dtype, each(run), fold({taken}, x(at)))}};
          }};
}

}  // namespace

OpDef cum_sum() {
  return prefixes("cum_sum", "sums of the elements up to each", tessera::sum);
}

OpDef cum_prod() {
  return prefixes("cum_prod", "products of the elements up to each", tessera::prod);
}

}  // namespace tessera::define
