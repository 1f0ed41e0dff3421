#include <algorithm>

#include "tessera/ops/families.h"

namespace tessera::define {
namespace {

template <class T>
std::vector<T> first(const std::vector<T>& list, std::size_t count) {
  return {list.begin(), list.begin() + static_cast<std::ptrdiff_t>(count)};
}

template <class T>
std::vector<T> after(const std::vector<T>& list, std::size_t count) {
  return {list.begin() + static_cast<std::ptrdiff_t>(count), list.end()};
}

}  // namespace

OpDef gather() {
  return {.name = "gather",
          .summary = "slices of x along an axis, at indices; negative ones count from the end",
          .inputs = {"x", "indices"},
          .attrs = {{"axis", 0}},
          .define = [](const Attrs& attrs, const Signature& in) -> Expected<Definition> {
            TESSERA_TRY(const int chosen, normal_axis(attrs.i("axis"), in[0].rank()));
            TESSERA_TRY_DONE(check_domain(Domain::Integers, in[1].dtype()));
            const auto axis = static_cast<std::size_t>(chosen);
            const std::vector<Axis> run = axes("i", in[0].rank()), picks = axes("j", in[1].rank());
            const Operand x{"x", in[0].dtype(), tessera::sizes(run)};
            const Operand indices{"indices", in[1].dtype(), tessera::sizes(picks)};
            std::vector<Scalar> at = tessera::indices(run);
            at[axis] = wrapped(indices(tessera::indices(picks)), run[axis]);
            const std::vector<Axis> result =
                tessera::concat(tessera::concat(first(run, axis), picks), after(run, axis + 1));
            return Definition{.inputs = {x, indices},
                              .outputs = {output(x.dtype, each(result), x(at))}};
          }};
}

OpDef gather_elements() {
  return {
      .name = "gather_elements",
      .summary = "elements of x whose position along an axis is given for each",
      .inputs = {"x", "indices"},
      .attrs = {{"axis", 0}},
      .define = [](const Attrs& attrs, const Signature& in) -> Expected<Definition> {
        TESSERA_TRY(const int chosen, normal_axis(attrs.i("axis"), in[0].rank()));
        TESSERA_TRY_DONE(check_domain(Domain::Integers, in[1].dtype()));
        if (in[0].rank() != in[1].rank())
          return bad_operands(fmt::format("the indices have {} axes", in[1].rank()),
                              fmt::format("x has {}", in[0].rank()));
        const auto axis = static_cast<std::size_t>(chosen);
        const std::vector<Axis> run = axes("i", in[0].rank()), whole = axes("s", in[0].rank());
        const Operand x{"x", in[0].dtype(), tessera::sizes(whole)};
        const Operand indices{"indices", in[1].dtype(), tessera::sizes(run)};
        std::vector<Scalar> at = tessera::indices(run);
        at[axis] = wrapped(indices(tessera::indices(run)), whole[axis]);
        return Definition{.inputs = {x, indices}, .outputs = {output(x.dtype, each(run), x(at))}};
      }};
}

OpDef gather_nd() {
  return {
      .name = "gather_nd",
      .summary = "slices of x at positions that lie along the last axis of indices",
      .inputs = {"x", "indices"},
      .attrs = {{"batch_dims", 0}},
      .define = [](const Attrs& attrs, const Signature& in) -> Expected<Definition> {
        TESSERA_TRY_DONE(check_domain(Domain::Integers, in[1].dtype()));
        const std::int64_t rank = in[0].rank(), picks = in[1].rank();
        const std::int64_t batch = attrs.i("batch_dims");
        if (picks < 1 || batch < 0 || batch >= std::min(rank, picks))
          return bad_operands(fmt::format("batch_dims is {}", batch),
                              fmt::format("x has {} axes and indices {}", rank, picks));
        const Dim& last = in[1].dim(static_cast<int>(picks) - 1);
        if (!last.constant()) return needs_value("indices");
        const std::int64_t depth = *last.constant();
        if (depth > rank - batch)
          return bad_operands(fmt::format("the last axis of indices has size {}", depth),
                              fmt::format("x has {} axes to index", rank - batch));
        const auto batched = static_cast<std::size_t>(batch);
        const auto indexed = batched + static_cast<std::size_t>(depth);

        const std::vector<Axis> run = axes("i", static_cast<int>(rank));
        const std::vector<Axis> pick =
            tessera::concat(first(run, batched), axes("j", static_cast<int>(picks - 1 - batch)));
        const Operand x{"x", in[0].dtype(), tessera::sizes(run)};
        const Operand indices{"indices", in[1].dtype(),
                              tessera::concat(tessera::sizes(pick), {last})};
        std::vector<Scalar> at = tessera::indices(run);
        for (std::size_t i = batched; i < indexed; ++i) {
          const Scalar component = static_cast<std::int64_t>(i - batched);
          at[i] = wrapped(indices(tessera::concat(tessera::indices(pick), {component})), run[i]);
        }
        return Definition{
            .inputs = {x, indices},
            .outputs = {output(x.dtype, each(tessera::concat(pick, after(run, indexed))), x(at))}};
      }};
}

}  // namespace tessera::define
