#include <algorithm>
#include <bit>
#include <limits>

#include "tessera/lower/contraction.h"

namespace tessera::lower {
namespace {

constexpr std::int64_t kLeast = 16;  // of a k-step

/// Channels rounded up to whole k-steps, of the length that takes the least time: short ones pad
/// less, but cost more than their share.
std::int64_t whole_steps(std::int64_t channels) {
  struct Step {
    std::int64_t length;
    double cost;
  };
  constexpr Step kSteps[] = {{64, 1.0}, {32, 0.65}, {16, 0.5}};
  std::int64_t best = channels;
  double least = std::numeric_limits<double>::infinity();
  for (const Step& step : kSteps) {
    const std::int64_t steps = ceil_div(channels, step.length);
    const double cost = static_cast<double>(steps) * step.cost;
    if (cost >= least) continue;
    least = cost;
    best = steps * step.length;
  }
  return best;
}

/// The channels of an image: the reduction axis that the last axis of a read runs along, all of it,
/// or a group of it.
std::string channel_of(const std::vector<AffineIndex>& at, const Operand& operand,
                       const Contraction& c, const AxisExtents& extents) {
  for (std::size_t i = 0; i < at.size(); ++i) {
    const auto sum = std::ranges::find_if(at[i].terms, [&](const AffineIndex::Term& term) {
      return term.factor == 1 &&
             std::ranges::find(c.sums, term.variable, &IndexAxis::name) != c.sums.end();
    });
    if (sum == at[i].terms.end() || at[i].base != 0) continue;
    const std::int64_t channels = extents.at(sum->variable);
    const auto extent = resolved(operand.shape[i], c.stage->sizes).constant();
    if (at[i].terms.size() == 1 && extent == channels) return sum->variable;
    const auto group = sum == at[i].terms.begin() ? std::next(sum) : at[i].terms.begin();
    const bool grouped =
        at[i].terms.size() == 2 && i + 1 == at.size() && channels >= kLeast &&
        group->factor == channels &&
        std::ranges::find(c.batch, group->variable, &IndexAxis::name) != c.batch.end() &&
        extent == channels * extents.at(group->variable);
    if (grouped) return sum->variable;
  }
  return {};
}

}  // namespace

Scalar pad_channels(const Scalar& value, const Rounding& rounding, Contraction& c,
                    AxisExtents& extents) {
  constexpr std::int64_t kChunk = 16;
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
  std::vector<AffineIndex> at;
  for (const Scalar& index : read->at) {
    auto position = affine(index, extents, c.stage->sizes);
    if (!position) return value;
    at.push_back(*std::move(position));
  }
  const std::string channel = channel_of(at, *operand, c, extents);
  if (channel.empty()) return value;
  node::Read wide = *read;
  wide.otherwise = std::make_shared<const Scalar>(0.0);
  if (extents.at(channel) >= kLeast) {
    const auto others = std::ranges::count_if(c.sums, [](const auto& a) { return a.extent > 1; });
    const std::int64_t channels = whole_steps(extents.at(channel));
    // A sum over one axis may end within a step anyway.
    if (others < 2 || channels == extents.at(channel)) return value;
    for (IndexAxis& axis : c.sums)
      if (axis.name == channel) axis.extent = extents.at(channel) = channels;
    c.widened = {channel};
    return Scalar(Node{wide});
  }
  std::string window;
  std::int64_t step = 0;
  for (const AffineIndex& position : at) {
    const std::string& row = c.rows.back().name;
    if (position.terms.size() != 2 || position.factor(row) < 1) continue;
    const auto first = position.terms.begin();
    const auto other = first->variable == row ? std::next(first) : first;
    if (!is_sum(other->variable) || other->factor != 1) return value;
    window = other->variable;
    step = position.factor(row);
  }
  if (window.empty()) return value;
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
    c.widened = {channel, window};
    return Scalar(Node{wide});
  }
  return value;
}

}  // namespace tessera::lower
