#include "tessera/prove/rounding.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "tessera/expr/walk.h"

namespace tessera::prove {
namespace {

bool reads_floats(const Scalar& scalar) {
  bool found = false;
  for_each_read(scalar, [&](const node::Read& read) { found |= read.sort == Sort::Value; });
  return found;
}

/// Accuracy of a computed number against the real number that it stands for.
enum class Accuracy { Exact, Rounded, Unknown };

/// All float types have these integers.
Accuracy accuracy_of(double constant) {
  constexpr double kMost = 256;
  return std::trunc(constant) == constant && std::fabs(constant) <= kMost ? Accuracy::Exact
                                                                          : Accuracy::Rounded;
}

Accuracy worse(Accuracy a, Accuracy b) {
  return std::max(a, b);
}

/// Accuracy of the elements of a value of a claim, from that of its operands.
class ElementAccuracy {
 public:
  using Known = std::map<std::string, Accuracy, std::less<>>;

  ElementAccuracy(const certify::Value& value, const Known& known) : value_(value), known_(known) {}

  Accuracy of(const Scalar& scalar) const {
    // Integers are not rounded, but an index that floats are turned into may be another one.
    if (scalar.sort() != Sort::Value)
      return reads_floats(scalar) ? Accuracy::Unknown : Accuracy::Exact;
    const Node& node = scalar.node();
    if (const auto* constant = std::get_if<node::Constant>(&node))
      return accuracy_of(constant->number);
    if (const auto* read = std::get_if<node::Read>(&node)) return of(*read);
    if (const auto* apply = std::get_if<node::Apply>(&node)) return of(*apply);
    if (const auto* component = std::get_if<node::Component>(&node)) return of(*component->fold);
    return Accuracy::Unknown;
  }

 private:
  Accuracy of(const node::Read& read) const {
    if (std::ranges::any_of(read.at, reads_floats)) return Accuracy::Unknown;
    const auto& inputs = value_.definition->inputs;
    const auto operand = std::ranges::find(inputs, read.operand, &Operand::name);
    const auto index = static_cast<std::size_t>(operand - inputs.begin());
    if (operand == inputs.end() || index >= value_.operands.size()) return Accuracy::Unknown;
    const auto found = known_.find(value_.operands[index]);
    if (found == known_.end()) return Accuracy::Unknown;
    return read.otherwise ? worse(found->second, of(*read.otherwise)) : found->second;
  }

  Accuracy of(const node::Apply& apply) const {
    Accuracy operands = Accuracy::Exact;
    for (const Scalar& arg : apply.args) operands = worse(operands, of(arg));
    switch (apply.fn) {
      case Fn::Neg:
      case Fn::Abs:
      case Fn::Max:
      case Fn::Min:
      case Fn::Select: return operands;
      case Fn::Add:
      case Fn::Sub:
      case Fn::Mul:
      case Fn::Div:
      case Fn::Sqrt: return operands == Accuracy::Exact ? Accuracy::Rounded : Accuracy::Unknown;
      default: return Accuracy::Unknown;
    }
  }

  /// A maximum or minimum is one of the elements.
  Accuracy of(const Fold& fold) const {
    const std::optional<Fn> fn = fold.simple();
    if (fn != Fn::Max && fn != Fn::Min) return Accuracy::Unknown;
    for (const Bound& bound : fold.bounds)
      if (reads_floats(bound.extent)) return Accuracy::Unknown;
    return worse(of(fold.init[0]), of(fold.lift[0]));
  }

  const certify::Value& value_;
  const Known& known_;
};

}  // namespace

bool rounds_correctly(const certify::Claim& claim) {
  if (claim.named_reals) return false;
  ElementAccuracy::Known known;
  for (const certify::Input& input : claim.inputs) {
    if (!input.content.empty() && is_float(input.type.dtype)) return false;
    known[input.name] = input.uniform ? accuracy_of(*input.uniform) : Accuracy::Exact;
  }
  for (const certify::Value& value : claim.values) {
    const Output& output = value.definition->outputs[value.output];
    const Accuracy accuracy =
        output.forward ? Accuracy::Unknown : ElementAccuracy(value, known).of(output.value);
    if (accuracy == Accuracy::Unknown) return false;
    known[value.name] = accuracy;
  }
  return true;
}

}  // namespace tessera::prove
