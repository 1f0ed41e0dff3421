#include "tessera/expr/tracer.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "tessera/expr/exact_cast.h"
#include "tessera/expr/scalar.h"
#include "tessera/support/check.h"
#include "tessera/support/hash.h"

namespace tessera {
namespace {

thread_local Tracer* under_way = nullptr;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

Tracer::Tracer() : outer_(under_way) {
  under_way = this;
  // Zero and one have fixed ids in all recordings: a default-constructed number is zero.
  constant({});
  constant({.is_integer = true, .integer = 1});
}

Tracer::~Tracer() {
  under_way = outer_;
}

Tracer& Tracer::current() {
  TESSERA_CHECK(under_way != nullptr, "a recorded number outside of a recording");
  return *under_way;
}

bool Tracer::undecided() {
  current().decided_ = false;
  return false;
}

TracedNumber Tracer::input() {
  nodes_.push_back({.kind = Kind::Input, .a = static_cast<std::uint32_t>(inputs_++)});
  return TracedNumber(static_cast<std::uint32_t>(nodes_.size() - 1));
}

TracedNumber Tracer::constant(const Tape::Constant& constant) {
  const auto [it, added] =
      constants_.try_emplace({constant.integer, constant.is_integer ? 0 : constant.number},
                             static_cast<std::uint32_t>(nodes_.size()));
  if (added) nodes_.push_back({.kind = Kind::Constant, .constant = constant});
  return TracedNumber(it->second);
}

TracedNumber Tracer::step(Tape::Op op, TracedNumber a, TracedNumber b, std::uint64_t key) {
  const bool commutes = op == Tape::Op::Add || op == Tape::Op::Mul || op == Tape::Op::Larger ||
                        op == Tape::Op::Smaller;
  if (commutes && b.id_ < a.id_) std::swap(a, b);
  const auto [it, added] = made_.try_emplace(Operation{op, a.id_, b.id_, key},
                                             static_cast<std::uint32_t>(nodes_.size()));
  if (added) nodes_.push_back({.kind = Kind::Step, .op = op, .a = a.id_, .b = b.id_, .key = key});
  return TracedNumber(it->second);
}

std::size_t Tracer::Hash::operator()(const Operation& operation) const {
  Hasher hasher;
  hasher.add(std::uint64_t{operation.a} << 32 | operation.b);
  hasher.add(operation.key + static_cast<std::uint64_t>(operation.op));
  return hasher.value();
}

bool Tracer::is(TracedNumber x, double number) const {
  const Node& node = nodes_[x.id_];
  return node.kind == Kind::Constant &&
         (node.constant.is_integer ? static_cast<double>(node.constant.integer)
                                   : node.constant.number) == number;
}

std::optional<std::pair<TracedNumber, TracedNumber>> Tracer::difference(TracedNumber x) const {
  const Node& node = nodes_[x.id_];
  if (node.kind != Kind::Step || node.op != Tape::Op::Sub) return std::nullopt;
  return std::pair(TracedNumber(node.a), TracedNumber(node.b));
}

bool Tracer::is_double(TracedNumber x, TracedNumber of) const {
  const Node& node = nodes_[x.id_];
  if (node.kind != Kind::Step || node.op != Tape::Op::Mul) return false;
  return (node.a == of.id_ && is(TracedNumber(node.b), 2)) ||
         (node.b == of.id_ && is(TracedNumber(node.a), 2));
}

TracedNumber TracedNumber::of_integer(std::int64_t integer) {
  if (integer == 0 || integer == 1) return TracedNumber(static_cast<std::uint32_t>(integer));
  return Tracer::current().constant({.is_integer = true, .integer = integer});
}

TracedNumber TracedNumber::of_word(std::uint64_t word) {
  return of_integer(static_cast<std::int64_t>(word));
}

TracedNumber TracedNumber::of_double(double number) {
  if (std::isnan(number)) Tracer::undecided();
  if (std::abs(number) < 0x1p53 && number == std::floor(number))
    return of_integer(static_cast<std::int64_t>(number));
  return Tracer::current().constant({.is_integer = false, .number = number});
}

TracedNumber TracedNumber::stored(DType dtype, TracedNumber x) {
  constexpr std::uint64_t kStored = 0x73746f726564;  // no key of a function
  const Tracer::Node& node = Tracer::current().nodes_[x.id_];
  if (node.kind == Tracer::Kind::Step && node.op == Tape::Op::Keyed && node.key >= kStored &&
      node.key < kStored + 256) {
    const auto own = static_cast<DType>(node.key - kStored);
    if (is_exact_cast(own, dtype)) return x;
  }
  return keyed(kStored + static_cast<std::uint64_t>(dtype), x);
}

TracedNumber TracedNumber::keyed(std::uint64_t key, TracedNumber x) {
  return Tracer::current().step(Tape::Op::Keyed, x, {}, key);
}
TracedNumber TracedNumber::keyed(std::uint64_t key, TracedNumber x, TracedNumber y) {
  Tracer& recording = Tracer::current();
  if (key == static_cast<std::uint64_t>(Fn::Pow) && recording.is(y, 1)) return x;
  return recording.step(Tape::Op::Keyed2, x, y, key);
}

std::optional<TracedNumber> Tracer::negated(TracedNumber x) const {
  const Node& node = nodes_[x.id_];
  if (node.kind != Kind::Step || node.op != Tape::Op::Sub || node.a != 0) return std::nullopt;
  return TracedNumber(node.b);
}

void Tracer::collect(Tape::Op op, TracedNumber x, std::set<std::uint32_t>& leaves) const {
  const Node& node = nodes_[x.id_];
  if (node.kind != Kind::Step || node.op != op) {
    leaves.insert(x.id_);
    return;
  }
  collect(op, TracedNumber(node.a), leaves);
  collect(op, TracedNumber(node.b), leaves);
}

/// Flattens nested extremes into one canonical order.
TracedNumber Tracer::extreme(Tape::Op op, TracedNumber a, TracedNumber b) {
  constexpr std::size_t kMostLeaves = 64;
  const double neutral = op == Tape::Op::Larger ? -kInfinity : kInfinity;
  if (a.id_ == b.id_ || is(b, neutral)) return a;
  if (is(a, neutral)) return b;
  // max(-a, -b) = -min(a, b), also where one of them is 0.
  const auto minus_a = negated(a), minus_b = negated(b);
  if ((minus_a || minus_b) && (minus_a || a.id_ == 0) && (minus_b || b.id_ == 0)) {
    const Tape::Op other = op == Tape::Op::Larger ? Tape::Op::Smaller : Tape::Op::Larger;
    return TracedNumber() - extreme(other, minus_a.value_or(a), minus_b.value_or(b));
  }
  std::set<std::uint32_t> leaves;
  collect(op, a, leaves);
  collect(op, b, leaves);
  if (leaves.size() > kMostLeaves) return step(op, a, b);
  TracedNumber result(*leaves.begin());
  for (auto leaf = std::next(leaves.begin()); leaf != leaves.end(); ++leaf)
    result = step(op, result, TracedNumber(*leaf));
  return result;
}

TracedNumber TracedNumber::larger(TracedNumber a, TracedNumber b) {
  return Tracer::current().extreme(Tape::Op::Larger, a, b);
}
TracedNumber TracedNumber::smaller(TracedNumber a, TracedNumber b) {
  return Tracer::current().extreme(Tape::Op::Smaller, a, b);
}

// Moves signs out of products and into differences, which does not change rounding.
TracedNumber operator+(TracedNumber a, TracedNumber b) {
  Tracer& recording = Tracer::current();
  if (a.id_ == 0) return b;
  if (b.id_ == 0) return a;
  const auto minus_a = recording.negated(a), minus_b = recording.negated(b);
  if (minus_a && minus_b) return TracedNumber() - (*minus_a + *minus_b);
  if (minus_b) return a - *minus_b;
  if (minus_a) return b - *minus_a;
  if (a.id_ == b.id_) return TracedNumber::of_integer(2) * a;
  if (recording.is_double(a, b) || recording.is_double(b, a))  // one rounding, of 3x
    return TracedNumber::of_integer(3) * (recording.is_double(a, b) ? b : a);
  return recording.step(Tape::Op::Add, a, b);
}
TracedNumber operator-(TracedNumber a, TracedNumber b) {
  Tracer& recording = Tracer::current();
  if (a.id_ == b.id_) {
    recording.simplified_ = true;
    return {};
  }
  if (b.id_ == 0) return a;
  const auto minus_a = recording.negated(a), minus_b = recording.negated(b);
  if (minus_b) return a + *minus_b;
  if (minus_a) return TracedNumber() - (*minus_a + b);
  if (const auto swapped = a.id_ == 0 ? recording.difference(b) : std::nullopt)
    return swapped->second - swapped->first;
  return recording.step(Tape::Op::Sub, a, b);
}
TracedNumber operator*(TracedNumber a, TracedNumber b) {
  Tracer& recording = Tracer::current();
  if (a.id_ == 0 || b.id_ == 0) {
    recording.simplified_ = true;
    return {};
  }
  const auto minus_a = recording.negated(a), minus_b = recording.negated(b);
  if (minus_a && minus_b) return *minus_a * *minus_b;
  if (minus_a) return TracedNumber() - *minus_a * b;
  if (minus_b) return TracedNumber() - a * *minus_b;
  if (recording.is(a, 1)) return b;
  if (recording.is(b, 1)) return a;
  if (recording.is(a, -1)) return TracedNumber() - b;
  return recording.is(b, -1) ? TracedNumber() - a : recording.step(Tape::Op::Mul, a, b);
}
TracedNumber operator/(TracedNumber a, TracedNumber b) {
  Tracer& recording = Tracer::current();
  const auto minus_a = recording.negated(a), minus_b = recording.negated(b);
  if (minus_a && minus_b) return *minus_a / *minus_b;
  if (minus_a) return TracedNumber() - *minus_a / b;
  if (minus_b) return TracedNumber() - a / *minus_b;
  return recording.is(b, 1) ? a : recording.step(Tape::Op::Div, a, b);
}

bool operator==(TracedNumber a, TracedNumber b) {
  return a.id_ == b.id_ || Tracer::undecided();
}
bool operator<(TracedNumber a, TracedNumber b) {
  return a.id_ != b.id_ && Tracer::undecided();
}
std::uint64_t TracedNumber::word() const {
  Tracer::undecided();
  return 0;
}

Tape Tracer::tape(std::span<const TracedNumber> outputs) const {
  using Op = Tape::Op;
  std::vector<std::uint32_t> uses(nodes_.size());
  for (const TracedNumber& output : outputs) ++uses[output.id_];
  for (std::size_t i = nodes_.size(); i-- > 0;) {
    if (nodes_[i].kind != Kind::Step || uses[i] == 0) continue;
    ++uses[nodes_[i].a];
    ++uses[nodes_[i].b];
  }
  const auto is_step = [&](std::uint32_t id, Op op) {
    return nodes_[id].kind == Kind::Step && nodes_[id].op == op;
  };

  // Fuses sums whose terms have no other reader into one step.
  struct Leaf {
    std::uint32_t a, b;
    bool product;
  };
  std::vector<bool> inside(nodes_.size());
  std::map<std::uint32_t, std::vector<Leaf>> sums;
  for (std::size_t at = nodes_.size(); at-- > 0;) {
    const auto id = static_cast<std::uint32_t>(at);
    if (uses[id] == 0 || inside[id] || !is_step(id, Op::Add)) continue;
    std::vector<Leaf> leaves;
    std::vector<std::uint32_t> open = {id};
    bool has_product = false;
    while (!open.empty()) {
      const std::uint32_t part = open.back();
      open.pop_back();
      const bool own = part == id || uses[part] == 1;
      if (own && is_step(part, Op::Add)) {
        if (part != id) inside[part] = true;
        open.push_back(nodes_[part].b);
        open.push_back(nodes_[part].a);
      } else if (own && is_step(part, Op::Mul)) {
        leaves.push_back({nodes_[part].a, nodes_[part].b, true});
        inside[part] = has_product = true;
      } else {
        leaves.push_back({part, 0, false});
      }
    }
    if (has_product || leaves.size() > 2) sums.emplace(id, std::move(leaves));
  }

  Tape tape;
  tape.inputs_ = inputs_;
  tape.add_constant({}, false);
  const std::uint32_t one = tape.add_constant({.is_integer = true, .integer = 1}, false);
  std::vector<std::uint32_t> reg(nodes_.size()), inverse(nodes_.size());
  for (std::size_t id = 1; id < nodes_.size(); ++id) {
    if (nodes_[id].kind != Kind::Constant || uses[id] == 0) continue;
    reg[id] = tape.add_constant(nodes_[id].constant, false);
    inverse[id] = tape.add_constant(nodes_[id].constant, true);
  }
  const auto constants = static_cast<std::uint32_t>(std::get<0>(tape.constants_).size());
  for (std::size_t id = 0; id < nodes_.size(); ++id)
    if (nodes_[id].kind == Kind::Input) reg[id] = constants + nodes_[id].a;
  const auto first = static_cast<std::uint32_t>(constants + inputs_);
  for (std::size_t id = 0; id < nodes_.size(); ++id) {
    const Node& node = nodes_[id];
    if (node.kind != Kind::Step || uses[id] == 0 || inside[id]) continue;
    reg[id] = first + static_cast<std::uint32_t>(tape.steps_.size());
    if (const auto sum = sums.find(static_cast<std::uint32_t>(id)); sum != sums.end()) {
      const auto begin = static_cast<std::uint32_t>(tape.products_.size());
      for (const Leaf& leaf : sum->second)
        tape.products_.emplace_back(reg[leaf.a], leaf.product ? reg[leaf.b] : one);
      tape.steps_.push_back(
          {Op::Products, begin, static_cast<std::uint32_t>(tape.products_.size()), 0});
    } else if (node.op == Op::Div && inverse[node.b] != 0) {
      tape.steps_.push_back({Op::Mul, reg[node.a], inverse[node.b], 0});
    } else {
      tape.steps_.push_back({node.op, reg[node.a], reg[node.b], node.key});
    }
  }
  for (const TracedNumber& output : outputs) tape.outputs_.push_back(reg[output.id_]);
  return tape;
}

template <class F>
F Tape::value_of(const Constant& constant) {
  return constant.is_integer ? F::of_integer(constant.integer) : F::of_double(constant.number);
}

std::uint32_t Tape::add_constant(const Constant& constant, bool inverse) {
  const auto add = [&]<class F>(std::vector<F>& into) {
    const F value = value_of<F>(constant);
    into.push_back(inverse ? F::of_integer(1) / value : value);
    return into.size() - 1;
  };
  add(std::get<1>(constants_));
  return static_cast<std::uint32_t>(add(std::get<0>(constants_)));
}

template <class F>
bool Tape::replay(std::span<const std::span<const F>> inputs, F* outputs,
                  std::vector<F>& scratch) const {
  const auto& constants = std::get<std::vector<F>>(constants_);
  scratch.resize(std::max(scratch.size(), constants.size() + inputs_ + steps_.size()));
  F* const registers = scratch.data();
  F* next = std::copy(constants.begin(), constants.end(), registers);
  for (const std::span<const F> input : inputs) next = std::copy(input.begin(), input.end(), next);
  for (const Step& step : steps_) {
    const F a = registers[step.op == Op::Products ? 0 : step.a];
    const F b = registers[step.op == Op::Products ? 0 : step.b];
    switch (step.op) {
      case Op::Add: *next = a + b; break;
      case Op::Sub: *next = a - b; break;
      case Op::Mul: *next = a * b; break;
      case Op::Div:
        if (b == F()) return false;
        *next = a / b;
        break;
      case Op::Keyed: *next = F::keyed(step.key, a); break;
      case Op::Keyed2: *next = F::keyed(step.key, a, b); break;
      case Op::Larger: *next = F::larger(a, b); break;
      case Op::Smaller: *next = F::smaller(a, b); break;
      case Op::Products: {
        typename F::Sum sum;
        for (std::uint32_t i = step.a; i < step.b; ++i)
          sum.add_product(registers[products_[i].first], registers[products_[i].second]);
        *next = sum.total();
        break;
      }
    }
    ++next;
  }
  for (const std::uint32_t output : outputs_) *outputs++ = registers[output];
  return true;
}

template bool Tape::replay<FieldA>(std::span<const std::span<const FieldA>>, FieldA*,
                                   std::vector<FieldA>&) const;
template bool Tape::replay<FieldB>(std::span<const std::span<const FieldB>>, FieldB*,
                                   std::vector<FieldB>&) const;

}  // namespace tessera
