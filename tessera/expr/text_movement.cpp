#include "tessera/expr/text_movement.h"

#include <algorithm>
#include <set>
#include <string>
#include <unordered_map>

#include "tessera/expr/walk.h"

namespace tessera {
namespace {

/// Analysis of which expressions are elements of string operands.
class TextReading {
 public:
  explicit TextReading(std::set<std::string> operands) : operands_(std::move(operands)) {}

  bool is_text(const Scalar& scalar) {
    const auto [entry, added] = known_.emplace(scalar.id(), false);
    if (!added) return entry->second;
    keep_.push_back(scalar);
    const bool result = read(scalar);
    return known_[scalar.id()] = result;
  }
  bool computes() const { return computes_; }

 private:
  bool read(const Scalar& scalar) {
    const Node& node = scalar.node();
    if (const auto* n = std::get_if<node::Read>(&node)) {
      for (const Scalar& index : n->at) refuse(is_text(index));
      const bool text = operands_.contains(n->operand);
      if (n->otherwise != nullptr) refuse(text != fits(*n->otherwise, text));
      return text;
    }
    if (const auto* n = std::get_if<node::Apply>(&node)) {
      std::vector<bool> args;
      for (const Scalar& arg : n->args) args.push_back(is_text(arg));
      if (std::ranges::find(args, true) == args.end()) return false;
      if (n->fn == Fn::Equal) {
        refuse(!args[0] || !args[1]);
        return false;
      }
      refuse(n->fn != Fn::Select || args[0] || !fits(n->args[1], true) || !fits(n->args[2], true));
      return true;
    }
    for_each_part(scalar, [&](const Scalar& part) { refuse(is_text(part)); });
    return false;
  }

  /// Whether an expression is a string, or the empty string.
  bool fits(const Scalar& scalar, bool text) {
    return is_text(scalar) || (text && is_zero(scalar));
  }
  void refuse(bool condition) { computes_ = computes_ || condition; }

  std::set<std::string> operands_;
  std::unordered_map<const void*, bool> known_;
  std::vector<Scalar> keep_;  // so that ids stay theirs
  bool computes_ = false;
};

}  // namespace

std::optional<std::vector<bool>> text_outputs(const Definition& definition,
                                              const std::vector<bool>& is_text_input) {
  std::set<std::string> operands;
  for (std::size_t i = 0; i < definition.inputs.size(); ++i)
    if (is_text_input[i]) operands.insert(definition.inputs[i].name);
  TextReading reading(std::move(operands));
  std::vector<bool> outputs;
  for (const Output& output : definition.outputs) {
    const bool text = reading.is_text(output.value);
    outputs.push_back(text);
    if (!output.forward) continue;
    for (const Scalar& target : output.forward->target)
      if (reading.is_text(target)) return std::nullopt;
    if (reading.is_text(output.forward->value) != text || (text && output.forward->combine))
      return std::nullopt;
  }
  if (reading.computes()) return std::nullopt;
  return outputs;
}

}  // namespace tessera
