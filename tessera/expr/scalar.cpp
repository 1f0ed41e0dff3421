#include "tessera/expr/scalar.h"

#include <limits>

#include "tessera/expr/function.h"
#include "tessera/support/check.h"

namespace tessera {
namespace {

constexpr bool fns_in_order() {
  for (std::size_t i = 0; i < kFnInfos.size(); ++i)
    if (static_cast<std::size_t>(kFnInfos[i].fn) != i) return false;
  return true;
}
static_assert(fns_in_order());

/// Common sort of two operands.
Sort joined(Sort a, Sort b) {
  if (a == b) return a;
  if (a == Sort::Value || b == Sort::Value) return Sort::Value;
  if (a == Sort::Unsigned || b == Sort::Unsigned) return Sort::Unsigned;
  return Sort::Integer;
}

Sort sort_of_apply(const node::Apply& apply) {
  switch (apply.fn) {
    case Fn::Exp:
    case Fn::Log:
    case Fn::Sqrt:
    case Fn::Sin:
    case Fn::Cos:
    case Fn::Atan:
    case Fn::Tanh:
    case Fn::Erf: return Sort::Value;
    case Fn::Neg:
    case Fn::Abs:
    case Fn::Floor:
    case Fn::Round:
    case Fn::Not: return apply.args[0].sort();
    case Fn::Equal:
    case Fn::Less:
    case Fn::LessEqual: return Sort::Bool;
    case Fn::Add:
    case Fn::Sub:
    case Fn::Mul:
    case Fn::Div:
    case Fn::FloorDiv:
    case Fn::Mod:
    case Fn::Pow:
    case Fn::Max:
    case Fn::Min:
    case Fn::And:
    case Fn::Or:
    case Fn::Xor: return joined(apply.args[0].sort(), apply.args[1].sort());
    case Fn::ShiftLeft:
    case Fn::ShiftRight: return apply.args[0].sort();
    case Fn::Select: return joined(apply.args[1].sort(), apply.args[2].sort());
  }
  return Sort::Value;
}

struct SortOf {
  Sort operator()(const node::Constant& n) const { return n.sort; }
  Sort operator()(const node::Index&) const { return Sort::Integer; }
  Sort operator()(const node::Size&) const { return Sort::Integer; }
  Sort operator()(const node::Read& n) const { return n.sort; }
  Sort operator()(const node::Apply& n) const { return sort_of_apply(n); }
  Sort operator()(const node::Cast& n) const { return sort_of(n.to); }
  Sort operator()(const node::Partial& n) const { return n.sort; }
  Sort operator()(const node::Component& n) const {
    return n.fold->init[static_cast<std::size_t>(n.index)].sort();
  }
};

Scalar simple_fold(std::vector<Bound> bounds, const Scalar& init, const Scalar& lift, Fn fn) {
  return fold(std::move(bounds), {init}, {lift},
              [fn](const Tuple& left, const Tuple& right) -> Tuple {
                return {apply(fn, {left[0], right[0]})};
              })[0];
}

Scalar zero_of(Sort sort) {
  return sort == Sort::Value ? Scalar(0.0) : Scalar(0);
}
Scalar one_of(Sort sort) {
  return sort == Sort::Value ? Scalar(1.0) : Scalar(1);
}

}  // namespace

std::string_view to_string(Fn fn) {
  return info_of(fn).name;
}
int arity(Fn fn) {
  return info_of(fn).arity;
}

std::optional<Fn> parse_fn(std::string_view name) {
  for (const FnInfo& info : kFnInfos)
    if (info.name == name) return info.fn;
  return std::nullopt;
}

Scalar::Scalar(double number)
    : Scalar(Node(node::Constant{.sort = Sort::Value, .number = number})) {}
Scalar::Scalar(int integer) : Scalar(std::int64_t{integer}) {}
Scalar::Scalar(std::int64_t integer)
    : Scalar(Node(node::Constant{.sort = Sort::Integer, .integer = integer})) {}
Scalar::Scalar(const Dim& size)
    : Scalar(size.constant()
                 ? Node(node::Constant{.sort = Sort::Integer, .integer = *size.constant()})
                 : Node(node::Size{size})) {}
Scalar::Scalar(Node node)
    : node_(std::make_shared<const Node>(std::move(node))), sort_(std::visit(SortOf{}, *node_)) {}

std::optional<std::int64_t> Scalar::integer() const {
  const auto* constant = std::get_if<node::Constant>(node_.get());
  if (constant == nullptr || constant->sort == Sort::Value) return std::nullopt;
  return constant->integer;
}

std::optional<Fn> Fold::simple() const {
  if (init.size() != 1) return std::nullopt;
  const auto* combined = std::get_if<node::Apply>(&combine[0].node());
  if (combined == nullptr || combined->args.size() != 2) return std::nullopt;
  const auto* left = std::get_if<node::Partial>(&combined->args[0].node());
  const auto* right = std::get_if<node::Partial>(&combined->args[1].node());
  if (left == nullptr || right == nullptr) return std::nullopt;
  if (left->side != node::Partial::Side::Left || right->side != node::Partial::Side::Right)
    return std::nullopt;
  return combined->fn;
}

bool is_zero(const Scalar& scalar) {
  const auto* constant = std::get_if<node::Constant>(&scalar.node());
  return constant != nullptr && constant->number == 0 && constant->integer == 0;
}

Scalar truth(bool value) {
  return Scalar(Node(node::Constant{.sort = Sort::Bool, .integer = value ? 1 : 0}));
}
Scalar like(const Scalar& x, double number) {
  if (x.sort() == Sort::Value) return number;
  return Scalar(
      Node(node::Constant{.sort = x.sort(), .integer = static_cast<std::int64_t>(number)}));
}
Scalar index_of(std::string axis) {
  return Scalar(Node(node::Index{std::move(axis)}));
}

Scalar apply(Fn fn, std::vector<Scalar> args) {
  TESSERA_CHECK(static_cast<int>(args.size()) == arity(fn), "{} takes {} arguments", to_string(fn),
                arity(fn));
  return Scalar(Node(node::Apply{fn, std::move(args)}));
}

// Index arithmetic folds its neutral elements and constants, so that definitions stay readable.
Scalar operator+(const Scalar& a, const Scalar& b) {
  if (a.integer() == 0 && b.sort() == Sort::Integer) return b;
  if (b.integer() == 0 && a.sort() == Sort::Integer) return a;
  if (a.integer() && b.integer()) return Dim(*a.integer()) + Dim(*b.integer());
  return apply(Fn::Add, {a, b});
}
Scalar operator-(const Scalar& a, const Scalar& b) {
  if (b.integer() == 0 && a.sort() == Sort::Integer) return a;
  if (a.integer() && b.integer()) return Dim(*a.integer()) - Dim(*b.integer());
  return apply(Fn::Sub, {a, b});
}
Scalar operator*(const Scalar& a, const Scalar& b) {
  if (a.integer() == 1 && b.sort() == Sort::Integer) return b;
  if (b.integer() == 1 && a.sort() == Sort::Integer) return a;
  if (a.integer() && b.integer()) return Dim(*a.integer()) * Dim(*b.integer());
  return apply(Fn::Mul, {a, b});
}
Scalar operator/(const Scalar& a, const Scalar& b) {
  return apply(Fn::Div, {a, b});
}
Scalar operator-(const Scalar& a) {
  return apply(Fn::Neg, {a});
}
Scalar operator<(const Scalar& a, const Scalar& b) {
  return apply(Fn::Less, {a, b});
}
Scalar operator<=(const Scalar& a, const Scalar& b) {
  return apply(Fn::LessEqual, {a, b});
}
Scalar operator>(const Scalar& a, const Scalar& b) {
  return apply(Fn::Less, {b, a});
}
Scalar operator>=(const Scalar& a, const Scalar& b) {
  return apply(Fn::LessEqual, {b, a});
}
Scalar operator&&(const Scalar& a, const Scalar& b) {
  return apply(Fn::And, {a, b});
}
Scalar operator||(const Scalar& a, const Scalar& b) {
  return apply(Fn::Or, {a, b});
}
Scalar operator!(const Scalar& a) {
  return apply(Fn::Not, {a});
}

Scalar equal(const Scalar& a, const Scalar& b) {
  return apply(Fn::Equal, {a, b});
}
Scalar floor_div(const Scalar& a, const Scalar& b) {
  if (b.integer() == 1) return a;
  return apply(Fn::FloorDiv, {a, b});
}
Scalar mod(const Scalar& a, const Scalar& b) {
  return apply(Fn::Mod, {a, b});
}
Scalar pow(const Scalar& a, const Scalar& b) {
  return apply(Fn::Pow, {a, b});
}
Scalar max(const Scalar& a, const Scalar& b) {
  return apply(Fn::Max, {a, b});
}
Scalar min(const Scalar& a, const Scalar& b) {
  return apply(Fn::Min, {a, b});
}
Scalar abs(const Scalar& a) {
  return apply(Fn::Abs, {a});
}
Scalar exp(const Scalar& a) {
  return apply(Fn::Exp, {a});
}
Scalar log(const Scalar& a) {
  return apply(Fn::Log, {a});
}
Scalar sqrt(const Scalar& a) {
  return apply(Fn::Sqrt, {a});
}
Scalar sin(const Scalar& a) {
  return apply(Fn::Sin, {a});
}
Scalar cos(const Scalar& a) {
  return apply(Fn::Cos, {a});
}
Scalar atan(const Scalar& a) {
  return apply(Fn::Atan, {a});
}
Scalar tanh(const Scalar& a) {
  return apply(Fn::Tanh, {a});
}
Scalar erf(const Scalar& a) {
  return apply(Fn::Erf, {a});
}
Scalar floor(const Scalar& a) {
  return apply(Fn::Floor, {a});
}
Scalar ceil(const Scalar& a) {
  return -floor(-a);
}
Scalar round(const Scalar& a) {
  return apply(Fn::Round, {a});
}
Scalar is_nan(const Scalar& a) {
  return !equal(a, a);
}
Scalar select(const Scalar& condition, const Scalar& then, const Scalar& otherwise) {
  return apply(Fn::Select, {condition, then, otherwise});
}
Scalar cast(DType to, const Scalar& a) {
  return Scalar(Node(node::Cast{to, std::make_shared<const Scalar>(a)}));
}

Tuple fold(std::vector<Bound> bounds, Tuple init, Tuple lift, const Combine& combine) {
  TESSERA_CHECK(init.size() == lift.size(), "a fold lifts what it starts from");
  Tuple left, right;
  for (int i = 0; i < static_cast<int>(init.size()); ++i) {
    const Sort sort = init[static_cast<std::size_t>(i)].sort();
    left.push_back(Scalar(Node(node::Partial{node::Partial::Side::Left, i, sort})));
    right.push_back(Scalar(Node(node::Partial{node::Partial::Side::Right, i, sort})));
  }
  Tuple combined = combine(left, right);
  TESSERA_CHECK(combined.size() == init.size(), "a fold combines into what it starts from");
  const std::size_t components = init.size();
  const auto body = std::make_shared<const Fold>(
      Fold{std::move(bounds), std::move(init), std::move(lift), std::move(combined)});
  Tuple results;
  for (std::size_t i = 0; i < components; ++i)
    results.push_back(Scalar(Node(node::Component{body, static_cast<int>(i)})));
  return results;
}

Scalar sum(std::vector<Bound> bounds, const Scalar& term) {
  return simple_fold(std::move(bounds), zero_of(term.sort()), term, Fn::Add);
}
Scalar prod(std::vector<Bound> bounds, const Scalar& factor) {
  return simple_fold(std::move(bounds), one_of(factor.sort()), factor, Fn::Mul);
}
Scalar max_of(std::vector<Bound> bounds, const Scalar& term) {
  const DType widest = term.sort() == Sort::Value      ? DType::F64
                       : term.sort() == Sort::Unsigned ? DType::U64
                                                       : DType::I64;
  return simple_fold(std::move(bounds), lowest(widest), term, Fn::Max);
}
Scalar min_of(std::vector<Bound> bounds, const Scalar& term) {
  const DType widest = term.sort() == Sort::Value      ? DType::F64
                       : term.sort() == Sort::Unsigned ? DType::U64
                                                       : DType::I64;
  return simple_fold(std::move(bounds), highest(widest), term, Fn::Min);
}
Scalar any_of(std::vector<Bound> bounds, const Scalar& condition) {
  return simple_fold(std::move(bounds), truth(false), condition, Fn::Or);
}

namespace {

Scalar limit(DType dtype, bool low) {
  const double infinity = std::numeric_limits<double>::infinity();
  switch (sort_of(dtype)) {
    case Sort::Value: return low ? -infinity : infinity;
    case Sort::Integer: {
      const auto [least, most] = integer_range(dtype);
      return Scalar(low ? least : most);
    }
    case Sort::Unsigned:
      return Scalar(Node(node::Constant{.sort = Sort::Unsigned, .integer = low ? 0 : -1}));
    case Sort::Bool: return truth(!low);
    case Sort::Text: break;
  }
  TESSERA_CHECK(false, "text has no limits");
  return 0;
}

}  // namespace

Scalar lowest(DType dtype) {
  return limit(dtype, true);
}
Scalar highest(DType dtype) {
  return limit(dtype, false);
}

}  // namespace tessera
