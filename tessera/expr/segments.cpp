#include "tessera/expr/segments.h"

#include <algorithm>

namespace tessera {
namespace {

/// Recognizes a condition `axis < position`.
std::optional<std::pair<std::string, std::int64_t>> below(const Scalar& condition,
                                                          const Sizes& sizes) {
  const auto* less = std::get_if<node::Apply>(&condition.node());
  if (less == nullptr || less->fn != Fn::Less) return std::nullopt;
  const auto* index = std::get_if<node::Index>(&less->args[0].node());
  const auto* size = std::get_if<node::Size>(&less->args[1].node());
  const auto end =
      size != nullptr ? resolved(size->dim, sizes).constant() : less->args[1].integer();
  if (index == nullptr || !end) return std::nullopt;
  return std::pair{index->axis, *end};
}

void collect(const Scalar& value, std::int64_t begin, const Sizes& sizes, Segments& into) {
  const auto* select = std::get_if<node::Apply>(&value.node());
  const auto end =
      select == nullptr || select->fn != Fn::Select ? std::nullopt : below(select->args[0], sizes);
  if (!end || (!into.axis.empty() && end->first != into.axis) || end->second < begin) {
    into.parts.push_back({begin, value});
    return;
  }
  into.axis = end->first;
  collect(select->args[1], begin, sizes, into);
  collect(select->args[2], end->second, sizes, into);
}

}  // namespace

std::optional<Segments> segments_of(const Scalar& value, const Sizes& sizes) {
  Segments result;
  collect(value, 0, sizes, result);
  if (result.parts.size() < 2 || !std::ranges::is_sorted(result.parts, {}, &Segment::begin))
    return std::nullopt;
  return result;
}

}  // namespace tessera
