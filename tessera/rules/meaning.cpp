#include "tessera/rules/meaning.h"

#include <algorithm>
#include <set>

#include "tessera/expr/shape.h"
#include "tessera/expr/walk.h"
#include "tessera/ir/expand.h"

namespace tessera::rules {
namespace {

/// A definition with the sizes of its axes.
struct Sized {
  Definition definition;
  Sizes sizes;
};

Expected<Sized> sized(const OpDef& op, const Attrs& attrs, const Signature& in) {
  TESSERA_TRY(Definition definition, op.define(attrs, in));
  TESSERA_TRY(Sizes sizes, solve_sizes(definition, shapes_of(in)));
  return Sized{std::move(definition), std::move(sizes)};
}

/// Compares expressions of two definitions node by node, sizes by what they are.
class Comparison {
 public:
  Comparison(const Sized& a, const Sized& b) : a_(a), b_(b) {}

  bool equal() {
    return std::ranges::equal(a_.definition.outputs, b_.definition.outputs,
                              [&](const Output& x, const Output& y) { return same(x, y); });
  }

 private:
  bool same_size(const Dim& x, const Dim& y) const {
    return resolved(x, a_.sizes) == resolved(y, b_.sizes);
  }

  bool same_axis(const Axis& x, const Axis& y) const {
    return x.name == y.name && same_size(x.size(), y.size());
  }

  bool same(const Output& x, const Output& y) {
    if (x.forward || y.forward || x.dtype != y.dtype) return false;
    const auto same_axes = [&](const MergedAxis& p, const MergedAxis& q) {
      return std::ranges::equal(p.parts, q.parts,
                                [&](const Axis& a, const Axis& b) { return same_axis(a, b); });
    };
    return std::ranges::equal(x.axes, y.axes, same_axes) && same(x.value, y.value);
  }

  static std::optional<Dim> as_size(const Scalar& scalar, const Sizes& sizes) {
    if (const auto integer = scalar.integer()) return Dim(*integer);
    const auto* size = std::get_if<node::Size>(&scalar.node());
    return size == nullptr ? std::nullopt : std::optional(resolved(size->dim, sizes));
  }

  bool same(const Scalar& x, const Scalar& y) {
    if (x.sort() != y.sort()) return false;
    const auto m = as_size(x, a_.sizes), n = as_size(y, b_.sizes);
    if (m || n) return m && n && *m == *n;
    if (x.node().index() != y.node().index()) return false;
    if (!seen_.emplace(x.id(), y.id()).second) return true;  // found equal, or about to differ
    if (!same_head(x.node(), y.node())) return false;
    std::vector<Scalar> left, right;
    for_each_part(x, [&](const Scalar& part) { left.push_back(part); });
    for_each_part(y, [&](const Scalar& part) { right.push_back(part); });
    return std::ranges::equal(left, right,
                              [&](const Scalar& p, const Scalar& q) { return same(p, q); });
  }

  /// All but the parts.
  static bool same_head(const Node& x, const Node& y) {
    struct Head {
      const Node& other;
      bool operator()(const node::Constant& n) const {
        const auto& o = std::get<node::Constant>(other);
        return n.number == o.number && n.integer == o.integer;
      }
      bool operator()(const node::Index& n) const {
        return n.axis == std::get<node::Index>(other).axis;
      }
      bool operator()(const node::Size&) const { return true; }
      bool operator()(const node::Read& n) const {
        const auto& o = std::get<node::Read>(other);
        return n.operand == o.operand && (n.otherwise == nullptr) == (o.otherwise == nullptr);
      }
      bool operator()(const node::Apply& n) const {
        return n.fn == std::get<node::Apply>(other).fn;
      }
      bool operator()(const node::Cast& n) const { return n.to == std::get<node::Cast>(other).to; }
      bool operator()(const node::Partial& n) const {
        const auto& o = std::get<node::Partial>(other);
        return n.side == o.side && n.component == o.component;
      }
      bool operator()(const node::Component& n) const {
        const auto& o = std::get<node::Component>(other);
        return n.index == o.index &&
               std::ranges::equal(n.fold->bounds, o.fold->bounds, {}, &Bound::axis, &Bound::axis);
      }
    };
    return std::visit(Head{y}, x);
  }

  const Sized &a_, &b_;
  std::set<std::pair<const void*, const void*>> seen_;
};

/// Whether a definition reads an operand; yes where there is none to look at.
bool reads(const OpDef& op, const Attrs& attrs, const std::vector<ValueInfo>& inputs,
           std::size_t i) {
  const std::optional<Signature> in = signature_of(inputs);
  if (op.kind() != OpDef::Kind::Core || !in) return true;
  const auto definition = op.define(attrs, *in);
  if (!definition) return true;
  // Definitions have the operands that are there.
  const auto at = std::count_if(inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(i),
                                [](const ValueInfo& known) { return known.present; });
  const std::string& name = definition->inputs[static_cast<std::size_t>(at)].name;
  bool found = false;
  for (const Output& output : definition->outputs) {
    found |= output.forward.has_value();
    for_each_read(output.value, [&](const node::Read& read) { found |= read.operand == name; });
  }
  return found;
}

}  // namespace

bool same_meaning(const OpDef& op, const Attrs& a, const Attrs& b,
                  const std::vector<ValueInfo>& inputs) {
  if (a == b) return true;
  if (op.kind() == OpDef::Kind::Composite) {
    const auto x = body_of(op, a, inputs, 1), y = body_of(op, b, inputs, 1);
    return x && y && x->hash() == y->hash();
  }
  const std::optional<Signature> in = signature_of(inputs);
  if (op.kind() != OpDef::Kind::Core || !in) return false;
  const auto x = sized(op, a, *in), y = sized(op, b, *in);
  return x && y && Comparison(*x, *y).equal();
}

/// A definition that is made from the content of an operand need not read it, so the content is
/// taken away before one looks.
std::vector<bool> read_operands(const OpDef& op, const Attrs& attrs,
                                const std::vector<ValueInfo>& inputs) {
  std::vector<bool> read(inputs.size(), true);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].present || reads(op, attrs, inputs, i)) continue;
    std::vector<ValueInfo> without = inputs;
    without[i] = {.type = inputs[i].type};
    read[i] = reads(op, attrs, without, i);
  }
  return read;
}

}  // namespace tessera::rules
