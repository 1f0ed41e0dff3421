#include <algorithm>
#include <bit>

#include "tessera/lower/contraction.h"

namespace tessera::lower {

Scalar pad_channels(const Scalar& value, const Rounding& rounding, Contraction& c,
                    AxisExtents& extents) {
  constexpr std::int64_t kChunk = 16, kLeast = 16;
  const auto* read = std::get_if<node::Read>(&value.node());
  const std::int64_t width = byte_width(rounding.to);
  if (read == nullptr || rounding.exact || rounding.to == DType::F32 || c.rows.empty())
    return value;
  if (read->otherwise != nullptr && !is_zero(*read->otherwise)) return value;
  // What is read of weights beside them is zero, and so must be the factor.
  if (!std::holds_alternative<node::Read>(c.known_b->node())) return value;
  const auto operand = std::ranges::find(c.stage->operands, read->operand, &Operand::name);
  if (operand == c.stage->operands.end()) return value;
  const auto is_sum = [&](const std::string& name) {
    return std::ranges::find(c.sums, name, &IndexAxis::name) != c.sums.end();
  };
  std::string channel, window;
  std::int64_t step = 0;
  for (std::size_t i = 0; i < read->at.size(); ++i) {
    const auto at = affine(read->at[i], extents, c.stage->sizes);
    if (!at) return value;
    const auto first = at->terms.begin();
    if (at->terms.size() == 1 && is_sum(first->variable) && first->factor == 1 && at->base == 0 &&
        resolved(operand->shape[i], c.stage->sizes).constant() == extents.at(first->variable))
      channel = first->variable;
    const std::string& row = c.rows.back().name;
    if (at->terms.size() != 2 || at->factor(row) < 1) continue;
    const auto other = first->variable == row ? std::next(first) : first;
    if (!is_sum(other->variable) || other->factor != 1) return value;
    window = other->variable;
    step = at->factor(row);
  }
  if (channel.empty() || window.empty() || extents.at(channel) >= kLeast) return value;
  const auto up = [](std::int64_t x) {
    return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(x)));
  };
  for (std::int64_t channels = up(extents.at(channel)); channels <= kLeast; channels *= 2) {
    const std::int64_t piece = std::max(up(extents.at(window) * channels), kLeast);
    const std::int64_t taps = piece / channels, line = step * (c.rows.back().extent - 1) + taps;
    if (step * channels * width % kChunk != 0 || line * channels * width % kChunk != 0) continue;
    for (IndexAxis& axis : c.sums)
      if (axis.name == channel || axis.name == window)
        axis.extent = extents.at(axis.name) = axis.name == channel ? channels : taps;
    c.widened = true;
    node::Read wide = *read;
    wide.otherwise = std::make_shared<const Scalar>(0.0);
    return Scalar(Node{wide});
  }
  return value;
}

}  // namespace tessera::lower
