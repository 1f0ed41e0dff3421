#include <algorithm>
#include <limits>

#include "tessera/ops/families.h"

namespace tessera::define {
namespace {

/// Axes of a reduction: kept and reduced ones.
struct ReductionAxes {
  Operand x;
  std::vector<Scalar> at = {};          // where x is read
  std::vector<Axis> over = {};          // the folded axes
  std::vector<MergedAxis> result = {};  // the axes of the output

  Scalar element() const { return x(at); }
  Dim count() const { return product(sizes(over)); }
};

struct FoldedAxes {
  std::vector<int> axes;
  bool keep = true;
};

ReductionAxes folded(const Argument& argument, const FoldedAxes& which) {
  ReductionAxes result{.x = {.name = "x", .dtype = argument.dtype()}};
  const std::vector<Axis> all = axes("i", argument.rank()), kept = axes("k", argument.rank());
  for (std::size_t i = 0; i < all.size(); ++i) {
    result.x.shape.push_back(all[i]);
    result.at.push_back(all[i]);
    if (std::ranges::find(which.axes, static_cast<int>(i)) == which.axes.end()) {
      result.result.push_back({{all[i]}});
    } else {
      result.over.push_back(all[i]);
      if (which.keep) result.result.push_back({{{kept[i].name, 1}}});
    }
  }
  return result;
}

Scalar fold_of(Fn fn, const ReductionAxes& over, const Scalar& init, const Scalar& lift) {
  return fold(bounds(over.over), {init}, {lift}, [fn](const Tuple& left, const Tuple& right) {
    return Tuple{apply(fn, {left[0], right[0]})};
  })[0];
}

Scalar total(const ReductionAxes& over, const Scalar& term) {
  return fold_of(Fn::Add, over, like(term, 0), term);
}

Scalar squares(const ReductionAxes& over) {
  return total(over, over.element() * over.element());
}

/// log(sum(exp(x))) in one pass that cannot overflow: the maximum so far, and the sum relative to
/// it (Milakov and Gimelshein, Online normalizer calculation for softmax, section 3).
Scalar log_sum_exp(const ReductionAxes& over) {
  const Scalar x =
      is_float(over.x.dtype) ? over.element() : tessera::cast(DType::F64, over.element());
  const auto scaled = [](const Tuple& part, const Scalar& most) {
    // Equal maxima may be infinite, and their difference would be NaN.
    return part[1] * select(tessera::equal(part[0], most), 1.0, tessera::exp(part[0] - most));
  };
  const Tuple result = fold(bounds(over.over), {lowest(DType::F64), 0.0}, {x, 1.0},
                            [&](const Tuple& left, const Tuple& right) -> Tuple {
                              const Scalar most = tessera::max(left[0], right[0]);
                              return {most, scaled(left, most) + scaled(right, most)};
                            });
  return result[0] + tessera::log(result[1]);
}

using Reduce = Scalar (*)(const ReductionAxes&);

OpDef reduction(std::string name, std::string summary, Reduce reduce,
                Domain domain = Domain::Numbers) {
  return {.name = std::move(name),
          .summary = std::move(summary),
          .inputs = {"x", "axes?"},
          .attrs = {flag_attr("keepdims", 1), flag_attr("noop_with_empty_axes", 0)},
          .define = [=](const Attrs& attrs, const Signature& in) -> Expected<Definition> {
            TESSERA_TRY_DONE(check_domain(domain, in[0].dtype()));
            Ints named;
            if (given(in, 1)) {
              TESSERA_TRY(named, known_integers(in, 1, "axes"));
            }
            if (named.empty() && attrs.i("noop_with_empty_axes") == 0)
              named = all_axes(in[0].rank());
            TESSERA_TRY(const std::vector<int> axes, normal_axes(named, in[0].rank()));
            const ReductionAxes over =
                folded(in[0], {.axes = axes, .keep = attrs.i("keepdims") != 0});
            return Definition{.inputs = tessera::concat({over.x}, rest_as_given({"axes"}, in)),
                              .outputs = {output(in[0].dtype(), over.result, reduce(over))}};
          }};
}

struct Extremum {
  std::string name, summary;
  bool largest = true;
};

/// Argmin and argmax. Ties are broken by position and NaN counts as the extremum, so that the
/// combiner is associative.
OpDef position_of(const Extremum& extremum) {
  return {
      .name = extremum.name,
      .summary = extremum.summary,
      .inputs = {"x"},
      .attrs = {{"axis", 0}, flag_attr("keepdims", 1), flag_attr("select_last_index", 0)},
      .define = [largest = extremum.largest](const Attrs& attrs,
                                             const Signature& in) -> Expected<Definition> {
        TESSERA_TRY_DONE(check_domain(Domain::Any, in[0].dtype()));
        TESSERA_TRY(const int axis, normal_axis(attrs.i("axis"), in[0].rank()));
        if (in[0].dim(axis).is(0))
          return bad_operands(fmt::format("axis {} has size 0", axis),
                              "an extremum needs at least one element");
        const ReductionAxes over =
            folded(in[0], {.axes = {axis}, .keep = attrs.i("keepdims") != 0});
        const bool last = attrs.i("select_last_index") != 0;
        const DType dtype = in[0].dtype();
        const Scalar none = last ? Scalar(-1) : Scalar(std::numeric_limits<std::int64_t>::max());
        const Tuple found = fold(
            bounds(over.over), {largest ? lowest(dtype) : highest(dtype), none},
            {over.element(), over.over[0]}, [&](const Tuple& left, const Tuple& right) -> Tuple {
              Scalar better = largest ? right[0] > left[0] : right[0] < left[0];
              Scalar same = tessera::equal(right[0], left[0]);
              if (is_float(dtype)) {
                const Scalar no_left = tessera::is_nan(left[0]);
                const Scalar no_right = tessera::is_nan(right[0]);
                better = better || (no_right && !no_left);
                same = same || (no_right && no_left);
              }
              const Scalar nearer = last ? right[1] > left[1] : right[1] < left[1];
              const Scalar taken = better || (same && nearer);
              return {select(taken, right[0], left[0]), select(taken, right[1], left[1])};
            });
        return Definition{.inputs = {over.x},
                          .outputs = {output(DType::I64, over.result, found[1])}};
      }};
}

}  // namespace

OpDef reduce_sum() {
  return reduction("reduce_sum", "sum over axes",
                   [](const ReductionAxes& over) { return total(over, over.element()); });
}

OpDef reduce_mean() {
  return reduction("reduce_mean", "mean over axes", [](const ReductionAxes& over) {
    return total(over, over.element()) / Scalar(over.count());
  });
}

OpDef reduce_prod() {
  return reduction("reduce_prod", "product over axes", [](const ReductionAxes& over) {
    return fold_of(Fn::Mul, over, like(over.element(), 1), over.element());
  });
}

OpDef reduce_max() {
  return reduction(
      "reduce_max", "maximum over axes",
      [](const ReductionAxes& over) {
        return fold_of(Fn::Max, over, lowest(over.x.dtype), over.element());
      },
      Domain::Any);
}

OpDef reduce_min() {
  return reduction(
      "reduce_min", "minimum over axes",
      [](const ReductionAxes& over) {
        return fold_of(Fn::Min, over, highest(over.x.dtype), over.element());
      },
      Domain::Any);
}

OpDef reduce_l1() {
  return reduction("reduce_l1", "sum of magnitudes over axes", [](const ReductionAxes& over) {
    return total(over, tessera::abs(over.element()));
  });
}

OpDef reduce_l2() {
  return reduction("reduce_l2", "square root of the sum of squares over axes",
                   [](const ReductionAxes& over) { return tessera::sqrt(squares(over)); });
}

OpDef reduce_sum_square() {
  return reduction("reduce_sum_square", "sum of squares over axes", squares);
}

OpDef reduce_log_sum() {
  return reduction(
      "reduce_log_sum", "logarithm of the sum over axes",
      [](const ReductionAxes& over) { return tessera::log(total(over, over.element())); });
}

OpDef reduce_log_sum_exp() {
  return reduction("reduce_log_sum_exp", "logarithm of the sum of exponentials over axes",
                   log_sum_exp);
}

OpDef arg_max() {
  return position_of({"arg_max", "position of the largest element along an axis", true});
}

OpDef arg_min() {
  return position_of({"arg_min", "position of the smallest element along an axis", false});
}

}  // namespace tessera::define
