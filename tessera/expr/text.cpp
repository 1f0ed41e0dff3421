#include "tessera/expr/text.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <unordered_map>

#include "tessera/expr/grammar.h"
#include "tessera/expr/walk.h"

namespace tessera {
namespace {

using grammar::Level;

/// Name, quoted where it would read as a keyword or another kind of name.
std::string name_of(std::string_view name) {
  const bool special = name.starts_with('#') || name.starts_with('%') ||
                       std::ranges::count(grammar::kReserved, name) != 0 ||
                       std::ranges::any_of(grammar::kSides, [&](std::string_view side) {
                         return name.starts_with(side);
                       });
  return special ? quoted_text(name, '\'') : name_text(name);
}

template <class List, class Text>
std::string joined(const List& list, Text&& text) {
  std::string result;
  for (const auto& item : list) result += (result.empty() ? "" : ", ") + text(item);
  return result;
}

bool same_constant(const Scalar& a, const Scalar& b) {
  const auto* x = std::get_if<node::Constant>(&a.node());
  const auto* y = std::get_if<node::Constant>(&b.node());
  return x != nullptr && y != nullptr && x->sort == y->sort && x->integer == y->integer &&
         std::bit_cast<std::uint64_t>(x->number) == std::bit_cast<std::uint64_t>(y->number);
}

/// Name of a fold that equals the one that its named constructor builds.
std::string_view name_of(const Fold& fold) {
  const std::optional<Fn> fn = fold.simple();
  if (!fn) return {};
  for (const grammar::NamedFold& named : grammar::kNamedFolds) {
    const Scalar made = named.make({}, fold.lift[0]);
    const Fold& model = *std::get<node::Component>(made.node()).fold;
    if (model.simple() == fn && same_constant(model.init[0], fold.init[0])) return named.name;
  }
  return {};
}

class Writer {
 public:
  /// Counts the uses of subexpressions below the roots.
  explicit Writer(const std::vector<Scalar>& roots) {
    for (const Scalar& root : roots) count(root);
  }

  /// Definitions of shared subexpressions, each followed by `end`.
  std::string lets(std::string_view indent, std::string_view end) {
    std::string text;
    int next = 0;
    for (const Scalar& scalar : order_) {
      if (uses_[shared_id(scalar)] < 2 || weight_[shared_id(scalar)] <= kShort) continue;
      const auto* component = std::get_if<node::Component>(&scalar.node());
      const int count = component != nullptr ? static_cast<int>(component->fold->init.size()) : 1;
      std::vector<int> numbers(static_cast<std::size_t>(count));
      std::iota(numbers.begin(), numbers.end(), next);
      next += count;
      const std::string names = joined(numbers, [](int i) { return fmt::format("%{}", i); });
      const std::string value = component != nullptr
                                    ? fold(*component->fold, kLoose)
                                    : std::visit(Visitor{*this, kLoose}, scalar.node());
      text +=
          fmt::format("{}let {} = {}{}", indent, count > 1 ? "(" + names + ")" : names, value, end);
      first_name_[shared_id(scalar)] = numbers[0];
    }
    return text;
  }

  std::string text(const Scalar& scalar, Level level) {
    if (const auto named = first_name_.find(shared_id(scalar)); named != first_name_.end()) {
      const auto* component = std::get_if<node::Component>(&scalar.node());
      return fmt::format("%{}", named->second + (component != nullptr ? component->index : 0));
    }
    return std::visit(Visitor{*this, level}, scalar.node());
  }

  std::string list(const std::vector<Scalar>& scalars) {
    return joined(scalars, [&](const Scalar& scalar) { return text(scalar, kLoose); });
  }

 private:
  using enum Level;

  // Expressions up to this length are repeated rather than named.
  static constexpr int kShort = 6, kHeavy = 1000;

  int count(const Scalar& scalar) {
    const void* id = shared_id(scalar);
    if (++uses_[id] > 1) return weight_[id];
    int weight = std::holds_alternative<node::Component>(scalar.node()) ? kHeavy : 1;
    for_each_part(scalar,
                  [&](const Scalar& part) { weight = std::min(weight + count(part), kHeavy); });
    order_.push_back(scalar);
    return weight_[id] = weight;
  }

  struct Visitor {
    Writer& writer;
    Level level;

    std::string operator()(const node::Constant& n) const {
      switch (n.sort) {
        case Sort::Value: return float_text(n.number);
        case Sort::Unsigned: return fmt::format("{}u", static_cast<std::uint64_t>(n.integer));
        case Sort::Bool: return n.integer != 0 ? "true" : "false";
        case Sort::Integer:
        case Sort::Text: break;
      }
      return std::to_string(n.integer);
    }
    std::string operator()(const node::Index& n) const { return name_of(n.axis); }
    std::string operator()(const node::Size& n) const {
      const auto symbol = n.dim.as_symbol();
      const std::string text = n.dim.to_string();
      return symbol && text.starts_with('#') ? text : "size(" + text + ")";
    }
    std::string operator()(const node::Read& n) const {
      std::string read = name_of(n.operand) + "[" + writer.list(n.at) + "]";
      if (n.otherwise == nullptr) return read;
      return inside(kLoose, read + " else " + writer.text(*n.otherwise, kLoose));
    }
    std::string operator()(const node::Apply& n) const {
      const auto infix = std::ranges::find(grammar::kInfix, n.fn, &grammar::Infix::fn);
      if (infix != grammar::kInfix.end()) {
        const Level tighter = static_cast<Level>(infix->level + 1);
        const Level left = infix->level == kCompare ? tighter : infix->level;
        return inside(infix->level, fmt::format("{} {} {}", writer.text(n.args[0], left),
                                                infix->sign, writer.text(n.args[1], tighter)));
      }
      // A sign before a number belongs to the number.
      if (n.fn == Fn::Neg && !std::holds_alternative<node::Constant>(n.args[0].node()))
        return inside(kUnary, "-" + writer.text(n.args[0], kUnary));
      if (n.fn == Fn::Not) return inside(kUnary, "!" + writer.text(n.args[0], kUnary));
      return fmt::format("{}({})", to_string(n.fn), writer.list(n.args));
    }
    std::string operator()(const node::Cast& n) const {
      return fmt::format("{}({})", to_string(n.to), writer.text(*n.arg, kLoose));
    }
    std::string operator()(const node::Partial& n) const {
      const auto suffix =
          std::ranges::find(grammar::kSortSuffixes, n.sort, &grammar::SortSuffix::sort);
      const bool needed = writer.combines_ == 0 && suffix != grammar::kSortSuffixes.end();
      return fmt::format("{}{}{}", grammar::kSides[n.side == node::Partial::Side::Right],
                         n.component, needed ? suffix->text : "");
    }
    std::string operator()(const node::Component& n) const {
      const std::string fold = writer.fold(*n.fold, level);
      return n.fold->init.size() == 1 ? fold : fmt::format("{}.{}", fold, n.index);
    }

    std::string inside(Level own, const std::string& text) const {
      return own < level ? "(" + text + ")" : text;
    }
  };

  std::string fold(const Fold& fold, Level level) {
    const std::string over = joined(fold.bounds, [&](const Bound& bound) {
      std::string name = name_of(bound.axis);
      const auto* size = std::get_if<node::Size>(&bound.extent.node());
      if (size != nullptr && size->dim == Axis{bound.axis}.size()) return name;
      return name + ": " + text(bound.extent, kLoose);
    });
    if (const std::string_view name = name_of(fold); !name.empty()) {
      const std::string term = text(fold.lift[0], kLoose);
      return fmt::format("{}({}) {}", name, over, level == kLoose ? term : "{ " + term + " }");
    }
    const std::string from = list(fold.init), take = list(fold.lift);
    ++combines_;
    const std::string by = list(fold.combine);
    --combines_;
    return fmt::format("fold({}) {{ from {} take {} by {} }}", over, from, take, by);
  }

  std::unordered_map<const void*, int> uses_, weight_, first_name_;
  std::vector<Scalar> order_;  // parts first
  int combines_ = 0;           // how many folds are around what is being written
};

std::string text_of(const Axis& axis) {
  return name_of(axis.name) + (axis.extent ? ": " + axis.extent->to_string() : "");
}

std::string text_of(const std::vector<Axis>& axes) {
  return joined(axes, [](const Axis& axis) { return text_of(axis); });
}

std::string text_of(const MergedAxis& axis) {
  return axis.parts.size() == 1 ? text_of(axis.parts[0]) : "(" + text_of(axis.parts) + ")";
}

std::string text_of(const Operand& operand) {
  return fmt::format("{}: {}[{}]", name_of(operand.name), to_string(operand.dtype),
                     joined(operand.shape, [](const Dim& dim) { return dim.to_string(); }));
}

/// One line, or two if one is too long.
std::string assigned(const std::string& place, const std::string& value) {
  const bool fits = place.size() + value.size() < 96;
  return fmt::format("  {}{}{}\n", place, fits ? " " : "\n    ", value);
}

}  // namespace

std::string to_text(const Scalar& scalar) {
  Writer writer({scalar});
  const std::string lets = writer.lets("", " ");
  return lets + (lets.empty() ? "" : "in ") + writer.text(scalar, Level::kLoose);
}

std::string to_text(const Definition& definition) {
  std::vector<Scalar> roots;
  for (const Output& output : definition.outputs) {
    roots.push_back(output.value);
    if (!output.forward) continue;
    roots.insert(roots.end(), output.forward->target.begin(), output.forward->target.end());
    roots.push_back(output.forward->value);
  }
  Writer writer(roots);
  std::string text = fmt::format(
      "define({}) {{\n", joined(definition.inputs, [](const Operand& o) { return text_of(o); }));
  text += writer.lets("  ", "\n");
  for (const Output& output : definition.outputs) {
    text +=
        assigned(fmt::format("{}: {}[{}] =", name_of(output.name), to_string(output.dtype),
                             joined(output.axes, [](const MergedAxis& m) { return text_of(m); })),
                 writer.text(output.value, Level::kLoose));
    if (!output.forward) continue;
    const ScatterWrite& forward = *output.forward;
    text += assigned(
        fmt::format("scatter({}) at [{}] {}", text_of(forward.over), writer.list(forward.target),
                    forward.combine ? to_string(*forward.combine) : grammar::kAssign),
        writer.text(forward.value, Level::kLoose));
  }
  return text + "}\n";
}

}  // namespace tessera
