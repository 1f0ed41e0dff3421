#include "tessera/ops/families.h"
#include "tessera/ops/window.h"

namespace tessera::op {
namespace {

/// An image N C spatial…, weights of the same rank, and maybe one bias per channel.
Expected<int> spatial_axes(const Attrs& attrs, const Signature& in) {
  if (in[0].rank() < 2 || in[1].rank() != in[0].rank())
    return bad_operands(
        fmt::format("image and weight have {} and {} axes", in[0].rank(), in[1].rank()),
        "both have N C and the same number of spatial axes");
  TESSERA_TRY_DONE(check_same_dtype(in));
  TESSERA_TRY_DONE(check_domain(Domain::Numbers, in[0].dtype()));
  if (const Dim group = size_attr(attrs, "group"); group.constant().value_or(1) < 1)
    return bad_operands(fmt::format("group is {}", group.to_string()), "it has to be at least 1");
  return in[0].rank() - 2;
}

/// The definition once it is known what is summed up; adds the bias where there is one.
Definition with_bias(const Signature& in, std::vector<Operand> inputs, std::vector<Merged> axes,
                     Scalar value) {
  if (given(in, 2)) {
    const Merged& channel = axes[1];
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

OpDef conv() {
  return {
      .name = "conv",
      .summary = "cross-correlation of an N C spatial… image with F C/group window… weights",
      .inputs = {"x", "w", "b?"},
      .outputs = {"y"},
      .attrs = window_attrs({symbolic_attr("group", 1, 1)}),
      .define = [](const Attrs& attrs, const Signature& in) -> Expected<Definition> {
        TESSERA_TRY(const int spatial, spatial_axes(attrs, in));
        TESSERA_TRY(const std::vector<Axis> tap, window_taps(attrs, spatial));
        TESSERA_TRY(const Window window, Window::of(attrs, axes("h", spatial), tap));
        const Axis n{"n"}, g{"g", size_attr(attrs, "group")}, f{"f"}, c{"c"};

        const Operand x{"x", in[0].dtype(), concat<Dim>({n, merge(g, c)}, sizes(window.extent))};
        const Operand w{"w", in[1].dtype(), concat<Dim>({merge(g, f), c}, sizes(tap))};
        const Scalar pixel = x.or_zero(concat<Scalar>({n, merge(g, c)}, window.source()));
        const Scalar weight = w(concat<Scalar>({merge(g, f), c}, indices(tap)));
        return with_bias(in, {x, w}, concat<Merged>({{{n}}, merge(g, f)}, each(window.at)),
                         sum(bounds(concat<Axis>({c}, tap)), pixel * weight));
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
        return with_bias(in, {x, w}, concat<Merged>({{{n}}, merge(g, f)}, each(window.extent)),
                         sum(bounds(concat<Axis>({c}, tap)), term));
      },
  };
}

}  // namespace tessera::op
