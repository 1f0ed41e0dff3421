#include "tessera/ops/opdef.h"

#include <algorithm>

namespace tessera {
namespace {

constexpr std::string_view kNeedsValue = "op-needs-value";

std::string attr_names(const OpDef& op) {
  std::string names;
  for (const AttrSpec& spec : op.attrs) names += (names.empty() ? "" : ", ") + spec.name;
  return names.empty() ? "none" : names;
}

}  // namespace

OpDef::Kind OpDef::kind() const {
  if (define) return Kind::Core;
  if (expand) return Kind::Composite;
  return control == Control::None ? Kind::Opaque : Kind::Control;
}

bool commutes(const OpDef& op, std::size_t operands) {
  return op.laws.commutative && operands == 2;
}

Expected<Attrs> completed(const OpDef& op, const Attrs& attrs) {
  Attrs result;
  for (const Attrs::Entry& entry : attrs.entries()) {
    const auto spec = std::ranges::find(op.attrs, entry.first, &AttrSpec::name);
    if (spec == op.attrs.end())
      return Diagnostic{.id = "op-attribute",
                        .message = fmt::format("{} has no attribute {}", op.name, entry.first),
                        .note = "its attributes are " + attr_names(op)};
    Attr value = entry.second;
    // An empty list has no kind of its own, and an integer is a float where one is asked for.
    if (const auto* list = std::get_if<Ints>(&value)) {
      if (std::holds_alternative<Floats>(spec->value))
        value = Floats(list->begin(), list->end());
      else if (list->empty() && std::holds_alternative<Strings>(spec->value))
        value = Strings{};
    }
    if (const auto* whole = std::get_if<std::int64_t>(&value);
        whole != nullptr && std::holds_alternative<double>(spec->value))
      value = static_cast<double>(*whole);
    const bool named = spec->neutral && std::holds_alternative<Symbol>(value);
    if (!named && value.index() != spec->value.index())
      return Diagnostic{.id = "op-attribute",
                        .message = fmt::format("attribute {} of {} is of kind {}", entry.first,
                                               op.name, kind_of(value)),
                        .note = fmt::format("it has to be of kind {}", kind_of(spec->value))};
    if (const auto* flag = std::get_if<std::int64_t>(&value);
        spec->is_flag && flag != nullptr && *flag != 0 && *flag != 1)
      return Diagnostic{
          .id = "op-attribute",
          .message = fmt::format("attribute {} of {} is {}", entry.first, op.name, *flag),
          .note = "it is 0 or 1"};
    result.set(entry.first, std::move(value));
  }
  for (const AttrSpec& spec : op.attrs) {
    if (result.has(spec.name)) continue;
    if (spec.need == AttrSpec::Need::Required)
      return Diagnostic{.id = "op-attribute",
                        .message = fmt::format("{} needs the attribute {}", op.name, spec.name)};
    if (spec.need == AttrSpec::Need::Default) result.set(spec.name, spec.value);
  }
  return result;
}

bool is_named_real(const OpDef& op, const Attrs::Entry& attribute) {
  if (!std::holds_alternative<Symbol>(attribute.second)) return false;
  const auto spec = std::ranges::find(op.attrs, attribute.first, &AttrSpec::name);
  return spec != op.attrs.end() && std::holds_alternative<double>(spec->value);
}

Dim size_attr(const Attrs& attrs, std::string_view name) {
  const Attr* attr = attrs.find(name);
  const auto* symbol = attr == nullptr ? nullptr : std::get_if<Symbol>(attr);
  return symbol != nullptr ? Dim::symbol(symbol->name) : Dim(attrs.i(name));
}

Expected<Shape> size_attrs(const Attrs& attrs, std::string_view name, std::size_t count,
                           std::int64_t neutral) {
  const Attr* attr = attrs.find(name);
  if (attr == nullptr) return Shape(count, neutral);
  if (const auto* symbol = std::get_if<Symbol>(attr)) {
    Shape sizes;
    for (std::size_t i = 0; i < count; ++i) sizes.push_back(entry_symbol(symbol->name, i));
    return sizes;
  }
  const Ints& given = attrs.ints(name);
  if (given.empty()) return Shape(count, neutral);
  if (given.size() != count)
    return bad_operands(fmt::format("{} has {} entries", name, given.size()),
                        fmt::format("{} are expected", count));
  constexpr std::int64_t kMost = std::int64_t{1} << 31;
  const std::int64_t least = neutral == 0 ? -kMost : 1;
  for (const std::int64_t entry : given)
    if (entry < least || entry > kMost)
      return bad_operands(fmt::format("an entry of {} is {}", name, entry),
                          fmt::format("it has to be in {} .. {}", least, kMost));
  return Shape(given.begin(), given.end());
}

Dim entry_symbol(std::string_view name, std::size_t entry) {
  return Dim::symbol(fmt::format("{}{}", name, entry));
}

Expected<Done> check_arity(const OpDef& op, const std::vector<bool>& present) {
  std::size_t least = 0, most = 0;
  for (const std::string& input : op.inputs) {
    ++most;
    if (!input.ends_with('?') && !input.ends_with('*')) least = most;
    if (input.ends_with('*') || input.ends_with('+')) most = static_cast<std::size_t>(-1) / 2;
  }
  std::size_t given = present.size();
  while (given > 0 && !present[given - 1]) --given;
  if (given < least || present.size() > most)
    return Diagnostic{.id = "op-arity",
                      .message = fmt::format("{} has {} inputs", op.name, present.size()),
                      .note = least == most ? fmt::format("it takes {}", least)
                                            : fmt::format("it takes {} or more", least)};
  for (std::size_t i = 0; i < given; ++i) {
    const std::string& input = op.inputs[std::min(i, op.inputs.size() - 1)];
    if (!present[i] && !input.ends_with('?'))
      return Diagnostic{.id = "op-arity",
                        .message = fmt::format("input {} of {} is left out", input, op.name)};
  }
  return Done{};
}

Diagnostic needs_value(std::string_view input) {
  return {.id = std::string(kNeedsValue),
          .message = fmt::format("the content of input {} has to be known", input)};
}

bool is_needs_value(const Diagnostic& diagnostic) {
  return diagnostic.id == kNeedsValue;
}

Diagnostic bad_operands(std::string message, std::string note) {
  return {.id = "op-operands", .message = std::move(message), .note = std::move(note)};
}

Diagnostic takes_no_text(const OpDef& op) {
  return {.id = "op-unsupported-text",
          .message = fmt::format("{} does not support strings", op.name)};
}

Expected<int> normal_axis(std::int64_t axis, int rank) {
  if (axis < -rank || axis >= rank)
    return bad_operands(fmt::format("axis {} is out of range", axis),
                        fmt::format("the tensor has {} axes", rank));
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

}  // namespace tessera
