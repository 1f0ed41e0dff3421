#include "tessera/ops/composite.h"
#include "tessera/ops/families.h"
#include "tessera/ops/window.h"

namespace tessera::define {
namespace {

/// Checks image (N C spatial…), weights of the same rank and optional bias; returns the number of
/// spatial axes.
Expected<int> spatial_axes_of_any(const Attrs& attrs, const Signature& in) {
  if (in[0].rank() < 2 || in[1].rank() != in[0].rank())
    return bad_operands(
        fmt::format("image and weight have {} and {} axes", in[0].rank(), in[1].rank()),
        "both have N C and the same number of spatial axes");
  if (const Dim group = size_attr(attrs, "group"); group.constant().value_or(1) < 1)
    return bad_operands(fmt::format("group is {}", group.to_string()), "it has to be at least 1");
  return in[0].rank() - 2;
}

Expected<int> spatial_axes(const Attrs& attrs, const Signature& in) {
  TESSERA_TRY_DONE(check_same_dtype(in));
  TESSERA_TRY_DONE(check_domain(Domain::Numbers, in[0].dtype()));
  return spatial_axes_of_any(attrs, in);
}

/// Definition of a convolution from the value of its sum; adds the bias if there is one.
Definition with_bias(const Signature& in, std::vector<Operand> inputs, std::vector<MergedAxis> axes,
                     Scalar value) {
  if (given(in, 2)) {
    const MergedAxis& channel = axes[1];
    inputs.push_back({"b", in[2].dtype(), {channel}});
    value = value + inputs.back()({channel});
  }
  return {.inputs = std::move(inputs),
          .outputs = {{.name = "y",
                       .dtype = in[0].dtype(),
                       .axes = std::move(axes),
                       .value = std::move(value)}}};
}

}  // namespace

namespace {

/// Operands, accesses and output axes of a convolution.
struct Windows {
  Operand x, w;
  std::vector<Scalar> pixel, weight;  // where they are read
  MergedAxis channel;
  std::vector<MergedAxis> axes;
  std::vector<Bound> sums;
};

Expected<Windows> windows_of(const Attrs& attrs, const Signature& in, int spatial) {
  TESSERA_TRY(const std::vector<Axis> tap, window_taps(attrs, spatial));
  TESSERA_TRY(const Window window, Window::of(attrs, axes("h", spatial), tap));
  const Axis n{"n"}, g{"g", size_attr(attrs, "group")}, f{"f"}, c{"c"};
  return Windows{.x = {"x", in[0].dtype(), concat<Dim>({n, merge(g, c)}, sizes(window.extent))},
                 .w = {"w", in[1].dtype(), concat<Dim>({merge(g, f), c}, sizes(tap))},
                 .pixel = concat<Scalar>({n, merge(g, c)}, window.source()),
                 .weight = concat<Scalar>({merge(g, f), c}, indices(tap)),
                 .channel = merge(g, f),
                 .axes = concat<MergedAxis>({{{n}}, merge(g, f)}, each(window.at)),
                 .sums = bounds(concat<Axis>({c}, tap))};
}

/// Operand that is a scalar or has one element per channel.
Operand per_channel(std::string name, const Argument& given, const MergedAxis& channel) {
  Operand operand{std::move(name), given.dtype()};
  if (given.rank() == 1) operand.shape.push_back(given.dim(0).is(1) ? Dim(1) : Dim(channel));
  return operand;
}

}  // namespace

OpDef conv() {
  return {
      .name = "conv",
      .summary = "cross-correlation of an N C spatial… image with F C/group window… weights",
      .inputs = {"x", "w", "b?"},
      .outputs = {"y"},
      .attrs = window_attrs({symbolic_attr("group", 1, 1)}),
      .define = [](const Attrs& attrs, const Signature& in) -> Expected<Definition> {
        TESSERA_TRY(const int spatial, spatial_axes(attrs, in));
        TESSERA_TRY(const Windows at, windows_of(attrs, in, spatial));
        return with_bias(in, {at.x, at.w}, at.axes,
                         sum(at.sums, at.x.or_zero(at.pixel) * at.w(at.weight)));
      },
  };
}

OpDef conv_integer() {
  return {
      .name = "conv_integer",
      .summary = "conv of (x - x_zero_point) with (w - w_zero_point) as i32",
      .inputs = {"x", "w", "x_zero_point?", "w_zero_point?"},
      .outputs = {"y"},
      .attrs = window_attrs({symbolic_attr("group", 1, 1)}),
      .define = [](const Attrs& attrs, const Signature& in) -> Expected<Definition> {
        for (const std::size_t i : {0, 1})
          TESSERA_TRY_DONE(check_domain(Domain::Integers, in[i].dtype()));
        TESSERA_TRY(const int spatial, spatial_axes_of_any(attrs, in));
        TESSERA_TRY(const Windows at, windows_of(attrs, in, spatial));
        std::vector<Operand> inputs{at.x, at.w};
        Scalar pixel = at.x.or_zero(at.pixel), weight = at.w(at.weight);
        if (given(in, 2)) {
          inputs.push_back({"x_zero_point", in[2].dtype()});
          if (in[2].rank() == 1) inputs.back().shape = {1};
          const Scalar zero =
              inputs.back()(in[2].rank() == 1 ? std::vector<Scalar>{0} : std::vector<Scalar>{});
          // Padding is 0, which the zero point represents.
          pixel = at.x.or_else(at.pixel, zero) - zero;
        }
        if (given(in, 3)) {
          inputs.push_back(per_channel("w_zero_point", in[3], at.channel));
          std::vector<Scalar> zero;
          if (in[3].rank() == 1)
            zero.push_back(in[3].dim(0).is(1) ? Scalar(0) : Scalar(at.channel));
          weight = weight - inputs.back()(zero);
        }
        return Definition{.inputs = std::move(inputs),
                          .outputs = {{"y", DType::I32, at.axes, sum(at.sums, pixel * weight)}}};
      },
  };
}

OpDef conv_transpose() {
  return {
      .name = "conv_transpose",
      .summary = "the transpose of conv: every pixel adds a weighted window C F/group window…",
      .inputs = {"x", "w", "b?"},
      .outputs = {"y"},
      .attrs = window_attrs(
          {symbolic_attr("group", 1, 1), {"output_padding", Ints{}}, {"output_shape", Ints{}}}),
      .define = [](const Attrs& attrs, const Signature& in) -> Expected<Definition> {
        TESSERA_TRY(const int spatial, spatial_axes(attrs, in));
        TESSERA_TRY(const std::vector<Axis> tap, window_taps(attrs, spatial));
        // The window slides over the output; x has one pixel for each of its positions.
        TESSERA_TRY(Window window, Window::of(attrs, axes("h", spatial), tap));
        window.at = axes("y", spatial);
        const Ints& padding = attrs.ints("output_padding");
        const Ints& shape = attrs.ints("output_shape");
        const std::string& mode = attrs.s("auto_pad");
        for (const Ints* given : {&padding, &shape})
          if (!given->empty() && given->size() != window.spatial())
            return bad_operands("output_padding or output_shape does not fit the image",
                                fmt::format("it has {} spatial axes", spatial));
        for (std::size_t i = 0; i < window.spatial(); ++i) {
          const Dim stride = window.strides[i], size = window.at[i];
          const Dim full =
              (size - 1) * stride + (padding.empty() ? 0 : padding[i]) + window.reach(i);
          if (shape.empty() && !mode.starts_with("SAME")) {
            window.extent[i].extent = full - window.before[i] - window.after[i];
            continue;
          }
          // An output larger than what the windows reach ends in zeros; pads are not negative.
          const Dim wanted = shape.empty() ? size * stride : Dim(shape[i]);
          const Dim total = max(full - wanted, 0), half = floor_div(total, 2);
          window.before[i] = mode == "SAME_UPPER" ? half : total - half;
          window.extent[i].extent = wanted;
        }
        const Axis n{"n"}, g{"g", size_attr(attrs, "group")}, f{"f"}, c{"c"};

        const Operand x{"x", in[0].dtype(), concat<Dim>({n, merge(g, c)}, sizes(window.at))};
        const Operand w{"w", in[1].dtype(), concat<Dim>({merge(g, c), f}, sizes(tap))};
        const Window::Readers readers = window.readers();
        const Scalar pixel = x.or_zero(concat<Scalar>({n, merge(g, c)}, readers.position));
        const Scalar weight = w(concat<Scalar>({merge(g, c), f}, indices(tap)));
        const Scalar term =
            readers.exact ? select(*readers.exact, pixel * weight, like(pixel, 0)) : pixel * weight;
        return with_bias(in, {x, w}, concat<MergedAxis>({{{n}}, merge(g, f)}, each(window.extent)),
                         sum(bounds(concat<Axis>({c}, tap)), term));
      },
  };
}

namespace {

/// The gradient as a convolution of the image by dy, whose taps are as far apart as the windows
/// were: the batch becomes the channels of each group.
Expected<Vals> weight_gradient_by_conv(Body& b, const Attrs& attrs, const Vals& in) {
  const Val &x = in[0], &dy = in[1];
  const int rank = x.rank();
  Ints swapped{1, 0}, moved{2, 1, 0};
  for (int axis = 2; axis < rank; ++axis) {
    swapped.push_back(axis);
    moved.push_back(axis + 1);
  }
  const Val sizes = sizes_of(x, 2, rank), batch = sizes_of(x, 0, 1);
  const Val split = b.op("reshape", {x, joined({batch, b.ints({attrs.i("group"), -1}), sizes}, 0)});
  const Val image = b.op("reshape", {b.op("transpose", {split}, {{"perm", moved}}),
                                     joined({b.ints({0, -1}), sizes}, 0)});
  const Val taps = b.op("transpose", {dy}, {{"perm", swapped}});
  Val product = b.op("conv", {image, taps},
                     {{"strides", attrs.ints("dilations")},
                      {"dilations", attrs.ints("strides")},
                      {"pads", attrs.ints("pads")},
                      {"group", attrs.i("group")}});
  const Ints& window = attrs.ints("kernel_shape");
  for (std::size_t i = 0; i < window.size(); ++i)
    product = b.op("slice", {product, b.ints({0}), b.ints({window[i]}),
                             b.ints({static_cast<std::int64_t>(i) + 2})});
  return Vals{b.op("transpose", {product}, {{"perm", swapped}})};
}

}  // namespace

OpDef conv_weight_gradient() {
  return {
      .name = "conv_weight_gradient",
      .summary =
          "gradient of conv's weights F C/group window…, of its image x and the gradient dy "
          "of its result; kernel_shape is required",
      .inputs = {"x", "dy"},
      .outputs = {"dw"},
      .attrs = window_attrs({symbolic_attr("group", 1, 1)}),
      .define = [](const Attrs& attrs, const Signature& in) -> Expected<Definition> {
        TESSERA_TRY(const int spatial, spatial_axes(attrs, in));
        if (attrs.ints("kernel_shape").size() != static_cast<std::size_t>(spatial) ||
            attrs.s("auto_pad") != "NOTSET")
          return bad_operands("kernel_shape does not fit the image, or pads are not given",
                              fmt::format("it has {} spatial axes", spatial));
        TESSERA_TRY(const std::vector<Axis> tap, window_taps(attrs, spatial));
        TESSERA_TRY(Window window, Window::of(attrs, axes("h", spatial), tap));
        window.at = axes("y", spatial);
        const Axis n{"n"}, g{"g", size_attr(attrs, "group")}, f{"f"}, c{"c"};

        const Operand x{"x", in[0].dtype(), concat<Dim>({n, merge(g, c)}, sizes(window.extent))};
        const Operand dy{"dy", in[1].dtype(), concat<Dim>({n, merge(g, f)}, sizes(window.at))};
        const Scalar pixel = x.or_zero(concat<Scalar>({n, merge(g, c)}, window.source()));
        const Scalar gradient = dy(concat<Scalar>({n, merge(g, f)}, indices(window.at)));
        return Definition{
            .inputs = {x, dy},
            .outputs = {{.name = "dw",
                         .dtype = in[0].dtype(),
                         .axes = concat<MergedAxis>({merge(g, f), {{c}}}, each(tap)),
                         .value = sum(bounds(concat<Axis>({n}, window.at)), pixel * gradient)}}};
      },
      .expand = weight_gradient_by_conv,
  };
}

}  // namespace tessera::define
