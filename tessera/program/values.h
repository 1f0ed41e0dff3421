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

/// Whether a value is a numeric tensor of static shape; all others are boxed.
bool is_plain(const Graph& graph, ValueId value);
/// Rank of a plain value; 0 for others.
std::size_t rank_of(const Graph& graph, ValueId value);
/// Static shape; empty where it is not known.
std::vector<std::int64_t> shape_of(const Graph& graph, ValueId value);
bool is_empty(const Graph& graph, ValueId value);

/// Buffer of the program for a value of the graph, in this layout and dtype (by default its own).
runtime::Value value_of(const Graph& graph, ValueId id, runtime::Value::Home home,
                        const AxisOrder& order, std::optional<DType> dtype = std::nullopt);

/// Adds a constant of the graph as a row-major weight.
runtime::ValueIndex add_plain_weight(DraftBuilder& out, const Graph& graph, ValueId constant);

}  // namespace tessera::program
