#include "tessera/ops/composite.h"
#include "tessera/ops/families.h"
#include "tessera/ops/interpolate.h"
#include "tessera/ops/window.h"

namespace tessera::define {
namespace {

/// Converts a coordinate in [-1, 1] to samples; with `aligned`, -1 and 1 are the outermost samples,
/// otherwise the outermost edges.
Scalar in_samples(const Scalar& x, const Dim& size, bool aligned) {
  if (aligned) return (x + 1.0) / 2.0 * (Scalar(size) - 1);
  return ((x + 1.0) * Scalar(size) - 1.0) / 2.0;
}

/// Inverse of in_samples, for sample i. The only sample of an axis of size 1 is its first corner.
Scalar in_unit(const Scalar& i, const Dim& size, bool aligned) {
  if (aligned) return 2.0 * i / max(Scalar(size) - 1, 1) - 1.0;
  return (2.0 * i + 1.0) / Scalar(size) - 1.0;
}

/// Padding mode outside of an image.
struct Border {
  enum class Kind { Zeros, Border, Reflection };

  Kind kind = Kind::Zeros;
  bool aligned = false;

  /// Position of the sample that stands in; a zero sample stays out of range.
  Scalar position(const Scalar& at, const Dim& size) const {
    switch (kind) {
      case Kind::Zeros: break;
      case Kind::Border: return clamped(at, size);
      case Kind::Reflection: {
        const Dim period = max(aligned ? (size - 1) * 2 : size * 2, 1);
        const Scalar folded = mod(at, period);
        return clamped(min(folded, Scalar(period) - folded - (aligned ? 0 : 1)), size);
      }
    }
    return at;
  }
};

/// Checks the ranks of the inputs.
Expected<Done> check_ranks(const Signature& in, const std::vector<int>& ranks) {
  for (std::size_t i = 0; i < ranks.size(); ++i)
    if (in[i].rank() != ranks[i])
      return bad_operands(fmt::format("input {} has {} axes", i, in[i].rank()),
                          fmt::format("it has to have {}", ranks[i]));
  return Done{};
}

constexpr std::int64_t kMost = std::int64_t{1} << 31;

}  // namespace

OpDef grid_sample() {
  return {
      .name = "grid_sample",
      .summary = "an image sampled at the points of a grid, whose coordinates are in [-1, 1]",
      .inputs = {"x", "grid"},
      .outputs = {"y"},
      .attrs = {flag_attr("align_corners", 0), {"mode", "linear"}, {"padding_mode", "zeros"}},
      .define = [](const Attrs& attrs, const Signature& in) -> Expected<Definition> {
        const int spatial = in[0].rank() - 2;
        if (spatial < 1) return bad_operands("the image has no spatial axes");
        TESSERA_TRY_DONE(check_ranks(in, {spatial + 2, spatial + 2}));
        TESSERA_TRY_DONE(check_domain(Domain::Floats, in[0].dtype()));
        TESSERA_TRY_DONE(check_domain(Domain::Floats, in[1].dtype()));
        TESSERA_TRY_DONE(
            check_word(attrs, "mode", {"linear", "bilinear", "nearest", "cubic", "bicubic"}));
        TESSERA_TRY_DONE(check_word(attrs, "padding_mode", {"zeros", "border", "reflection"}));
        const bool aligned = attrs.i("align_corners") != 0;
        const std::string &mode = attrs.s("mode"), &padding = attrs.s("padding_mode");
        const Border border{padding == "zeros"    ? Border::Kind::Zeros
                            : padding == "border" ? Border::Kind::Border
                                                  : Border::Kind::Reflection,
                            aligned};

        const Axis n{"n"}, c{"c"};
        const std::vector<Axis> h = axes("h", spatial), y = axes("y", spatial);
        const Operand x{"x", in[0].dtype(), concat<Dim>({n, c}, sizes(h))};
        const Operand grid{"grid", in[1].dtype(),
                           concat<Dim>(concat<Dim>({n}, sizes(y)), {spatial})};
        const Samples sample = [&](const std::vector<Scalar>& at) {
          std::vector<Scalar> where = {n, c};
          for (std::size_t i = 0; i < h.size(); ++i) where.push_back(border.position(at[i], h[i]));
          return x.or_zero(where);
        };
        std::vector<Scalar> point;
        for (int i = 0; i < spatial; ++i) {
          // The grid names the last axis first.
          const Scalar unit =
              grid(concat<Scalar>(concat<Scalar>({n}, indices(y)), {Scalar(spatial - 1 - i)}));
          point.push_back(in_samples(unit, h[static_cast<std::size_t>(i)], aligned));
        }
        Scalar value = 0.0;
        if (mode == "nearest") {
          for (Scalar& coordinate : point) coordinate = as_index(round(coordinate));
          value = sample(point);
        } else {
          const bool linear = mode.ends_with("linear");
          value = interpolated(point, linear ? linear_kernel() : cubic_kernel(-0.75), sample);
        }
        return Definition{.inputs = {x, grid},
                          .outputs = {{.name = "y",
                                       .dtype = in[0].dtype(),
                                       .axes = each(concat<Axis>({n, c}, y)),
                                       .value = value}}};
      },
  };
}

OpDef affine_grid() {
  return {
      .name = "affine_grid",
      .summary = "the grid for grid_sample that maps an image of this size by theta",
      .inputs = {"theta", "size"},
      .outputs = {"grid"},
      .attrs = {flag_attr("align_corners", 0)},
      .define = [](const Attrs& attrs, const Signature& in) -> Expected<Definition> {
        TESSERA_TRY_DONE(check_ranks(in, {3, 1}));
        TESSERA_TRY_DONE(check_domain(Domain::Floats, in[0].dtype()));
        TESSERA_TRY(const Shape size, known_sizes(in, 1, "size"));
        if (size.size() < 3)
          return bad_operands(fmt::format("size has {} elements", size.size()),
                              "it is N C and the spatial sizes");
        const int spatial = static_cast<int>(size.size()) - 2;
        const bool aligned = attrs.i("align_corners") != 0;
        const Axis n{"n", size[0]}, j{"j", spatial};
        const std::vector<Axis> y = sized(axes("y", spatial), {size.begin() + 2, size.end()});

        const Operand theta{"theta", in[0].dtype(), {n, j, spatial + 1}};
        Scalar value = theta({n, j, spatial});
        for (int k = 0; k < spatial; ++k) {
          const Axis& along = y[static_cast<std::size_t>(spatial - 1 - k)];
          value = value + theta({n, j, k}) * in_unit(along, along, aligned);
        }
        return Definition{.inputs = {theta, as_given("size", in[1])},
                          .outputs = {{.name = "grid",
                                       .dtype = in[0].dtype(),
                                       .axes = each(concat(concat<Axis>({n}, y), {j})),
                                       .value = value}}};
      },
  };
}

OpDef roi_align() {
  return {
      .name = "roi_align",
      .summary = "boxes x1 y1 x2 y2 of an image, sampled and pooled to one size",
      .inputs = {"x", "rois", "batch_indices"},
      .outputs = {"y"},
      .attrs = {{"coordinate_transformation_mode", "half_pixel"},
                {"mode", "avg"},
                {"output_height", 1},
                {"output_width", 1},
                {"sampling_ratio", 0},
                {"spatial_scale", 1.0}},
      .define = [](const Attrs& attrs, const Signature& in) -> Expected<Definition> {
        TESSERA_TRY_DONE(check_ranks(in, {4, 2, 1}));
        TESSERA_TRY_DONE(check_domain(Domain::Floats, in[0].dtype()));
        TESSERA_TRY_DONE(check_domain(Domain::Floats, in[1].dtype()));
        TESSERA_TRY_DONE(check_domain(Domain::Integers, in[2].dtype()));
        TESSERA_TRY_DONE(check_word(attrs, "mode", {"avg", "max"}));
        TESSERA_TRY_DONE(check_word(attrs, "coordinate_transformation_mode",
                                    {"half_pixel", "output_half_pixel"}));
        const std::int64_t ratio = attrs.i("sampling_ratio");
        const Ints pooled = {attrs.i("output_height"), attrs.i("output_width")};
        if (pooled[0] < 1 || pooled[1] < 1 || ratio < 0 ||
            std::max({pooled[0], pooled[1], ratio}) > kMost)
          return bad_operands("output_height, output_width or sampling_ratio is out of range");
        const bool half_pixel = attrs.s("coordinate_transformation_mode") == "half_pixel";

        const Axis n{"n"}, c{"c"}, b{"b"};
        const std::vector<Axis> h = axes("h", 2);
        const std::vector<Axis> y = sized(axes("y", 2), {pooled[0], pooled[1]});
        const Operand x{"x", in[0].dtype(), concat<Dim>({b, c}, sizes(h))};
        const Operand rois{"rois", in[1].dtype(), {n, 4}};
        const Operand batch{"batch_indices", in[2].dtype(), {n}};

        // Along each axis a bin holds `steps` samples; those outside of the image are zero.
        Scalar count = 1, inside = truth(true);
        std::vector<Scalar> point;
        std::vector<Bound> samples;
        for (std::size_t i = 0; i < 2; ++i) {
          const int column = i == 0 ? 1 : 0;
          const double scale = attrs.f("spatial_scale"), shift = half_pixel ? 0.5 : 0.0;
          const Scalar start = rois({n, column}) * scale - shift;
          Scalar length = rois({n, column + 2}) * scale - shift - start;
          if (!half_pixel) length = max(length, 1.0);
          const Scalar bin = length / static_cast<double>(pooled[i]);
          const Scalar steps = ratio > 0 ? Scalar(ratio) : max(as_index(ceil(bin)), 0);
          const Bound sample{"s" + std::to_string(i), steps};
          const Scalar at = start + y[i] * bin + (index_of(sample.axis) + 0.5) * bin / steps;
          inside = inside && -1.0 <= at && at <= Scalar(h[i].size());
          point.push_back(clamped(at, h[i]));
          samples.push_back(sample);
          count = count * steps;
        }
        const InterpolationTerm corners =
            interpolation_term(point, linear_kernel(), [&](const std::vector<Scalar>& at) {
              return x({batch({n}), c, clamped(at[0], h[0]), clamped(at[1], h[1])});
            });
        const Scalar term = select(inside, corners.term, 0.0);
        const std::vector<Bound> over = concat(samples, corners.taps);
        const Scalar value = attrs.s("mode") == "avg"
                                 ? sum(over, term) / max(count, 1)
                                 : select(equal(count, 0), 0.0, max_of(over, term));
        return Definition{.inputs = {x, rois, batch},
                          .outputs = {{.name = "y",
                                       .dtype = in[0].dtype(),
                                       .axes = each(concat<Axis>({n, c}, y)),
                                       .value = value}}};
      },
  };
}

OpDef max_roi_pool() {
  return {
      .name = "max_roi_pool",
      .summary = "boxes b x1 y1 x2 y2 of an image, max-pooled to one size",
      .inputs = {"x", "rois"},
      .outputs = {"y"},
      .attrs = {required_attr("pooled_shape", Ints{}), {"spatial_scale", 1.0}},
      .define = [](const Attrs& attrs, const Signature& in) -> Expected<Definition> {
        TESSERA_TRY_DONE(check_ranks(in, {4, 2}));
        TESSERA_TRY_DONE(check_domain(Domain::Floats, in[0].dtype()));
        TESSERA_TRY_DONE(check_domain(Domain::Floats, in[1].dtype()));
        const Ints& pooled = attrs.ints("pooled_shape");
        if (pooled.size() != 2 || std::min(pooled[0], pooled[1]) < 1 ||
            std::max(pooled[0], pooled[1]) > kMost)
          return bad_operands("pooled_shape is out of range", "it has two entries of at least 1");

        const Axis n{"n"}, c{"c"}, b{"b"};
        const std::vector<Axis> h = axes("h", 2);
        const std::vector<Axis> y = sized(axes("y", 2), {pooled[0], pooled[1]});
        const Operand x{"x", in[0].dtype(), concat<Dim>({b, c}, sizes(h))};
        const Operand rois{"rois", in[1].dtype(), {n, 5}};

        const auto edge = [&](int column) {
          return floor(rois({n, column}) * attrs.f("spatial_scale") + 0.5);
        };
        std::vector<Scalar> at = {as_index(rois({n, 0})), c};
        std::vector<Bound> over;
        Scalar empty = truth(false);
        for (std::size_t i = 0; i < 2; ++i) {
          const int column = i == 0 ? 2 : 1;
          const Scalar start = edge(column);
          const Scalar bin = max(edge(column + 2) - start + 1.0, 1.0) / double(pooled[i]);
          const auto within = [&](const Scalar& position) {
            return as_index(min(max(position + start, 0.0), Scalar(h[i].size())));
          };
          const Scalar first = within(floor(y[i] * bin));
          const Scalar end = within(ceil((Scalar(y[i]) + 1) * bin));
          over.push_back({"s" + std::to_string(i), max(end - first, 0)});
          at.push_back(clamped(first + index_of(over.back().axis), h[i]));
          empty = empty || end <= first;
        }
        return Definition{.inputs = {x, rois},
                          .outputs = {{.name = "y",
                                       .dtype = in[0].dtype(),
                                       .axes = each(concat<Axis>({n, c}, y)),
                                       .value = select(empty, 0.0, max_of(over, x(at)))}}};
      },
  };
}

}  // namespace tessera::define
