#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "tessera/rules/match.h"

namespace tessera::rules {

/// Substitution under construction: what the sizes, the attributes and the float type of a pattern
/// stand for. Every function is false where what is found contradicts the pattern.
class Fit {
 public:
  explicit Fit(const Pattern& pattern) : pattern_(&pattern) {}

  /// The kind and dtype of a value; shapes are looked at when all is bound.
  bool take_type(const Type& wanted, const Type& found);
  /// The attributes of a node, on inputs of which this is known where it is found.
  bool take_attrs(const GraphNode& wanted, const Attrs& found,
                  const std::vector<ValueInfo>& inputs);
  /// Sizes that the source computes, found as numbers.
  bool take_sizes(const std::vector<Dim>& wanted, const Tensor& found);
  /// A number stands for a tensor that is this number everywhere: the types of what is computed
  /// from it tell whether the shape matters.
  bool is_constant(const Tensor& wanted, const Tensor& found) const;

  /// The type that a value of the source was found with; null for one that was not looked for.
  using TypeOf = std::function<const Type*(ValueId)>;
  /// When all is found: sizes can be told from the types of inputs, the guard holds, and the types
  /// of all that is computed agree.
  bool complete(const TypeOf& found);

  /// Whether all sizes and attributes that the target mentions are known.
  bool tells_target() const;

  const Binding& binding() const { return binding_; }

 private:
  bool unify(const Dim& wanted, const Dim& found);
  bool unify_shapes(const Shape& wanted, const Shape& found);
  bool solve_sizes(const TypeOf& found);
  bool holds(const Condition& condition) const;

  const Pattern* pattern_;
  Binding binding_ = {};
  std::optional<DType> real_ = {};
  std::vector<std::pair<Dim, Dim>> open_ = {};  // equations with several unknown sizes
};

}  // namespace tessera::rules
