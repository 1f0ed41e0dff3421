#include <fmt/format.h>

#include <algorithm>

#include "tessera/ops/composite.h"
#include "tessera/ops/families.h"
#include "tessera/ops/window.h"

namespace tessera::define {
namespace {

/// Common part of pooling operators: an image N C spatial… and a window over it.
struct Pool {
  Window window;
  Operand x;
  std::vector<Scalar> at;        // what a tap reads
  std::vector<Bound> taps;       // what is folded over
  std::vector<MergedAxis> axes;  // of the result

  Definition defined(std::vector<Output> outputs) const { return {{x}, std::move(outputs)}; }
  Output output(const Scalar& value) const {
    return {.name = "y", .dtype = x.dtype, .axes = axes, .value = value};
  }
};

Expected<Pool> pool_of(const Attrs& attrs, const Signature& in) {
  if (in[0].rank() < 2)
    return bad_operands(fmt::format("the image has {} axes", in[0].rank()),
                        "it has N C and spatial axes");
  const int spatial = in[0].rank() - 2;
  TESSERA_TRY(const std::vector<Axis> tap, window_taps(attrs, spatial));
  if (spatial > 0 && attrs.ints("kernel_shape").empty())
    return bad_operands("kernel_shape is empty");
  TESSERA_TRY(Window window, Window::of(attrs, axes("h", spatial), tap));
  const Axis n{"n"}, c{"c"};
  Operand x{"x", in[0].dtype(), concat<Dim>({n, c}, sizes(window.extent))};
  std::vector<Scalar> at = concat<Scalar>({n, c}, window.source());
  std::vector<MergedAxis> axes = each(concat<Axis>({n, c}, window.at));
  return Pool{std::move(window), std::move(x), std::move(at), bounds(tap), std::move(axes)};
}

std::vector<AttrSpec> pool_attrs(const std::vector<AttrSpec>& more) {
  std::vector<AttrSpec> attrs = concat(window_attrs({flag_attr("ceil_mode", 0)}), more);
  for (AttrSpec& attr : attrs)
    if (attr.name == "kernel_shape") attr = required_attr("kernel_shape", Ints{});
  return attrs;
}

/// Flat index of an image element, in row-major or (its spatial part) column-major order.
Scalar element_number(const Pool& pool, bool column_major) {
  const std::size_t spatial = pool.window.spatial();
  Scalar number = pool.at[0] * Scalar(pool.x.shape[1]) + pool.at[1];
  for (std::size_t i = 0; i < spatial; ++i) {
    const std::size_t axis = 2 + (column_major ? spatial - 1 - i : i);
    number = number * Scalar(pool.x.shape[axis]) + pool.at[axis];
  }
  return number;
}

/// Whether a tap lies within the image.
Scalar inside(const Pool& pool) {
  Scalar all = truth(true);
  for (std::size_t axis = 2; axis < pool.at.size(); ++axis)
    all = all && Scalar(0) <= pool.at[axis] && pool.at[axis] < Scalar(pool.x.shape[axis]);
  return all;
}

}  // namespace

OpDef max_pool() {
  return {
      .name = "max_pool",
      .summary = "the largest element under a sliding window, and where it is",
      .inputs = {"x"},
      .outputs = {"y", "indices"},
      .attrs = pool_attrs({flag_attr("storage_order", 0)}),
      .define = [](const Attrs& attrs, const Signature& in) -> Expected<Definition> {
        TESSERA_TRY_DONE(check_domain(Domain::Numbers, in[0].dtype()));
        TESSERA_TRY(const Pool pool, pool_of(attrs, in));
        const Scalar least = lowest(in[0].dtype());
        const Scalar pixel = pool.x.or_else(pool.at, least);
        // Padding has no index, so that it loses ties against image elements.
        const Scalar number =
            select(inside(pool), element_number(pool, attrs.i("storage_order") != 0), Scalar(-1));
        const Tuple largest =
            fold(pool.taps, {least, -1}, {pixel, number}, [](const Tuple& a, const Tuple& b) {
              const Scalar later = b[1] >= 0 && (a[1] < 0 || b[0] > a[0]);
              return Tuple{select(later, b[0], a[0]), select(later, b[1], a[1])};
            });
        Output indices = pool.output(largest[1]);
        indices.name = "indices";
        indices.dtype = DType::I64;
        const Tuple value = fold(pool.taps, {least}, {pixel}, [](const Tuple& a, const Tuple& b) {
          return Tuple{max(a[0], b[0])};
        });
        return pool.defined({pool.output(value[0]), indices});
      },
  };
}

namespace {

/// The gradient as writes to the positions that the indices name.
Expected<Vals> max_pool_gradient_by_scatter(Body& b, const Attrs& attrs, const Vals& in) {
  const Val &dy = in[0], &indices = in[1];
  const Val planes = sizes_of(dy, 0, 2), sizes = b.ints(attrs.ints("sizes"));
  std::int64_t plane = 1;
  for (const std::int64_t size : attrs.ints("sizes")) plane *= size;
  const Val flat = joined({planes, b.ints({-1})}, 0);
  const Val zeros = filled(0, dy.dtype(), {planes, b.ints({plane})});
  const Val dx = b.op("scatter_elements",
                      {zeros, b.op("reshape", {indices, flat}), b.op("reshape", {dy, flat})},
                      {{"axis", 2}, {"reduction", "add"}});
  return Vals{b.op("reshape", {dx, joined({planes, sizes}, 0)})};
}

}  // namespace

OpDef max_pool_gradient() {
  return {
      .name = "max_pool_gradient",
      .summary =
          "gradient of max_pool's image, of the gradient dy of its result: an element gets "
          "those of the windows that have their maximum there, by its row-major index among "
          "the spatial sizes of the image; kernel_shape and sizes are required",
      .inputs = {"dy", "indices"},
      .outputs = {"dx"},
      .attrs = pool_attrs({required_attr("sizes", Ints{})}),
      .define = [](const Attrs& attrs, const Signature& in) -> Expected<Definition> {
        TESSERA_TRY_DONE(check_domain(Domain::Floats, in[0].dtype()));
        TESSERA_TRY_DONE(check_domain(Domain::Integers, in[1].dtype()));
        const int spatial = in[0].rank() - 2;
        const Ints& extents = attrs.ints("sizes");
        if (spatial < 1 || in[1].rank() != in[0].rank() ||
            attrs.ints("kernel_shape").size() != static_cast<std::size_t>(spatial) ||
            extents.size() != static_cast<std::size_t>(spatial) ||
            std::ranges::any_of(extents, [](std::int64_t size) { return size < 1; }) ||
            attrs.s("auto_pad") != "NOTSET")
          return bad_operands("kernel_shape or sizes do not fit dy, or pads are not given",
                              fmt::format("dy has {} spatial axes", spatial));
        TESSERA_TRY(const std::vector<Axis> tap, window_taps(attrs, spatial));
        Shape sizes;
        for (const std::int64_t size : extents) sizes.emplace_back(size);
        TESSERA_TRY(Window window, Window::of(attrs, sized(axes("h", spatial), sizes), tap));
        window.at = axes("y", spatial);
        const Axis n{"n"}, c{"c"};
        const Shape shape = concat<Dim>({n, c}, tessera::sizes(window.at));
        const Operand dy{"dy", in[0].dtype(), shape}, indices{"indices", in[1].dtype(), shape};
        const Window::Readers readers = window.readers();
        const std::vector<Scalar> at = concat<Scalar>({n, c}, readers.position);
        Scalar own = 0;
        for (const Axis& axis : window.extent) own = own * Scalar(axis.size()) + Scalar(axis);
        Scalar here = equal(indices.or_else(at, Scalar(-1)), own);
        if (readers.exact) here = *readers.exact && here;
        const Scalar gradient = dy.or_zero(at);
        return Definition{
            .inputs = {dy, indices},
            .outputs = {{.name = "dx",
                         .dtype = in[0].dtype(),
                         .axes = each(concat<Axis>({n, c}, window.extent)),
                         .value = sum(bounds(tap), select(here, gradient, like(gradient, 0)))}}};
      },
      .expand = max_pool_gradient_by_scatter,
  };
}

OpDef average_pool() {
  return {
      .name = "average_pool",
      .summary = "the mean of the elements under a sliding window",
      .inputs = {"x"},
      .outputs = {"y"},
      .attrs = pool_attrs({flag_attr("count_include_pad", 0)}),
      .define = [](const Attrs& attrs, const Signature& in) -> Expected<Definition> {
        TESSERA_TRY_DONE(check_domain(Domain::Floats, in[0].dtype()));
        TESSERA_TRY(const Pool pool, pool_of(attrs, in));
        // Only the image, or the padded image, counts; positions that rounding up adds beyond it do
        // not.
        const Window& window = pool.window;
        const bool padding = attrs.i("count_include_pad") != 0;
        Scalar count = 1;
        for (std::size_t i = 0; i < window.spatial(); ++i) {
          const bool padded = !window.before[i].is(0) || !window.after[i].is(0);
          const bool all = attrs.i("ceil_mode") == 0 && (padding || !padded);
          using Counts = Window::Counts;
          count = count * (all ? Scalar(window.tap[i].size())
                               : window.taps_inside(i, padding ? Counts::Padding : Counts::Image));
        }
        return pool.defined({pool.output(sum(pool.taps, pool.x.or_zero(pool.at)) / count)});
      },
  };
}

OpDef lp_pool() {
  return {
      .name = "lp_pool",
      .summary = "the p-norm of the elements under a sliding window",
      .inputs = {"x"},
      .outputs = {"y"},
      .attrs = pool_attrs({{"p", 2}}),
      .define = [](const Attrs& attrs, const Signature& in) -> Expected<Definition> {
        TESSERA_TRY_DONE(check_domain(Domain::Floats, in[0].dtype()));
        if (attrs.i("p") < 1)
          return bad_operands(fmt::format("p is {}", attrs.i("p")), "it has to be at least 1");
        TESSERA_TRY(const Pool pool, pool_of(attrs, in));
        const auto p = static_cast<double>(attrs.i("p"));
        const Scalar power = pow(abs(pool.x.or_zero(pool.at)), p);
        return pool.defined({pool.output(pow(sum(pool.taps, power), 1 / p))});
      },
  };
}

}  // namespace tessera::define
