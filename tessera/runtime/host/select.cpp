#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "tessera/runtime/host/arguments.h"
#include "tessera/runtime/host/elements.h"
#include "tessera/runtime/host/functions.h"

namespace tessera::host {
namespace {

/// Slices with these indices along an axis, in this order.
Expected<Tensor> slices(const Arguments& in, const Tensor& x, std::size_t axis,
                        std::span<const std::int64_t> indices) {
  const Lanes from = lanes_along(x.shape, axis);
  const auto kept = static_cast<std::int64_t>(indices.size());
  TESSERA_TRY(Draft out, in.allocate(x.dtype, with_extent(x.shape, axis, kept), text_bytes(x)));
  for (std::int64_t o = 0; o < from.outer; ++o)
    for (std::int64_t i = 0; i < kept; ++i)
      out.copy((o * kept + i) * from.inner, x, from.at(o, indices[static_cast<std::size_t>(i)]),
               from.inner);
  return std::move(out).finish();
}

/// The tensor, and the axis that it is sliced along: without the attribute, it is flattened.
struct Sliced {
  Tensor x;
  std::size_t axis = 0;
};
Expected<Sliced> sliced(const Arguments& in) {
  TESSERA_TRY(Tensor x, in.tensor(0));
  if (in.attrs().has("axis")) {
    TESSERA_TRY(const std::size_t axis, in.axis(in.attrs().i("axis"), x.shape.size()));
    return Sliced{std::move(x), axis};
  }
  x.shape = {x.count()};
  return Sliced{std::move(x)};
}

/// Sorted slices, grouped by equality.
struct Groups {
  std::vector<std::int64_t> order;  // indices of slices; equal ones by index
  std::vector<std::size_t> starts;  // into `order`, and its size at the end
};

template <class Elements>
Groups group_slices(const Elements& elements, const Lanes& lanes) {
  const auto compare = [&](std::int64_t a, std::int64_t b) {
    for (std::int64_t o = 0; o < lanes.outer; ++o)
      for (std::int64_t r = 0; r < lanes.inner; ++r) {
        const auto& x = elements[lanes.at(o, a) + r];
        const auto& y = elements[lanes.at(o, b) + r];
        if (Before{}(x, y)) return -1;
        if (Before{}(y, x)) return 1;
      }
    return 0;
  };
  Groups groups;
  groups.order.resize(static_cast<std::size_t>(lanes.extent));
  std::iota(groups.order.begin(), groups.order.end(), 0);
  std::stable_sort(groups.order.begin(), groups.order.end(),
                   [&](std::int64_t a, std::int64_t b) { return compare(a, b) < 0; });
  for (std::size_t i = 0; i < groups.order.size(); ++i)
    if (i == 0 || compare(groups.order[i - 1], groups.order[i]) != 0) groups.starts.push_back(i);
  groups.starts.push_back(groups.order.size());
  return groups;
}

}  // namespace

Results compress(const Call& call) {
  const Arguments in(call, "compress");
  TESSERA_TRY(const Sliced data, sliced(in));
  TESSERA_TRY(const Tensor condition, in.tensor(1));
  if (condition.dtype != DType::Bool || condition.shape.size() != 1)
    return in.fault(fmt::format("the condition is {}{}", to_string(condition.dtype),
                                shape_text(condition.shape)),
                    "a list of truth values is expected");
  std::vector<std::int64_t> kept;
  for (std::int64_t i = 0; i < condition.count(); ++i)
    if (integer_at(condition, i) != 0) kept.push_back(i);
  const std::int64_t extent = data.x.shape[data.axis];
  if (!kept.empty() && kept.back() >= extent)
    return in.fault(fmt::format("the condition selects {} of {}", kept.back(), extent));
  TESSERA_TRY(Tensor out, slices(in, data.x, data.axis, kept));
  return in.results({std::move(out)});
}

Results non_zero(const Call& call) {
  const Arguments in(call, "non_zero");
  TESSERA_TRY(const Tensor x, in.tensor(0));
  std::vector<std::int64_t> found;
  visit_elements(x, [&]<class Elements>(const Elements& elements) {
    for (std::int64_t i = 0; i < x.count(); ++i)
      if (elements[i] != typename Elements::Key{}) found.push_back(i);
  });
  const auto count = static_cast<std::int64_t>(found.size());
  const auto rank = static_cast<std::int64_t>(x.shape.size());
  TESSERA_TRY(Draft out, in.allocate(DType::I64, {rank, count}));
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t position = found[static_cast<std::size_t>(i)];
    for (std::int64_t axis = rank; axis-- > 0;) {
      const std::int64_t extent = x.shape[static_cast<std::size_t>(axis)];
      out.set_integer(axis * count + i, position % extent);
      position /= extent;
    }
  }
  return in.results({std::move(out).finish()});
}

Results top_k(const Call& call) {
  const Arguments in(call, "top_k");
  TESSERA_TRY(const Tensor x, in.number_tensor(0));
  TESSERA_TRY(const std::int64_t k, in.integer(1));
  TESSERA_TRY(const std::size_t axis, in.axis(in.attrs().i("axis"), x.shape.size()));
  const Lanes lanes = lanes_along(x.shape, axis);
  if (k < 0 || k > lanes.extent)
    return in.fault(fmt::format("k={} of {} elements", k, lanes.extent),
                    "k must lie between 0 and the extent of the axis");

  const Shape shape = with_extent(x.shape, axis, k);
  TESSERA_TRY(Draft values, in.allocate(x.dtype, shape));
  TESSERA_TRY(Draft indices, in.allocate(DType::I64, shape));
  const bool largest = in.attrs().i("largest") != 0;
  visit_elements(x, [&]<class Elements>(const Elements& elements) {
    struct Entry {
      typename Elements::Key key;
      std::int64_t index;
    };
    // A total order, so that the result does not depend on how it is found.
    const auto precedes = [&](const Entry& a, const Entry& b) {
      const Entry &smaller = largest ? b : a, &larger = largest ? a : b;
      if (Before{}(smaller.key, larger.key)) return true;
      return !Before{}(larger.key, smaller.key) && a.index < b.index;
    };
    // Candidates are collected until there are twice as many as needed; then only those are that
    // precede the last of the best ones.
    const auto most = static_cast<std::size_t>(std::max<std::int64_t>(2 * k, 64));
    std::vector<Entry> entries;
    entries.reserve(std::min(most, static_cast<std::size_t>(lanes.extent)));
    const auto select = [&] {
      if (entries.size() <= static_cast<std::size_t>(k)) return;
      std::nth_element(entries.begin(), entries.begin() + (k - 1), entries.end(), precedes);
      entries.resize(static_cast<std::size_t>(k));
    };
    for (std::int64_t o = 0; o < lanes.outer && k > 0; ++o)
      for (std::int64_t r = 0; r < lanes.inner; ++r) {
        entries.clear();
        std::optional<Entry> bound;
        for (std::int64_t i = 0; i < lanes.extent; ++i) {
          const typename Elements::Key key = elements[lanes.at(o, i) + r];
          // Stable order: among equal elements, the earlier one comes first.
          if (bound && !Before{}(largest ? bound->key : key, largest ? key : bound->key)) continue;
          entries.push_back({key, i});
          if (entries.size() < most) continue;
          select();
          bound = entries.back();
        }
        select();
        std::sort(entries.begin(), entries.end(), precedes);
        for (std::int64_t i = 0; i < k; ++i) {
          const std::int64_t index = entries[static_cast<std::size_t>(i)].index;
          const std::int64_t to = (o * k + i) * lanes.inner + r;
          values.copy(to, x, lanes.at(o, index) + r, 1);
          indices.set_integer(to, index);
        }
      }
  });
  return in.results({std::move(values).finish(), std::move(indices).finish()});
}

Results unique(const Call& call) {
  const Arguments in(call, "unique");
  TESSERA_TRY(const Sliced data, sliced(in));
  const Lanes lanes = lanes_along(data.x.shape, data.axis);
  // A slice may have no elements, so the extent is not bounded by the data.
  TESSERA_TRY_DONE(in.fits(lanes.extent, sizeof(std::int64_t)));
  const Groups groups =
      visit_elements(data.x, [&](const auto& elements) { return group_slices(elements, lanes); });

  std::vector<std::size_t> ranked(groups.starts.size() - 1);
  std::iota(ranked.begin(), ranked.end(), std::size_t{0});
  if (in.attrs().i("sorted") == 0)
    std::ranges::sort(ranked, {}, [&](std::size_t g) { return groups.order[groups.starts[g]]; });

  std::vector<std::int64_t> firsts, counts, inverse(groups.order.size());
  for (const std::size_t g : ranked) {
    const std::size_t begin = groups.starts[g], end = groups.starts[g + 1];
    for (std::size_t i = begin; i < end; ++i)
      inverse[static_cast<std::size_t>(groups.order[i])] = static_cast<std::int64_t>(firsts.size());
    firsts.push_back(groups.order[begin]);
    counts.push_back(static_cast<std::int64_t>(end - begin));
  }
  TESSERA_TRY(Tensor out, slices(in, data.x, data.axis, firsts));
  return in.results(
      {std::move(out), index_tensor(firsts), index_tensor(inverse), index_tensor(counts)});
}

}  // namespace tessera::host
