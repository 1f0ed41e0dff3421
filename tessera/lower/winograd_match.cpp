#include <algorithm>
#include <array>
#include <set>

#include "tessera/expr/walk.h"
#include "tessera/lower/affine.h"
#include "tessera/lower/winograd.h"

namespace tessera::lower {
namespace {

/// Whether it is a + b + base; either may be empty.
bool is_plus(const AffineIndex& index, const std::string& a, const std::string& b) {
  const std::size_t count = (a.empty() ? 0 : 1) + (b.empty() || b == a ? 0 : 1);
  return index.terms.size() == count && (a.empty() || index.factor(a) == 1) &&
         (b.empty() || index.factor(b) == 1);
}
bool is(const AffineIndex& index, const std::string& axis) {
  return index.base == 0 && is_plus(index, axis, "");
}

/// Indices of a stage; variables that have one position are left out.
class Reader {
 public:
  explicit Reader(const tile::Stage& stage) : stage_(stage) {
    for (const MergedAxis& merged : stage.output.axes)
      for (const Axis& axis : merged.parts) add(axis.name, resolved(axis.size(), stage.sizes));
  }
  void add(const std::string& axis, const Dim& extent) {
    if (const auto number = extent.constant()) extents_[axis] = *number;
  }
  std::int64_t extent(const std::string& axis) const { return extents_.find(axis)->second; }

  std::optional<AffineIndex> affine(const Scalar& scalar) const {
    const auto index = lower::affine(scalar, extents_, stage_.sizes);
    if (!index) return std::nullopt;
    return index->without([&](const std::string& axis) { return extent(axis) == 1; });
  }

  /// The indices of a read, or nothing.
  std::optional<std::vector<AffineIndex>> indices(const node::Read& read) const {
    std::vector<AffineIndex> result;
    for (const Scalar& at : read.at) {
      auto index = affine(at);
      if (!index) return std::nullopt;
      result.push_back(*std::move(index));
    }
    return result;
  }

 private:
  const tile::Stage& stage_;
  AxisExtents extents_;
};

std::optional<std::vector<std::int64_t>> shape_of(const tile::Stage& stage,
                                                  const std::string& operand) {
  const auto it = std::ranges::find(stage.operands, operand, &Operand::name);
  if (it == stage.operands.end() || it->dtype != DType::F32) return std::nullopt;
  std::vector<std::int64_t> shape;
  for (const Dim& dim : it->shape) {
    const auto extent = resolved(dim, stage.sizes).constant();
    if (!extent || *extent < 1) return std::nullopt;
    shape.push_back(*extent);
  }
  return shape;
}

/// How often a tensor is read.
int reads_of(const Scalar& scalar, const std::string& operand) {
  int count = 0;
  for_each_read(scalar, [&](const node::Read& read) { count += read.operand == operand ? 1 : 0; });
  return count;
}

/// Sets which axes of the weight have these index variables; gives whether that is all of them.
bool place_weights(Convolution3x3& convolution, const std::array<std::string, 5>& variables,
                   const std::vector<AffineIndex>& taps) {
  std::size_t found = 0;
  for (std::size_t i = 0; i < variables.size(); ++i) {
    convolution.weight_at[i] = -1;
    if (variables[i].empty()) continue;
    for (std::size_t axis = 0; axis < taps.size(); ++axis)
      if (is(taps[axis], variables[i])) convolution.weight_at[i] = static_cast<int>(axis), ++found;
    if (convolution.weight_at[i] < 0) return false;
  }
  for (const AffineIndex& index : taps)
    if (index == AffineIndex{}) ++found;
  return found == taps.size();
}

/// Whether windows reach beyond the image.
bool leaves_image(const Convolution3x3& c) {
  return c.top > 0 || c.left > 0 || c.front > 0 ||
         (c.slices - 1) * c.step + c.taps - c.front > c.depth || c.rows - c.top + 2 > c.height ||
         c.columns - c.left + 2 > c.width;
}

}  // namespace

std::optional<Convolution3x3> convolution3x3(const tile::Stage& stage,
                                             const std::set<std::string>& weights) {
  const auto fold = main_fold(stage);
  const std::size_t rank = stage.output.axes.size();
  if (fold == nullptr || stage.output.forward || (rank != 4 && rank != 5) || is_wide(stage))
    return std::nullopt;
  auto factors = tile::product_of(*fold);
  if (!factors) return std::nullopt;
  const auto* weight = std::get_if<node::Read>(&factors->second.node());
  const auto* image = std::get_if<node::Read>(&factors->first.node());
  if (weight != nullptr && image != nullptr && !weights.contains(weight->operand))
    std::swap(weight, image);
  if (weight == nullptr || image == nullptr || !weights.contains(weight->operand) ||
      weights.contains(image->operand) || weight->otherwise != nullptr)
    return std::nullopt;
  if (reads_of(stage.output.value, weight->operand) != 1) return std::nullopt;
  const auto image_shape = shape_of(stage, image->operand);
  const auto weight_shape = shape_of(stage, weight->operand);
  if (!image_shape || !weight_shape || image_shape->size() != rank) return std::nullopt;
  if (image->otherwise != nullptr && !is_zero(*image->otherwise)) return std::nullopt;

  Reader reader(stage);
  for (const Bound& bound : fold->bounds)
    reader.add(bound.axis, *tile::number_of_size(bound.extent, stage.sizes));
  const auto at = reader.indices(*image), taps = reader.indices(*weight);
  if (!at || !taps) return std::nullopt;

  // The variables of the result's axes, then the others by where the image is read.
  Convolution3x3 result{.image = image->operand, .weight = weight->operand, .fold = fold};
  const std::size_t y = rank - 3, x = rank - 2, last = rank - 1;  // axes in memory
  const auto name = [&](std::size_t i) -> std::string& {
    return result.axes[i == 0 ? 0 : i + 5 - rank];
  };
  std::vector<std::int64_t> extents;
  for (std::size_t i = 0; i < rank; ++i) {
    const auto index = reader.affine(Scalar(stage.output.axes[i]));
    const auto extent = resolved(stage.output.axes[i], stage.sizes).constant();
    if (!index || !extent || *extent < 1 || index->base != 0 || index->terms.size() > 1)
      return std::nullopt;
    extents.push_back(*extent);
    if (index->is_constant()) {
      if (i >= y) return std::nullopt;  // one row or column, or one filter: nothing to gain
      continue;
    }
    if (index->terms[0].factor != 1) return std::nullopt;
    name(i) = index->terms[0].variable;
  }
  const auto tap_beside = [&](std::size_t i) -> std::optional<std::string> {
    for (const auto& [axis, factor] : (*at)[i].terms)
      if (axis != name(i) && reader.extent(axis) == 3 && is_plus((*at)[i], name(i), axis))
        return axis;
    return std::nullopt;
  };
  const auto r = tap_beside(y), s = tap_beside(x);
  const auto& channel = (*at)[last].terms;
  if (!r || !s || *r == *s || !is((*at)[0], name(0)) || channel.size() > 1 ||
      !is((*at)[last], channel.empty() ? "" : channel[0].variable))
    return std::nullopt;
  const std::string c = channel.empty() ? "" : channel[0].variable;
  std::string t;
  if (rank == 5) {
    if (const std::int64_t step = (*at)[1].factor(name(1)); step != 0) result.step = step;
    const AffineIndex slice =
        (*at)[1].without([&](const std::string& axis) { return axis == name(1); });
    if (!slice.is_constant()) t = slice.terms[0].variable;
    if (result.step < 1 || !is_plus(slice, t, "")) return std::nullopt;
    result.front = -slice.base;
    result.taps = t.empty() ? 1 : reader.extent(t);
    result.depth = (*image_shape)[1], result.slices = extents[1];
  }
  for (const Bound& bound : fold->bounds)
    if (reader.extent(bound.axis) != 1 && bound.axis != c && bound.axis != *r && bound.axis != *s &&
        bound.axis != t)
      return std::nullopt;

  result.weights = {weight->operand, DType::F32, {weight_shape->begin(), weight_shape->end()}};
  if (!place_weights(result, {name(last), c, *r, *s, t}, *taps)) return std::nullopt;

  result.images = extents[0], result.rows = extents[y], result.columns = extents[x];
  result.filters = extents[last];
  result.height = (*image_shape)[y], result.width = (*image_shape)[x];
  result.channels = (*image_shape)[last];
  result.top = -(*at)[y].base, result.left = -(*at)[x].base;
  // What the weight does not have, or another index range, is no convolution of these sizes.
  const auto fits = [&](int axis, std::int64_t extent) {
    return axis < 0 ? extent == 1 : (*weight_shape)[static_cast<std::size_t>(axis)] == extent;
  };
  if ((*image_shape)[0] != result.images || !fits(result.weight_at[0], result.filters) ||
      !fits(result.weight_at[1], result.channels) || !fits(result.weight_at[2], 3) ||
      !fits(result.weight_at[3], 3) || !fits(result.weight_at[4], result.taps) ||
      (!c.empty() && reader.extent(c) != result.channels))
    return std::nullopt;
  // Without something instead, what is read has to be there.
  if (leaves_image(result) && image->otherwise == nullptr) return std::nullopt;
  return result;
}

}  // namespace tessera::lower
