#pragma once

#include <map>
#include <string>

#include "tessera/expr/condition.h"
#include "tessera/expr/shape.h"
#include "tessera/ir/builder.h"

namespace tessera {

/// What the symbols of a graph stand for: sizes in its types, and attributes; and what f32 does. A
/// list attribute `s` also gives the sizes `s0`, `s1`, …
class Binding {
 public:
  Binding() = default;
  explicit Binding(const SizeValues& sizes) : sizes_(sizes.begin(), sizes.end()) {}

  /// Says what a symbol is; false where it is something else already.
  bool bind_size(const std::string& name, const Dim& size);
  bool bind_attr(const std::string& name, const Attr& value, std::int64_t neutral);
  void bind_real(DType dtype) { real_ = dtype; }
  bool is_bound(std::string_view symbol) const { return of(symbol).has_value(); }

  /// What a size is, as far as it is bound.
  Dim size(const Dim& dim) const;
  Type type(Type type) const;
  DType dtype(DType dtype) const { return dtype == DType::F32 ? real_ : dtype; }
  Tensor constant(const Tensor& tensor) const;
  /// The attributes of a node with names replaced by what they stand for; those that stand for
  /// nothing stay.
  Attrs attrs(const OpDef& op, const Attrs& attrs) const;

 private:
  struct Entry {
    Attr value;
    std::int64_t neutral = 1;  // what an entry of an empty list means
  };
  std::optional<Dim> of(std::string_view symbol) const;
  std::optional<Dim> of_attrs(std::string_view symbol) const;

  DType real_ = DType::F32;
  Sizes sizes_;
  std::map<std::string, Entry, std::less<>> attrs_;
};

/// What becomes of nodes that compute integers which are known once symbols are replaced.
enum class KnownSizes { Computed, Constant };

/// Builds a graph's nodes into another graph, over these inputs and with symbols replaced; gives
/// the outputs. Types are inferred again.
Expected<Vals> placed(GraphBuilder& out, const Graph& graph, const Vals& inputs,
                      const Binding& binding, KnownSizes sizes = KnownSizes::Computed);

/// The graph with its symbols replaced: names, inputs and outputs as they were.
Expected<Graph> bound(const Graph& graph, const Binding& binding);
Expected<Graph> bound(const Graph& graph, const SizeValues& sizes);

}  // namespace tessera
