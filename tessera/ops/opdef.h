#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tessera/expr/definition.h"
#include "tessera/ops/body.h"
#include "tessera/support/attrs.h"

namespace tessera {

/// Declaration of an attribute: its kind is that of `value`.
struct AttrSpec {
  enum class Need { Default, Optional, Required };

  std::string name;
  Attr value;  // default value; for Optional and Required only its kind is used
  Need need = Need::Default;
  /// Present for an attribute that may be symbolic in a rule: an integer, a float or a list of
  /// integers, for which it is the value of an empty list's entries.
  std::optional<std::int64_t> neutral = {};
  bool is_flag = false;  // an integer that is 0 or 1
};
inline AttrSpec optional_attr(std::string name, Attr kind) {
  return {std::move(name), std::move(kind), AttrSpec::Need::Optional};
}
inline AttrSpec required_attr(std::string name, Attr kind) {
  return {std::move(name), std::move(kind), AttrSpec::Need::Required};
}
inline AttrSpec flag_attr(std::string name, std::int64_t value) {
  AttrSpec spec{std::move(name), value};
  spec.is_flag = true;
  return spec;
}

/// A float that a composite reads by `Body::real`, so that a rule may give it a name.
inline AttrSpec real_attr(std::string name, double value) {
  return {std::move(name), value, AttrSpec::Need::Default, 0};
}
inline AttrSpec symbolic_attr(std::string name, Attr value, std::int64_t neutral) {
  return {std::move(name), std::move(value), AttrSpec::Need::Default, neutral};
}

/// Result type of an opaque operator, as far as it can be inferred: a tensor (unknown rank: no
/// shape; an axis of unknown size: Dim::undefined()), or a sequence or optional of tensors.
struct OpaqueType {
  enum class Kind { Tensor, Sequence, Optional };

  DType dtype = DType::F32;
  std::optional<Shape> shape = {};
  Kind kind = Kind::Tensor;
};

/// Algebraic laws that an operator f obeys when it has two operands, over all types and shapes that
/// it accepts. They are declared here and proved by a test (tests/rules/laws_test.cpp).
struct Laws {
  enum class Associative { No, OverReals, Exactly };

  bool commutative = false;                   // f(x, y) = f(y, x)
  Associative associative = Associative::No;  // f(f(x, y), z) = f(x, f(y, z))
};

/// Definition of an operator: the single source from which shape inference, evaluation, proofs and
/// code are derived.
///
/// Core operators have `define`: index notation. Composites have `expand`: a graph of other
/// operators; so may core operators that other runtimes lack, for export. Opaque ones have `infer`,
/// and are executed by the host function of their name. Those with `control` are control flow:
/// their meaning is in their subgraphs.
///
/// When these functions are called, defaults are filled in (only optional attributes may be
/// missing) and the number of inputs fits `inputs`.
struct OpDef {
  enum class Kind { Core, Composite, Opaque, Control };

  std::string name;
  std::string summary;
  /// Names of the inputs; `b?` is optional, a last `x*` stands for any number (`x+`: one or more).
  std::vector<std::string> inputs;
  std::vector<std::string> outputs = {"out"};
  std::vector<AttrSpec> attrs = {};

  /// Definition over the present inputs, in order. It requests a value that is not known at compile
  /// time with `needs_value`.
  std::function<Expected<Definition>(const Attrs&, const Signature&)> define = {};
  std::function<Expected<Vals>(Body&, const Attrs&, const Vals&)> expand = {};
  std::function<Expected<std::vector<OpaqueType>>(const Attrs&, const Signature&)> infer = {};
  enum class Control { None, If, Loop, Scan };
  Control control = Control::None;
  bool pure = true;  // false: random, every evaluation differs
  Laws laws = {};

  Kind kind() const;
};

/// Whether the operands may be exchanged: there are two, and the operator is commutative.
bool commutes(const OpDef& op, std::size_t operands);

/// Fills in default attributes; an unknown one, a wrong kind or a missing one is a diagnostic.
Expected<Attrs> completed(const OpDef& op, const Attrs& attrs);

/// Whether an attribute is a symbolic float.
bool is_named_real(const OpDef& op, const Attrs::Entry& attribute);

/// Integer attribute as a size; a symbolic one is a symbol.
Dim size_attr(const Attrs& attrs, std::string_view name);
/// List attribute as `count` sizes: a symbol `s` gives `s0`, `s1`, …, an empty list (or none)
/// neutral entries.
Expected<Shape> size_attrs(const Attrs& attrs, std::string_view name, std::size_t count,
                           std::int64_t neutral);
/// Symbol of an entry of a symbolic list attribute.
Dim entry_symbol(std::string_view name, std::size_t entry);

/// Checks the number of inputs of an operator.
Expected<Done> check_arity(const OpDef& op, const std::vector<bool>& present);

/// Diagnostic: the definition depends on the content of this input, which is not known.
Diagnostic needs_value(std::string_view input);
bool is_needs_value(const Diagnostic& diagnostic);

/// Diagnostic about the attributes or types that an operator is given.
Diagnostic bad_operands(std::string message, std::string note = {});

/// Diagnostic: an operator in index notation was given strings.
Diagnostic takes_no_text(const OpDef& op);

/// Normalizes an axis from [-rank, rank) to [0, rank).
Expected<int> normal_axis(std::int64_t axis, int rank);

}  // namespace tessera
