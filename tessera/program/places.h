#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <tuple>

#include "tessera/program/assemble.h"
#include "tessera/program/decisions.h"
#include "tessera/program/draft.h"

namespace tessera::program {

/// Memory location of a value of the graph: a buffer of the program, or a piece of one.
struct Place {
  runtime::ValueIndex value = 0;
  AxisOrder order = {};
  std::int64_t offset = 0;  // bytes
};

/// Memory locations of the values of a graph. Views, transposes and contiguous slices alias their
/// operand; another layout or dtype is a copy, which is made on first use.
class Places {
 public:
  /// Materializes a result of data movement that is not in memory yet, and sets its location.
  using Compute = std::function<Expected<Done>(std::size_t node, ValueId value)>;

  Places(const Graph& graph, const Decisions& decisions, const PlanContext& planning,
         DraftBuilder& out, Compute compute)
      : graph_(graph),
        decisions_(decisions),
        planning_(planning),
        out_(out),
        compute_(std::move(compute)) {}

  void set(ValueId value, Place place) { places_[value.index] = std::move(place); }
  bool has(ValueId value) const { return places_.contains(value.index); }

  Expected<Place> of(ValueId value);
  /// The value in this layout.
  Expected<Place> in(ValueId value, const AxisOrder& order);
  Expected<Place> in(ValueId value, const AxisOrder& order, DType dtype);
  /// Row-major, in its own dtype, and in a buffer of its own.
  Expected<Place> in_full(ValueId value);

  /// Whether it fills a buffer of the program.
  bool is_whole(ValueId value, const Place& place) const;
  DType dtype_of(runtime::ValueIndex value) const { return out_.value(value).dtype; }

  /// Appends a kernel that copies a value to another location, which may differ in layout and
  /// dtype.
  Expected<Done> add_reorder(ValueId value, const Place& from, const Place& to);

 private:
  Expected<Place> view_of(ValueId value, ValueId source);
  Expected<bool> place_piece(ValueId value, std::size_t n);
  bool is_outside(ValueId value) const;

  const Graph& graph_;
  const Decisions& decisions_;
  const PlanContext& planning_;
  DraftBuilder& out_;
  Compute compute_;
  std::map<std::uint32_t, Place> places_;  // by value of the graph
  std::map<std::tuple<std::uint32_t, AxisOrder, DType>, Place> copies_;
};

}  // namespace tessera::program
