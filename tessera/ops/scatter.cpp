#include <map>

#include "tessera/ops/families.h"

namespace tessera::define {
namespace {

/// Combiner of updates; none replaces the element.
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

struct ScatterUpdates {
  std::vector<Axis> over;
  std::vector<Scalar> target;
  Operand indices, updates;
};

/// Definition of a scatter: a copy of x with the updates written into it.
Expected<Definition> scattered(const Attrs& attrs, const Argument& argument,
                               ScatterUpdates written) {
  TESSERA_TRY(const std::optional<Fn> combine, reduction_of(attrs));
  const std::vector<Axis> run = axes("i", argument.rank());
  const Operand x{"x", argument.dtype(), sizes(run)};
  Output out = output(x.dtype, each(run), x(indices(run)));
  out.forward = ScatterWrite{.over = written.over,
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

OpDef tensor_scatter() {
  return {
      .name = "tensor_scatter",
      .summary = "a cache with an update written along an axis, from a position for each batch on",
      .inputs = {"cache", "update", "write_indices?"},
      .attrs = {{"axis", -2}, {"mode", std::string("linear")}},
      .define = [](const Attrs& attrs, const Signature& in) -> Expected<Definition> {
        const int rank = in[0].rank();
        TESSERA_TRY(const int chosen, normal_axis(attrs.i("axis"), rank));
        TESSERA_TRY_DONE(check_same_dtype({in[0], in[1]}));
        const std::string& mode = attrs.s("mode");
        if (mode != "linear" && mode != "circular")
          return bad_operands("mode is " + mode, "it has to be linear or circular");
        if (chosen == 0) return bad_operands("axis is 0", "that is the batch");
        if (in[1].rank() != rank)
          return bad_operands(fmt::format("update has {} axes", in[1].rank()),
                              fmt::format("the cache has {}", rank));
        const auto axis = static_cast<std::size_t>(chosen);
        const auto room = (in[0].dim(chosen) - in[1].dim(chosen)).constant();
        if (room && *room < 0)
          return bad_operands("the update is longer than the cache along the axis");

        const std::vector<Axis> run = axes("i", rank);
        std::vector<Axis> over = axes("u", rank);
        for (std::size_t i = 0; i < over.size(); ++i)
          if (i != axis) over[i].extent = run[i].size();
        const Operand update{"update", in[1].dtype(), sizes(over)};
        std::vector<Operand> inputs = {{"cache", in[0].dtype(), sizes(run)}, update};
        std::vector<Scalar> target = indices(over);
        if (given(in, 2)) {
          TESSERA_TRY_DONE(check_domain(Domain::Integers, in[2].dtype()));
          inputs.push_back({"write_indices", in[2].dtype(), {run[0].size()}});
          target[axis] = inputs.back()({over[0]}) + target[axis];
        }
        if (mode == "circular") target[axis] = mod(target[axis], Scalar(run[axis].size()));
        Output out = output(in[0].dtype(), each(run), inputs[0](indices(run)));
        out.forward = ScatterWrite{.over = over,
                                   .target = std::move(target),
                                   .value = update(indices(over)),
                                   .combine = std::nullopt};
        return Definition{.inputs = std::move(inputs), .outputs = {out}};
      }};
}

}  // namespace tessera::define
