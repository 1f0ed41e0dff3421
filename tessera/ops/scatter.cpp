#include <map>

#include "tessera/ops/families.h"

namespace tessera::op {
namespace {

/// How an update meets what is there; none: it replaces it.
Expected<std::optional<Fn>> reduction_of(const Attrs& attrs) {
  static const std::map<std::string, std::optional<Fn>> kReductions = {{"none", std::nullopt},
                                                                       {"add", Fn::Add},
                                                                       {"mul", Fn::Mul},
                                                                       {"max", Fn::Max},
                                                                       {"min", Fn::Min}};
  const auto found = kReductions.find(attrs.s("reduction"));
  if (found == kReductions.end())
    return bad_operands("reduction is " + attrs.s("reduction"),
                        "it has to be none, add, mul, max or min");
  return found->second;
}

Expected<Done> check_scatter(const Signature& in) {
  TESSERA_TRY_DONE(check_domain(Domain::Integers, in[1].dtype()));
  return check_same_dtype({in[0], in[2]});
}

struct Written {
  std::vector<Axis> over;
  std::vector<Scalar> target;
  Operand indices, updates;
};

/// A copy of x with the updates written into it.
Expected<Definition> scattered(const Attrs& attrs, const Argument& argument, Written written) {
  TESSERA_TRY(const std::optional<Fn> combine, reduction_of(attrs));
  const std::vector<Axis> run = axes("i", argument.rank());
  const Operand x{"x", argument.dtype(), sizes(run)};
  Output out = output(x.dtype, each(run), x(indices(run)));
  out.forward = Forward{.over = written.over,
                        .target = std::move(written.target),
                        .value = written.updates(indices(written.over)),
                        .combine = combine};
  return Definition{.inputs = {x, written.indices, written.updates}, .outputs = {out}};
}

}  // namespace

OpDef scatter_elements() {
  return {.name = "scatter_elements",
          .summary = "x with updates whose position along an axis is given for each",
          .inputs = {"x", "indices", "updates"},
          .attrs = {{"axis", 0}, {"reduction", std::string("none")}},
          .define = [](const Attrs& attrs, const Signature& in) -> Expected<Definition> {
            TESSERA_TRY(const int chosen, normal_axis(attrs.i("axis"), in[0].rank()));
            TESSERA_TRY_DONE(check_scatter(in));
            if (in[1].rank() != in[0].rank() || in[2].rank() != in[0].rank())
              return bad_operands(fmt::format("indices and updates have {} and {} axes",
                                              in[1].rank(), in[2].rank()),
                                  fmt::format("x has {}", in[0].rank()));
            const auto axis = static_cast<std::size_t>(chosen);
            const std::vector<Axis> over = axes("u", in[0].rank());
            const Operand indices{"indices", in[1].dtype(), sizes(over)};
            const Dim size = axes("i", in[0].rank())[axis];
            std::vector<Scalar> target = tessera::indices(over);
            target[axis] = wrapped(indices(tessera::indices(over)), size);
            return scattered(attrs, in[0],
                             {over, target, indices, {"updates", in[2].dtype(), sizes(over)}});
          }};
}

OpDef scatter_nd() {
  return {.name = "scatter_nd",
          .summary = "x with updates of slices at positions along the last axis of indices",
          .inputs = {"x", "indices", "updates"},
          .attrs = {{"reduction", std::string("none")}},
          .define = [](const Attrs& attrs, const Signature& in) -> Expected<Definition> {
            TESSERA_TRY_DONE(check_scatter(in));
            const int rank = in[0].rank(), picks = in[1].rank() - 1;
            if (picks < 0) return bad_operands("indices has no axes", "it needs at least one");
            const Dim& last = in[1].dim(picks);
            if (!last.constant()) return needs_value("indices");
            const std::int64_t depth = *last.constant();
            if (depth > rank || in[2].rank() != picks + rank - depth)
              return bad_operands(
                  fmt::format("the last axis of indices has size {} and updates {} axes", depth,
                              in[2].rank()),
                  fmt::format("x has {} axes and indices {}", rank, picks + 1));
            const std::vector<Axis> pick = axes("u", picks), whole = axes("i", rank);
            const std::vector<Axis> slice = axes("v", rank - static_cast<int>(depth));
            const Operand indices{"indices", in[1].dtype(), tessera::concat(sizes(pick), {last})};
            Shape updated = sizes(pick);
            std::vector<Scalar> target;
            for (std::int64_t i = 0; i < rank; ++i) {
              const Dim size = whole[static_cast<std::size_t>(i)];
              if (i < depth) {
                target.push_back(
                    wrapped(indices(tessera::concat(tessera::indices(pick), {Scalar(i)})), size));
              } else {
                target.push_back(slice[static_cast<std::size_t>(i - depth)]);
                updated.push_back(size);
              }
            }
            std::vector<Axis> over = pick;
            for (std::size_t i = 0; i < slice.size(); ++i)
              over.push_back({slice[i].name, updated[pick.size() + i]});
            return scattered(attrs, in[0],
                             {over, target, indices, {"updates", in[2].dtype(), updated}});
          }};
}

}  // namespace tessera::op
