#include "tessera/tile/passes/groups.h"

#include <algorithm>
#include <numeric>

namespace tessera::tile {
namespace {

Facts broadcast(const Facts& x, const Type& from, const Type& to) {
  Facts facts = x;
  const Extents extents = from.is_scalar() ? ones(to.shape) : from.shape;
  if (from.is_scalar()) facts.contiguity = facts.constancy = ones(to.shape);
  for (std::size_t i = 0; i < extents.size(); ++i) {
    if (extents[i] != to.shape[i]) facts.constancy[i] = to.shape[i];
  }
  return facts;
}

/// Axes with extents other than 1.
std::vector<std::size_t> wide_axes(const Extents& shape) {
  std::vector<std::size_t> axes;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] != 1) axes.push_back(i);
  }
  return axes;
}

// Axes of extent 1 are added or removed; the others keep their facts.
Facts reshape(const Facts& x, const Type& from, const Type& to) {
  const auto was = wide_axes(from.shape), is = wide_axes(to.shape);
  bool same = was.size() == is.size();
  for (std::size_t i = 0; same && i < was.size(); ++i) same = from.shape[was[i]] == to.shape[is[i]];
  if (!same) {
    Facts facts = without_contiguity(x, step_of(to));
    facts.contiguity = ones(to.shape);
    facts.constancy = x.constancy == from.shape ? to.shape : ones(to.shape);
    return facts;
  }
  Facts facts = x;
  facts.contiguity = facts.constancy = ones(to.shape);
  for (std::size_t i = 0; i < was.size(); ++i) {
    facts.contiguity[is[i]] = x.contiguity[was[i]];
    facts.constancy[is[i]] = x.constancy[was[i]];
  }
  return facts;
}

Facts permute(const Facts& x, const std::vector<std::int64_t>& order) {
  Facts facts = x;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto axis = static_cast<std::size_t>(order[i]);
    facts.contiguity[i] = x.contiguity[axis];
    facts.constancy[i] = x.constancy[axis];
  }
  return facts;
}

// Groups stay whole if the slice starts with one; gcd(x, 0) = x.
Facts slice(const Facts& x, const std::vector<std::int64_t>& begin, std::int64_t step) {
  Facts facts = x;
  facts.contiguity = gcd(x.contiguity, begin);
  facts.constancy = gcd(x.constancy, begin);
  facts.divisor = divisor_at(x, facts.contiguity, step);
  return facts;
}

}  // namespace

Counts ones(const Extents& shape) {
  return Counts(shape.size(), 1);
}

Counts gcd(const Counts& a, const Counts& b) {
  Counts both;
  for (std::size_t i = 0; i < a.size(); ++i) both.push_back(std::gcd(a[i], b[i]));
  return both;
}

std::int64_t product(std::int64_t a, std::int64_t b) {
  const Wide wide = Wide{a} * b;
  return wide > kLargeDivisor ? std::max(a, b) : static_cast<std::int64_t>(wide);
}

std::int64_t step_of(const Type& type) {
  return type.is_pointer() ? byte_width(type.dtype) : 1;
}

std::int64_t divisor_at(const Facts& facts, const Counts& groups, std::int64_t step) {
  std::int64_t divisor = facts.divisor;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const std::int64_t own = facts.contiguity[i];
    if (own > 1 && groups[i] % own != 0)
      divisor = std::gcd(divisor, step * std::gcd(own, groups[i]));
  }
  return divisor;
}

std::int64_t divisor_of_all(const Facts& facts) {
  return divisor_at(facts, ones(facts.contiguity));
}

Facts without_contiguity(Facts facts, std::int64_t step) {
  facts.divisor = divisor_at(facts, ones(facts.contiguity), step);
  std::fill(facts.contiguity.begin(), facts.contiguity.end(), 1);
  return facts;
}

Facts moved(const Operation& op, const Facts& x, const Type& from, const Type& to) {
  switch (op.code) {
    case Code::Broadcast: return broadcast(x, from, to);
    case Code::Reshape: return reshape(x, from, to);
    case Code::Permute: return permute(x, op.ints);
    default: return slice(x, op.ints, step_of(to));
  }
}

}  // namespace tessera::tile
