#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tessera/expr/definition.h"
#include "tessera/ops/body.h"
#include "tessera/support/attrs.h"

namespace tessera {

/// An attribute that an operator takes: its kind is that of `value`.
struct AttrSpec {
  enum class Need { Default, Optional, Required };

  std::string name;
  Attr value;  // the default; of the others only the kind counts
  Need need = Need::Default;
  /// What may be a name in a rule: an integer, or a list of them, where this is the meaning of an
  /// empty list's entries.
  std::optional<std::int64_t> neutral = {};
};
inline AttrSpec optional_attr(std::string name, Attr kind) {
  return {std::move(name), std::move(kind), AttrSpec::Need::Optional};
}
inline AttrSpec required_attr(std::string name, Attr kind) {
  return {std::move(name), std::move(kind), AttrSpec::Need::Required};
}

inline AttrSpec symbolic_attr(std::string name, Attr value, std::int64_t neutral) {
  return {std::move(name), std::move(value), AttrSpec::Need::Default, neutral};
}

/// What the result of an opaque operator is, as far as it can be told: a tensor (unknown rank: no
/// shape; an axis of unknown size: Dim::undefined()), or a sequence or optional of tensors.
struct OpaqueType {
  enum class Kind { Tensor, Sequence, Optional };

  DType dtype = DType::F32;
  std::optional<Shape> shape = {};
  Kind kind = Kind::Tensor;
};

/// An operator: one value that says what its results are; everything else is derived from it.
///
/// Core operators have `define`: index notation. Composites have `expand`: a graph of other
/// operators. Opaque ones have `infer`, and their meaning is the host function of their name. Those
/// with `control` are control flow: their meaning is in their subgraphs.
///
/// All attributes are present (defaults filled in) when these functions are called, all but the
/// optional ones; the number of inputs fits `inputs`.
struct OpDef {
  enum class Kind { Core, Composite, Opaque, Control };

  std::string name;
  std::string summary;
  /// Names; `b?` may be left out, a last `x*` stands for any number (`x+`: one or more).
  std::vector<std::string> inputs;
  std::vector<std::string> outputs = {"out"};
  std::vector<AttrSpec> attrs = {};

  /// Definition over the inputs that are present, in order. A value that is not known yet is asked
  /// for with `needs_value`.
  std::function<Expected<Definition>(const Attrs&, const Signature&)> define = {};
  std::function<Expected<Vals>(Body&, const Attrs&, const Vals&)> expand = {};
  std::function<Expected<std::vector<OpaqueType>>(const Attrs&, const Signature&)> infer = {};
  enum class Control { None, If, Loop, Scan };
  Control control = Control::None;
  bool pure = true;  // false: every evaluation is a new draw

  Kind kind() const;
};

/// The attributes with defaults filled in; an unknown one, a wrong kind or a missing one is a
/// diagnostic.
Expected<Attrs> completed(const OpDef& op, const Attrs& attrs);

/// An integer attribute as a size: a name is a symbol.
Dim size_attr(const Attrs& attrs, std::string_view name);
/// A list attribute as `count` sizes: a name `s` gives `s0`, `s1`, …, an empty list (or none)
/// neutral entries.
Expected<Shape> size_attrs(const Attrs& attrs, std::string_view name, std::size_t count,
                           std::int64_t neutral);
/// The symbol that an entry of a list attribute called `name` is.
Dim entry_symbol(std::string_view name, std::size_t entry);

/// Whether an operator can have so many inputs; a diagnostic if not.
Expected<Done> check_arity(const OpDef& op, const std::vector<bool>& present);

/// The definition cannot be told before the content of this input is known.
Diagnostic needs_value(std::string_view input);
bool is_needs_value(const Diagnostic& diagnostic);

/// A diagnostic about the attributes or types that an operator is given.
Diagnostic bad_operands(std::string message, std::string note = {});

/// An operator over index notation was given text.
Diagnostic takes_no_text(const OpDef& op);

/// An axis in [-rank, rank) as one in [0, rank).
Expected<int> normal_axis(std::int64_t axis, int rank);

}  // namespace tessera
