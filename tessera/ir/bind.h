#pragma once

#include <map>
#include <string>

#include "tessera/expr/condition.h"
#include "tessera/expr/shape.h"
#include "tessera/ir/builder.h"

namespace tessera {

/// Substitution of the symbols of a graph: sizes in its types, attributes, and the element type
/// that stands in for f32. A list attribute `s` also binds the sizes `s0`, `s1`, …
class Binding {
 public:
  Binding() = default;
  explicit Binding(const SizeValues& sizes) : sizes_(sizes.begin(), sizes.end()) {}

  /// Binds a symbol; false if it is bound to something else already.
  bool bind_size(const std::string& name, const Dim& size);
  bool bind_attr(const std::string& name, const Attr& value, std::int64_t neutral);
  void bind_real(DType dtype) { real_ = dtype; }
  bool is_bound(std::string_view symbol) const { return of(symbol).has_value(); }

  /// Size with its bound symbols replaced.
  Dim size(const Dim& dim) const;
  Type type(Type type) const;
  DType dtype(DType dtype) const { return dtype == DType::F32 ? real_ : dtype; }
  Tensor constant(const Tensor& tensor) const;
  /// Bound float attribute as a constant of rank 0, of the type that f32 stands for.
  std::optional<Tensor> real(std::string_view name) const;
  /// Attributes with bound symbols replaced; unbound ones stay.
  Attrs attrs(const OpDef& op, const Attrs& attrs) const;

 private:
  struct Entry {
    Attr value;
    std::int64_t neutral = 1;  // value of an entry of an empty list
  };
  std::optional<Dim> of(std::string_view symbol) const;
  std::optional<Dim> of_attrs(std::string_view symbol) const;

  DType real_ = DType::F32;
  Sizes sizes_;
  std::map<std::string, Entry, std::less<>> attrs_;
};

/// Treatment of nodes whose integer results are known once symbols are replaced: kept, or replaced
/// by constants.
enum class KnownSizes { Computed, Constant };

/// Inlines a graph into another one under construction, over these inputs and with symbols
/// replaced; returns the outputs. Types are inferred again.
Expected<Vals> placed(GraphBuilder& out, const Graph& graph, const Vals& inputs,
                      const Binding& binding, KnownSizes sizes = KnownSizes::Computed);

/// Specializes a graph by replacing its symbols; names, inputs and outputs stay.
Expected<Graph> bound(const Graph& graph, const Binding& binding);
Expected<Graph> bound(const Graph& graph, const SizeValues& sizes);

}  // namespace tessera
