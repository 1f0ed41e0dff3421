#include <cmath>

#include "tessera/ops/composite.h"
#include "tessera/ops/families.h"
#include "tessera/ops/interpolate.h"

namespace tessera::define {
namespace {

/// An axis that is resized.
struct ResizedAxis {
  int axis = 0;
  Axis from, to;
  Scalar scale = 1.0;
  Dim shrink = 1;                          // how many samples one of the result covers, rounded up
  std::optional<std::int64_t> whole = {};  // the scale, if it is an integer
  std::optional<Scalar> first = {}, last = {};  // the part that is resized, of [0, 1]

  /// Sizes as floats; that of the result may have a fraction, which is truncated.
  Scalar length() const { return 1.0 * Scalar(from.size()); }
  Scalar new_length() const { return scale * length(); }
};

/// Scale or target size of an axis.
struct Target {
  std::optional<double> scale = {};
  std::optional<Dim> size = {};
};

/// floor(size * scale). A float is a fraction with a power of two below it, so that this is exact
/// for symbols too; numbers are multiplied as floats, as exporters do that wrote the scale.
Dim scaled(const Dim& size, double scale) {
  if (const auto number = size.constant()) {
    const double product = std::floor(static_cast<float>(*number) * static_cast<float>(scale));
    return product < 0x1p62 ? Dim(static_cast<std::int64_t>(product)) : Dim::undefined();
  }
  int exponent = 0;
  const double fraction = std::frexp(scale, &exponent);  // 24 bits are enough for a float
  const auto numerator = static_cast<std::int64_t>(std::ldexp(fraction, 24));
  const int shift = 24 - exponent;
  if (shift < 0 || shift > 61) return Dim::undefined();
  return floor_div(size * numerator, std::int64_t{1} << shift);
}

/// The scales or sizes that the inputs state, one for each of the axes.
Expected<std::vector<Target>> targets(const Signature& in, std::size_t count) {
  const auto stated = [&](std::size_t i) {
    return given(in, i) && !(in[i].rank() == 1 && in[i].dim(0).is(0));
  };
  if (stated(2) == stated(3))
    return bad_operands("scales and sizes are both given or both left out",
                        "one of them has to be given");
  std::vector<Target> result;
  if (stated(3)) {
    TESSERA_TRY(const Shape sizes, known_sizes(in, 3, "sizes"));
    for (const Dim& size : sizes) result.push_back({.size = size});
  } else {
    if (!in[2].content) return needs_value("scales");
    const Tensor& scales = *in[2].content;
    for (std::int64_t i = 0; i < scales.count(); ++i) {
      const double scale = number_at(scales, i);
      if (!(scale > 0) || !std::isfinite(scale))
        return bad_operands(fmt::format("a scale is {}", scale), "it has to be positive");
      result.push_back({.scale = scale});
    }
  }
  if (result.size() != count)
    return bad_operands(fmt::format("{} scales or sizes are given", result.size()),
                        fmt::format("{} axes are resized", count));
  return result;
}

/// Replaces sizes by one common scale, so that the image fits into them or covers them.
Expected<Done> keep_aspect_ratio(bool fits, const Argument& x, const std::vector<int>& axes,
                                 std::vector<Target>& targets) {
  double common = fits ? HUGE_VAL : 0;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto size = targets[i].size->constant(), old = x.dim(axes[i]).constant();
    if (!size || !old) return needs_value("sizes");
    const double scale = static_cast<double>(*size) / static_cast<double>(*old);
    common = fits ? std::min(common, scale) : std::max(common, scale);
  }
  if (!(common >= 0) || common > 0x1p31) return bad_operands("the sizes are out of range");
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const double size = std::floor(common * static_cast<double>(*x.dim(axes[i]).constant()) + 0.5);
    if (size > 0x1p62) return bad_operands("the sizes are out of range");
    targets[i] = {.scale = common, .size = static_cast<std::int64_t>(size)};
  }
  return Done{};
}

/// Source coordinate of a result sample. Rounded to f32 at each step for nearest neighbours, as
/// ONNX Runtime does, since the nearest one of 9 / 1.2f depends on it.
Scalar source(const std::string& mode, const ResizedAxis& r, bool is_rounded) {
  const auto rounded = [&](const Scalar& x) { return is_rounded ? cast(DType::F32, x) : x; };
  const Scalar y = 1.0 * Scalar(r.to), scale = rounded(r.scale);
  const Scalar half_pixel = rounded(rounded((y + 0.5) / scale) - 0.5);
  const Scalar is_one = equal(r.new_length(), 1.0);
  if (mode == "asymmetric") return rounded(y / scale);
  if (mode == "tf_half_pixel_for_nn") return rounded((y + 0.5) / scale);
  if (mode == "pytorch_half_pixel") return select(is_one, 0.0, half_pixel);
  if (mode == "half_pixel_symmetric") {
    const Scalar centred = r.length() / 2.0 * (1.0 - Scalar(r.to.size()) / r.new_length());
    return centred + (y + 0.5) / r.scale - 0.5;
  }
  const Scalar end = r.length() - 1.0, new_end = r.new_length() - 1.0;
  if (mode == "align_corners")
    return select(is_one, 0.0, rounded(rounded(y * end) / rounded(new_end)));
  if (mode == "tf_crop_and_resize") {
    const Scalar part = *r.last - *r.first;
    return select(is_one, part * end / 2.0, y * part * end / new_end) + *r.first * end;
  }
  return half_pixel;
}

Scalar nearest(const std::string& mode, const Scalar& x) {
  if (mode == "floor") return floor(x);
  if (mode == "ceil") return ceil(x);
  return mode == "round_prefer_ceil" ? floor(x + 0.5) : ceil(x - 0.5);
}

/// Whether nearest-neighbour resampling with an integer scale is plain repetition: pixel centres
/// stay clear of the edges of the source pixels.
bool is_blockwise(const std::string& coordinates, const std::string& rounding) {
  if (coordinates == "asymmetric") return rounding == "floor";
  return coordinates.find("half_pixel") != std::string::npos &&
         coordinates != "tf_half_pixel_for_nn" && rounding.starts_with("round");
}

/// Interpolation weights of the source samples around a point along one axis.
struct Taps {
  Axis tap;
  Scalar position, weight;
};

Taps taps_of(const Attrs& attrs, const Kernel& kernel, const ResizedAxis& r, const Scalar& point) {
  const bool antialias = attrs.i("antialias") != 0, exclude = attrs.i("exclude_outside") != 0;
  const Dim half = antialias ? max(r.shrink * kernel.reach, kernel.reach) : Dim(kernel.reach);
  const Scalar stretch = antialias ? min(r.scale, 1.0) : 1.0;
  const auto at = [&](const std::string& name) {
    const Axis tap{name + std::to_string(r.axis), half * 2};
    const Scalar position = as_index(floor(point)) + Scalar(tap) - Scalar(half - 1);
    Scalar weight = kernel.weight((position - point) * stretch);
    if (exclude)
      weight = select(Scalar(0) <= position && position < Scalar(r.from.size()), weight, 0.0);
    return Taps{tap, position, weight};
  };
  Taps result = at("t");
  if (antialias || exclude) {
    const Taps all = at("s");
    const Scalar total = sum({all.tap}, all.weight);
    result.weight = result.weight / select(equal(total, 0.0), 1.0, total);
  }
  return result;
}

/// A number as an element of this type: an integer is rounded and saturates.
Scalar as_element(DType dtype, const Scalar& x) {
  if (is_float(dtype)) return x;
  return cast(dtype, min(max(round(x), lowest(dtype)), highest(dtype)));
}

Expected<std::vector<ResizedAxis>> resized_axes(const Attrs& attrs, const Signature& in) {
  const Ints& named = attrs.ints("axes");
  TESSERA_TRY(const std::vector<int> axes,
              normal_axes(named.empty() ? all_axes(in[0].rank()) : named, in[0].rank()));
  TESSERA_TRY(std::vector<Target> wanted, targets(in, axes.size()));
  const std::string& policy = attrs.s("keep_aspect_ratio_policy");
  if (policy != "stretch" && !wanted.empty() && wanted[0].size)
    TESSERA_TRY_DONE(keep_aspect_ratio(policy == "not_larger", in[0], axes, wanted));
  const bool crops = attrs.s("coordinate_transformation_mode") == "tf_crop_and_resize";
  if (crops && (!given(in, 1) || in[1].rank() != 1))
    return bad_operands("tf_crop_and_resize has no roi");

  std::vector<ResizedAxis> result;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::string number = std::to_string(axes[i]);
    const std::size_t end = axes.size() + i;  // of the part to crop to, in roi
    const Dim size = in[0].dim(axes[i]);
    const std::optional<double> scale = wanted[i].scale;
    ResizedAxis r{.axis = axes[i], .from = {"h" + number}, .to = {"y" + number}};
    r.to.extent = wanted[i].size ? *wanted[i].size : scaled(size, *scale);
    const bool whole = !crops || (in[1].content && in[1].content->count() > std::int64_t(end) &&
                                  number_at(*in[1].content, std::int64_t(i)) == 0 &&
                                  number_at(*in[1].content, std::int64_t(end)) == 1);
    if (*r.to.extent == size && (!scale || *scale == 1.0) && whole) continue;
    if (scale) {
      const double shrink = std::max(std::ceil(1 / *scale), 1.0);
      if (shrink > 0x1p31) return bad_operands(fmt::format("a scale is {}", *scale));
      r.scale = *scale;
      r.shrink = static_cast<std::int64_t>(shrink);
      if (*scale == std::floor(*scale) && *scale < 0x1p31)
        r.whole = static_cast<std::int64_t>(*scale);
    } else {
      r.scale = Scalar(*r.to.extent) / r.length();
      r.shrink = ceil_div(r.from.size(), max(*r.to.extent, 1));
      const Dim ratio = floor_div(*r.to.extent, size);
      if (ratio.constant().value_or(0) > 0 && size * ratio == *r.to.extent)
        r.whole = ratio.constant();
    }
    if (crops) {
      const Operand roi = as_given("roi", in[1]);
      r.first = roi({static_cast<int>(i)});
      r.last = roi({static_cast<int>(end)});
    }
    result.push_back(std::move(r));
  }
  return result;
}

}  // namespace

OpDef resize() {
  return {
      .name = "resize",
      .summary = "an image sampled anew at another resolution",
      .inputs = {"x", "roi?", "scales?", "sizes?"},
      .outputs = {"y"},
      .attrs = {flag_attr("antialias", 0),
                {"axes", Ints{}},
                {"coordinate_transformation_mode", "half_pixel"},
                {"cubic_coeff_a", -0.75},
                flag_attr("exclude_outside", 0),
                {"extrapolation_value", 0.0},
                {"keep_aspect_ratio_policy", "stretch"},
                {"mode", "nearest"},
                {"nearest_mode", "round_prefer_floor"}},
      .define = [](const Attrs& attrs, const Signature& in) -> Expected<Definition> {
        TESSERA_TRY_DONE(check_domain(Domain::Numbers, in[0].dtype()));
        TESSERA_TRY_DONE(check_word(attrs, "mode", {"nearest", "linear", "cubic"}));
        TESSERA_TRY_DONE(check_word(attrs, "nearest_mode",
                                    {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}));
        TESSERA_TRY_DONE(
            check_word(attrs, "coordinate_transformation_mode",
                       {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
                        "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize"}));
        TESSERA_TRY_DONE(check_word(attrs, "keep_aspect_ratio_policy",
                                    {"stretch", "not_larger", "not_smaller"}));
        TESSERA_TRY(const std::vector<ResizedAxis> resized, resized_axes(attrs, in));
        const std::string& coordinates = attrs.s("coordinate_transformation_mode");
        const std::string &mode = attrs.s("mode"), &rounding = attrs.s("nearest_mode");
        const Kernel kernel =
            mode == "cubic" ? cubic_kernel(attrs.f("cubic_coeff_a")) : linear_kernel();

        std::vector<Axis> from = axes("y", in[0].rank()), to = from;
        std::vector<Scalar> at = indices(to);
        std::vector<Bound> taps;
        Scalar weight = 1.0, outside = truth(false);
        for (const ResizedAxis& r : resized) {
          const auto axis = static_cast<std::size_t>(r.axis);
          from[axis] = r.from;
          to[axis] = r.to;
          if (mode == "nearest" && r.whole && is_blockwise(coordinates, rounding)) {
            at[axis] = floor_div(r.to, Scalar(*r.whole));
            continue;
          }
          const Scalar point = source(coordinates, r, mode == "nearest");
          if (r.first) outside = outside || point < 0.0 || point > r.length() - 1.0;
          if (mode == "nearest") {
            at[axis] = clamped(as_index(nearest(rounding, point)), r.from);
            continue;
          }
          const Taps around = taps_of(attrs, kernel, r, point);
          at[axis] = clamped(around.position, r.from);
          weight = taps.empty() ? around.weight : weight * around.weight;
          taps.push_back(around.tap);
        }
        const Operand x{"x", in[0].dtype(), sizes(from)};
        const Scalar pixel = x(at);
        const DType dtype = in[0].dtype();
        Scalar value = taps.empty() ? pixel : as_element(dtype, sum(taps, weight * pixel));
        if (coordinates == "tf_crop_and_resize")
          value = select(outside, as_element(dtype, attrs.f("extrapolation_value")), value);
        return Definition{
            .inputs = concat<Operand>({x}, rest_as_given({"roi", "scales", "sizes"}, in)),
            .outputs = {{.name = "y", .dtype = dtype, .axes = each(to), .value = value}}};
      },
  };
}

}  // namespace tessera::define
