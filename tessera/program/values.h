#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "tessera/ir/graph.h"
#include "tessera/program/draft.h"
#include "tessera/program/layout.h"
#include "tessera/runtime/program.h"

namespace tessera::program {

/// A tensor of numbers whose sizes are known; all other values are boxed.
bool is_plain(const Graph& graph, ValueId value);
/// Of a plain value; 0 of others.
std::size_t rank_of(const Graph& graph, ValueId value);
/// Empty where sizes are not known.
std::vector<std::int64_t> shape_of(const Graph& graph, ValueId value);
bool is_empty(const Graph& graph, ValueId value);

/// A value of the graph as one of the program, its axes in this order, as its own dtype or another.
runtime::Value value_of(const Graph& graph, ValueId id, runtime::Value::Home home,
                        const Order& order, std::optional<DType> dtype = std::nullopt);

/// A constant of the graph as a weight, row by row.
runtime::ValueIndex add_plain_weight(DraftBuilder& out, const Graph& graph, ValueId constant);

}  // namespace tessera::program
