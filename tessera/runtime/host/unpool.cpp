#include <fmt/format.h>

#include "tessera/runtime/host/arguments.h"
#include "tessera/runtime/host/functions.h"

namespace tessera::host {
namespace {

/// Input shape of a pooling with these attributes, if nothing was cut off.
Expected<Shape> pooled_shape(const Arguments& in, const Shape& pooled) {
  const std::size_t spatial = pooled.size() - 2;
  const Ints& kernel = in.attrs().ints("kernel_shape");
  Ints strides = in.ints("strides"), pads = in.ints("pads");
  if (strides.empty()) strides.assign(spatial, 1);
  if (pads.empty()) pads.assign(2 * spatial, 0);
  if (kernel.size() != spatial || strides.size() != spatial || pads.size() != 2 * spatial)
    return in.fault(fmt::format("{} spatial axes with {} kernel extents, {} strides and {} pads",
                                spatial, kernel.size(), strides.size(), pads.size()));
  Shape shape = pooled;
  for (std::size_t i = 0; i < spatial; ++i) {
    const __int128 extent = static_cast<__int128>(pooled[i + 2] - 1) * strides[i] + kernel[i] -
                            pads[i] - pads[spatial + i];
    if (strides[i] < 1 || kernel[i] < 1 || extent < 0 || extent > (std::int64_t{1} << 62))
      return in.fault(
          fmt::format("no image of an extent comes from {} places by kernel {}, stride "
                      "{} and pads {}, {}",
                      pooled[i + 2], kernel[i], strides[i], pads[i], pads[spatial + i]));
    shape[i + 2] = static_cast<std::int64_t>(extent);
  }
  return shape;
}

}  // namespace

Results max_unpool(const Call& call) {
  const Arguments in(call, "max_unpool");
  TESSERA_TRY(const Tensor x, in.number_tensor(0));
  TESSERA_TRY(const Tensor indices, in.integer_tensor(1));
  if (x.shape.size() < 3 || x.shape != indices.shape)
    return in.fault(
        fmt::format("values {} and indices {}", shape_text(x.shape), shape_text(indices.shape)),
        "they must have the same shape [batch, channel, spatial...]");
  TESSERA_TRY(const Shape source, pooled_shape(in, x.shape));
  const auto places = element_count(source);
  if (!places)
    return in.fault(fmt::format("a tensor of shape {} is impossible", shape_text(source)));
  Shape target = source;
  if (in.has(2)) {
    TESSERA_TRY(const Tensor shape, in.integer_tensor(2));
    target = integers_of(shape);
    if (target.size() != source.size())
      return in.fault(
          fmt::format("output_shape has {} entries for {} axes", target.size(), source.size()));
  }
  TESSERA_TRY(Draft out, in.allocate(x.dtype, target));
  if (out.count() == 0 && x.count() != 0)
    return in.fault(fmt::format("{} values for shape {}", x.count(), shape_text(target)));
  for (std::int64_t i = 0; i < x.count(); ++i) {
    const std::int64_t index = integer_at(indices, i);
    if (index < 0 || index >= *places)
      return in.fault(fmt::format("index {} is outside of {}", index, shape_text(source)));
    std::int64_t rest = index, to = 0, stride = 1;
    for (std::size_t axis = source.size(); axis-- > 0;) {
      const std::int64_t at = rest % source[axis];
      if (at >= target[axis])
        return in.fault(fmt::format("index {} of {} is outside of {}", index, shape_text(source),
                                    shape_text(target)));
      rest /= source[axis];
      to += at * stride;
      stride *= target[axis];
    }
    out.copy(to, x, i, 1);
  }
  return in.results({std::move(out).finish()});
}

}  // namespace tessera::host
