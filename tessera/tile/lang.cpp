#include "tessera/tile/lang.h"

#include <fmt/format.h>

#include <exception>

#include "tessera/tile/lang_fit.h"

namespace tessera::tile {
namespace {

/// Offset, extent or stride as a scalar integer.
ValueId index_operand(const Operand& x) {
  const Type type = type_of(x);
  const bool narrow = type == Type::scalar(DType::I32);
  if (!narrow && !is_integer(type.dtype)) return value_of(x);  // the builder reports the error
  return fit(x, narrow ? DType::I32 : DType::I64, type.shape);
}

std::vector<ValueId> indices_of(const Operands& list) {
  std::vector<ValueId> ids;
  for (const Operand& x : list) ids.push_back(index_operand(x));
  return ids;
}

}  // namespace

Operand::Operand(const Val& value, Place where) : where_(where) {
  const Trace::Line line(where);
  id_ = value.id();
}

Val::Val() : trace_(Trace::current_or_null()) {
  if (trace_) trace_->enlist(this);
}

Val::Val(const Operand& number) : Val() {
  const Trace::Line line(number.where());
  id_ = value_of(number);
  state_ = State::Value;
}

Val::Val(const Val& other)
    : trace_(other.trace_), state_(other.state_), id_(other.id_), gone_(other.gone_) {
  if (trace_) trace_->enlist(this);
}

Val& Val::operator=(const Val& other) {
  if (this == &other) return *this;
  const bool reachable = trace_ == other.trace_;
  state_ = reachable ? other.state_ : State::Gone;
  id_ = other.id_;
  gone_ = reachable ? other.gone_ : Source{};
  return *this;
}

Val::~Val() {
  if (trace_) trace_->dismiss(this);
}

Val Val::of(ValueId id) {
  Val value;
  value.state_ = State::Value;
  value.id_ = id;
  return value;
}

ValueId Val::id() const {
  Trace& trace = Trace::current();
  if (trace_ != &trace) trace.fail("tile-scope", "a value of another kernel is used");
  if (state_ == State::Nothing) {
    trace.fail("tile-scope", "a variable is used that has no value",
               "one that was assigned before");
  }
  if (state_ == State::Gone) {
    trace.fail("tile-scope", "a value is used outside of the region that made it",
               fmt::format("the loop or branch at line {} may not have made it", gone_.line),
               "give the variable a value before");
  }
  return id_;
}

Type Val::type() const {
  return build().type(id());
}

Val Val::to(DType dtype, Place where) const {
  return cast(Operand(*this, where), dtype);
}

Val Val::bitcast(DType dtype, Place where) const {
  const Trace::Line line(where);
  return made(build().bitcast(id(), dtype));
}

Val Val::operator[](const Axes& axes) const {
  const Trace::Line line(axes.where);
  Extents shape;
  std::size_t taken = 0;
  for (const Axis axis : axes.axes) {
    shape.push_back(axis == All && taken < type().shape.size() ? type().shape[taken] : 1);
    taken += axis == All ? 1 : 0;
  }
  if (taken != type().shape.size()) {
    Trace::current().fail("tile-type",
                          fmt::format("{} is indexed by {} axes", to_string(type()), taken),
                          "All for each axis of the tile, None for each new one");
  }
  return made(build().reshape(id(), shape));
}

Val& Val::operator+=(const Operand& x) {
  return *this = Operand(*this, x.where()) + x;
}
Val& Val::operator-=(const Operand& x) {
  return *this = Operand(*this, x.where()) - x;
}
Val& Val::operator*=(const Operand& x) {
  return *this = Operand(*this, x.where()) * x;
}
Val& Val::operator/=(const Operand& x) {
  return *this = Operand(*this, x.where()) / x;
}
Val& Val::operator%=(const Operand& x) {
  return *this = Operand(*this, x.where()) % x;
}
Val& Val::operator&=(const Operand& x) {
  return *this = Operand(*this, x.where()) & x;
}
Val& Val::operator|=(const Operand& x) {
  return *this = Operand(*this, x.where()) | x;
}
Val& Val::operator^=(const Operand& x) {
  return *this = Operand(*this, x.where()) ^ x;
}

// --------------------------------------------------------------------------------------- views

Val View::dim(int axis, Place where) const {
  const Trace::Line line(where);
  return made(build().dim(id(), axis));
}

Val View::stride(int axis, Place where) const {
  const Trace::Line line(where);
  return made(build().stride(id(), axis));
}

Val View::base(Place where) const {
  const Trace::Line line(where);
  return made(build().base(id()));
}

Val View::load(const Operands& at, const Extents& shape, double pad, Place where) const {
  const Trace::Line line(where);
  return made(build().vload(id(), indices_of(at), shape, literal_of(dtype(), pad)));
}

void View::store(const Operands& at, const Operand& x) const {
  const Trace::Line line(x.where());
  build().vstore(id(), indices_of(at), fit(x, dtype(), type_of(x).shape));
  Trace::current().check();
}

View make_view(const Operand& pointer, const Operands& extents, const Operands& strides) {
  const Trace::Line line(pointer.where());
  const DType dtype = type_of(pointer).dtype;
  const auto known = [](const Operands& list) {
    Extents numbers;
    for (const Operand& x : list) {
      numbers.push_back(x.is_number() ? x.number().literal.integer : kDynamic);
      if (x.is_number() && (x.number().sort != Sort::Integer || numbers.back() < 0)) {
        Trace::current().fail("tile-type", "an extent or a stride that is no whole number",
                              "numbers of at least 0");
      }
    }
    return numbers;
  };
  const Extents shape = known(extents);
  Operands steps = strides;
  for (std::size_t i = extents.size(); strides.empty() && i-- > 0;) {
    // Row-major: the stride of an axis is the number of elements of the axes after it.
    const bool last = i + 1 == extents.size();
    const std::int64_t step = Type::view(dtype, shape).strides[i];
    const Operand whole = last || step != kDynamic ? Operand(step, pointer.where())
                                                   : Operand(extents[i + 1] * steps.front());
    steps.insert(steps.begin(), whole);
  }
  std::vector<ValueId> open;
  for (const Operands* list : {&extents, &std::as_const(steps)}) {
    for (const Operand& x : *list)
      if (!x.is_number()) open.push_back(index_operand(x));
  }
  const Type type = Type::view(dtype, shape, known(steps));
  return View(Trace::current().checked(build().view(value_of(pointer), type, open)));
}

// ------------------------------------------------------------------------------------- control

Range::Range(const Operand& from, const Operand& to, const Operand& step, const LoopHints& hints)
    : trace_(Trace::current()), exceptions_(std::uncaught_exceptions()) {
  const Trace::Line line(to.where());
  if (step.is_number() && step.number().literal.integer < 1) {
    trace_.fail("tile-control", fmt::format("a loop by steps of {}", step.number().literal.integer),
                "steps of at least 1");
  }
  const bool narrow =
      type_of(to).dtype == DType::I32 && common_dtype({from, to, step}) == DType::I32;
  const auto bound = [&](const Operand& x) {
    if (!is_integer(type_of(x).dtype)) return value_of(x);  // the builder reports the error
    return fit(x, narrow ? DType::I32 : DType::I64, {});
  };
  std::vector<std::int64_t> list;
  if (hints.stages != 0 || hints.unroll != 0) list = {hints.stages, hints.unroll};
  const ValueId begin = bound(from), end = bound(to), by = bound(step);
  trace_.open_for(begin, end, by, std::move(list), index_);
}

Range::~Range() {
  if (open_ && std::uncaught_exceptions() == exceptions_) trace_.abandon_for();
}

void Range::close() {
  open_ = false;
  trace_.close_for();
}

Range range(const Operand& from, const Operand& to, const Operand& step, const LoopHints& hints) {
  return {from, to, step, hints};
}

Range range(const Operand& to) {
  return {Operand(0, to.where()), to, Operand(1, to.where()), {}};
}

void when(const Operand& condition, const std::function<void()>& then,
          const std::function<void()>& otherwise) {
  if (condition.is_number()) {
    if (condition.number().literal != Literal{}) return then();
    return otherwise ? otherwise() : void();
  }
  const Trace::Line line(condition.where());
  Trace::current().if_else(truth(condition), then, otherwise);
}

void loop_while(const std::function<Val()>& condition, const std::function<void()>& body,
                Place where) {
  const Trace::Line line(where);
  Trace::current().while_loop([&] { return truth(Operand(condition(), where)); }, body);
}

}  // namespace tessera::tile
