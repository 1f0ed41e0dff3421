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

/// Where a value of the graph is: all of a value of the program, or a piece of it.
struct Place {
  runtime::ValueIndex value = 0;
  Order order = {};
  std::int64_t offset = 0;  // bytes
};

/// Where the values of a graph are. Views, transposes and pieces share the memory of what they
/// show; another order of axes or another dtype is a copy, which is made when it is first wanted.
class Places {
 public:
  /// Computes a result of data movement that has no place of its own yet, and sets its place.
  using Compute = std::function<Expected<Done>(std::size_t node, ValueId value)>;

  Places(const Graph& graph, const Decisions& decisions, const Planning& planning,
         DraftBuilder& out, Compute compute)
      : graph_(graph),
        decisions_(decisions),
        planning_(planning),
        out_(out),
        compute_(std::move(compute)) {}

  void set(ValueId value, Place place) { places_[value.index] = std::move(place); }
  bool has(ValueId value) const { return places_.contains(value.index); }

  Expected<Place> of(ValueId value);
  /// The value with its axes in this order.
  Expected<Place> in(ValueId value, const Order& order);
  Expected<Place> in(ValueId value, const Order& order, DType dtype);
  /// Row by row, as its type says, and all of a value of the program.
  Expected<Place> in_full(ValueId value);

  /// Whether it is all of a value of the program, and no piece.
  bool is_whole(ValueId value, const Place& place) const;
  DType dtype_of(runtime::ValueIndex value) const { return out_.value(value).dtype; }

  /// Appends a kernel that copies a value from one place to another, which may differ in order and
  /// dtype.
  Expected<Done> add_reorder(ValueId value, const Place& from, const Place& to);

 private:
  Expected<bool> place_piece(ValueId value, std::size_t n);
  bool is_outside(ValueId value) const;

  const Graph& graph_;
  const Decisions& decisions_;
  const Planning& planning_;
  DraftBuilder& out_;
  Compute compute_;
  std::map<std::uint32_t, Place> places_;  // by value of the graph
  std::map<std::tuple<std::uint32_t, Order, DType>, Place> copies_;
};

}  // namespace tessera::program
