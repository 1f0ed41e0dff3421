#include "tessera/ops/families.h"
#include "tessera/ops/interpolate.h"
#include "tessera/ops/window.h"

namespace tessera::define {
namespace {

/// Size of merged axes, the last one fastest.
Dim size_of(const std::vector<Axis>& parts) {
  return product(sizes(parts));
}
Scalar position(const std::vector<Scalar>& at, const std::vector<Axis>& parts) {
  Scalar result = 0;
  for (std::size_t i = 0; i < at.size(); ++i) result = result * Scalar(parts[i].size()) + at[i];
  return result;
}

}  // namespace

OpDef col2im() {
  return {
      .name = "col2im",
      .summary = "the sum of the blocks N C*block L, each put where a sliding window took it from",
      .inputs = {"x", "image_shape", "block_shape"},
      .attrs = {{"dilations", Ints{}}, {"pads", Ints{}}, {"strides", Ints{}}},
      .define = [](const Attrs& attrs, const Signature& in) -> Expected<Definition> {
        TESSERA_TRY(const Shape image, known_sizes(in, 1, "image_shape"));
        TESSERA_TRY(const Shape block, known_sizes(in, 2, "block_shape"));
        const int spatial = static_cast<int>(image.size());
        if (in[0].rank() != 3 || block.size() != image.size())
          return bad_operands("the blocks, image_shape and block_shape do not fit",
                              "the blocks have 3 axes, the other two have equally many elements");
        for (const Dim& size : block)
          if (size.constant().value_or(1) < 1)
            return bad_operands(fmt::format("block_shape has an entry {}", size.to_string()),
                                "it has to be at least 1");
        const std::vector<Axis> tap = sized(axes("r", spatial), block);
        TESSERA_TRY(const Window window, Window::of(attrs, sized(axes("h", spatial), image), tap));

        const Axis n{"n"}, c{"c"};
        const Operand x{"x", in[0].dtype(), {n, c.size() * size_of(tap), size_of(window.at)}};
        const Window::Readers readers = window.readers();
        const Scalar element =
            x.or_zero({n, Scalar(c) * Scalar(size_of(tap)) + position(indices(tap), tap),
                       position(readers.position, window.at)});
        Scalar taken = readers.exact.value_or(truth(true));
        for (std::size_t i = 0; i < window.spatial(); ++i)
          taken = taken && Scalar(0) <= readers.position[i] &&
                  readers.position[i] < Scalar(window.at[i].size());
        return Definition{
            .inputs = concat<Operand>({x}, rest_as_given({"image_shape", "block_shape"}, in)),
            .outputs = {output(in[0].dtype(), each(concat<Axis>({n, c}, window.extent)),
                               sum(bounds(tap), select(taken, element, like(element, 0))))}};
      },
  };
}

OpDef deform_conv() {
  return {
      .name = "deform_conv",
      .summary = "conv whose taps are moved by offsets, and weighted by a mask if there is one",
      .inputs = {"x", "w", "offset", "b?", "mask?"},
      .attrs = {{"dilations", Ints{}},
                {"group", 1},
                {"kernel_shape", Ints{}},
                {"offset_group", 1},
                {"pads", Ints{}},
                {"strides", Ints{}}},
      .define = [](const Attrs& attrs, const Signature& in) -> Expected<Definition> {
        const int spatial = in[0].rank() - 2;
        if (spatial < 1 || in[1].rank() != in[0].rank() || in[2].rank() != in[0].rank() ||
            (given(in, 4) && in[4].rank() != in[0].rank()))
          return bad_operands("image, weight, offset and mask differ in their numbers of axes");
        TESSERA_TRY_DONE(check_domain(Domain::Floats, in[0].dtype()));
        TESSERA_TRY_DONE(check_same_dtype(in));
        if (attrs.i("group") < 1 || attrs.i("offset_group") < 1)
          return bad_operands("group or offset_group is less than 1");
        TESSERA_TRY(const std::vector<Axis> tap, window_taps(attrs, spatial));
        TESSERA_TRY(const Window window, Window::of(attrs, axes("h", spatial), tap));

        const Axis n{"n"}, g{"g", attrs.i("group")}, f{"f"}, c{"c"};
        const Dim groups = attrs.i("offset_group"), taps = size_of(tap);
        const MergedAxis in_channel = merge(g, c), channel = merge(g, f);
        const Operand x{"x", in[0].dtype(), concat<Dim>({n, in_channel}, sizes(window.extent))};
        const Operand w{"w", in[1].dtype(), concat<Dim>({channel, c}, sizes(tap))};
        const Operand offset{"offset", in[2].dtype(),
                             concat<Dim>({n, groups * taps * spatial}, sizes(window.at))};
        // Neighbouring channels share their offsets.
        const Dim shared = floor_div(Dim(in_channel), groups);
        const Scalar moved = floor_div(Scalar(in_channel), Scalar(max(shared, 1))) * Scalar(taps) +
                             position(indices(tap), tap);
        const auto at_position = [&](const Operand& operand, const Scalar& row) {
          return operand(concat<Scalar>({n, row}, indices(window.at)));
        };
        std::vector<Scalar> point = window.source();
        for (int i = 0; i < spatial; ++i) {
          Scalar& coordinate = point[static_cast<std::size_t>(i)];
          coordinate = coordinate + at_position(offset, moved * spatial + i);
        }
        Scalar term = interpolated(point, linear_kernel(), [&](const std::vector<Scalar>& at) {
          return x.or_zero(concat<Scalar>({n, in_channel}, at));
        });
        term = term * w(concat<Scalar>({channel, c}, indices(tap)));

        std::vector<Operand> inputs = {x, w, offset};
        if (given(in, 3)) inputs.push_back({"b", in[3].dtype(), {channel}});
        if (given(in, 4)) {
          inputs.push_back(
              {"mask", in[4].dtype(), concat<Dim>({n, groups * taps}, sizes(window.at))});
          term = term * at_position(inputs.back(), moved);
        }
        Scalar value = sum(bounds(concat<Axis>({c}, tap)), term);
        if (given(in, 3)) value = value + inputs[3]({channel});
        return Definition{
            .inputs = std::move(inputs),
            .outputs = {output(in[0].dtype(), concat<MergedAxis>({{{n}}, channel}, each(window.at)),
                               value)}};
      },
  };
}

}  // namespace tessera::define
