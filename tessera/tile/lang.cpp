#include "tessera/tile/lang.h"

#include <fmt/format.h>

#include <exception>

#include "tessera/tile/lang_fit.h"
#include "tessera/tile/type_check.h"

namespace tessera::tile {
namespace {

Builder& build() {
  return Trace::current().builder();
}

Val made(ValueId id) {
  return Val::of(Trace::current().checked(id));
}

/// An offset, an extent or a stride.
ValueId index_of(const Operand& x) {
  const Type type = type_of(x);
  const bool narrow = type == Type::scalar(DType::I32);
  if (!narrow && !is_integer(type.dtype)) return value_of(x);  // the builder says what is wrong
  return fit(x, narrow ? DType::I32 : DType::I64, type.shape);
}

std::vector<ValueId> indices_of(const Operands& list) {
  std::vector<ValueId> ids;
  for (const Operand& x : list) ids.push_back(index_of(x));
  return ids;
}

}  // namespace

Operand::Operand(const Val& value, std::source_location where) : where_(where) {
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

const Type& Val::type() const {
  return build().type(id());
}

Val Val::to(DType dtype, std::source_location where) const {
  return cast(Operand(*this, where), dtype);
}

Val Val::bitcast(DType dtype, std::source_location where) const {
  const Trace::Line line(where);
  return made(build().bitcast(id(), dtype));
}

Val Val::T(std::source_location where) const {
  return permute(Operand(*this, where), {1, 0});
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

const Type& View::type() const {
  return build().type(id_);
}

Val View::dim(int axis, std::source_location where) const {
  const Trace::Line line(where);
  return made(build().dim(id_, axis));
}

Val View::stride(int axis, std::source_location where) const {
  const Trace::Line line(where);
  return made(build().stride(id_, axis));
}

Val View::base(std::source_location where) const {
  const Trace::Line line(where);
  return made(build().base(id_));
}

Val View::load(const Operands& at, const Extents& shape, double pad,
               std::source_location where) const {
  const Trace::Line line(where);
  return made(build().vload(id_, indices_of(at), shape, literal_of(dtype(), pad)));
}

void View::store(const Operands& at, const Operand& x) const {
  const Trace::Line line(x.where());
  build().vstore(id_, indices_of(at), fit(x, dtype(), type_of(x).shape));
  Trace::current().check();
}

View make_view(const Operand& pointer, const Operands& extents, const Operands& strides) {
  const Trace::Line line(pointer.where());
  const auto known = [](const Operand& x) {
    return x.is_number() ? x.number().literal.integer : kDynamic;
  };
  Extents shape, steps;
  for (const Operand& extent : extents) shape.push_back(known(extent));
  for (const Operand& stride : strides) steps.push_back(known(stride));
  Operands all = strides;
  if (strides.empty()) {
    steps = Type::view(type_of(pointer).dtype, shape).strides;
    all.assign(extents.size(), 1);
    for (std::size_t i = extents.size(); i-- > 1;) {
      if (steps[i - 1] == kDynamic)
        all[i - 1] = extents[i] * all[i];
      else
        all[i - 1] = steps[i - 1];
    }
  }
  std::vector<ValueId> open;
  for (const Operand& x : extents)
    if (known(x) == kDynamic) open.push_back(index_of(x));
  for (const Operand& x : all)
    if (!x.is_number()) open.push_back(index_of(x));
  const ValueId id =
      build().view(value_of(pointer), Type::view(type_of(pointer).dtype, shape, steps), open);
  return View(Trace::current().checked(id));
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
    if (!x.is_number() && !is_integer(type_of(x).dtype)) return value_of(x);
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
                std::source_location where) {
  const Trace::Line line(where);
  Trace::current().while_loop([&] { return truth(Operand(condition(), where)); }, body);
}

// ------------------------------------------------------------------------------------- kernels

Param number(std::string name, DType dtype) {
  return {std::move(name), Type::scalar(dtype)};
}

Param pointer(std::string name, DType dtype) {
  return {std::move(name), Type::pointer(dtype)};
}

Param view(std::string name, DType dtype, Extents shape) {
  return {std::move(name), Type::view(dtype, std::move(shape))};
}

Param view(std::string name, DType dtype, Extents shape, Extents strides) {
  return {std::move(name), Type::view(dtype, std::move(shape), std::move(strides))};
}

namespace detail {

Expected<Kernel> trace(std::string name, const std::vector<Param>& params,
                       const std::vector<Formal>& formals, const Call& call,
                       const std::source_location& where) {
  Trace trace(std::move(name));
  return trace.run([&](Builder& builder) {
    std::vector<ValueId> ids;
    {
      const Trace::Line line(where);
      if (params.size() != formals.size()) {
        trace.fail("tile-param", fmt::format("{} parameters are named", params.size()),
                   fmt::format("the body takes {}", formals.size()));
      }
      for (std::size_t i = 0; i < params.size(); ++i) {
        const auto& [kind, known] = formals[i];
        const std::optional<Type>& type = params[i].type ? params[i].type : known;
        const auto mistake = type ? type_mistake(*type) : std::optional<std::string>("a type");
        if (mistake) trace.fail("tile-param", "parameter " + params[i].name, *mistake);
        const bool taken = known ? *known == *type : (kind == Type::Kind::View) == type->is_view();
        if (!taken) {
          trace.fail(
              "tile-param", fmt::format("parameter {} is {}", params[i].name, to_string(*type)),
              known
                  ? "the body takes " + to_string(*known)
                  : fmt::format("the body takes a {}", kind == Type::Kind::View ? "View" : "Val"));
        }
        ids.push_back(trace.checked(builder.param(*type, params[i].name)));
      }
    }
    call(ids);
  });
}

}  // namespace detail

std::vector<Argument> fitted(const Kernel& kernel, std::vector<Argument> arguments) {
  for (std::size_t i = 0; i < arguments.size() && i < kernel.params().size(); ++i) {
    const Type& asked = kernel.type(kernel.params()[i]);
    Argument& given = arguments[i];
    if (!asked.is_number() || !given.type.is_number()) continue;
    if (is_float(given.type.dtype) && is_float(asked.dtype)) {
      given = Argument::number(asked.dtype, given.literal.number);
    } else if (!is_float(given.type.dtype) &&
               (is_float(asked.dtype) || fits(asked.dtype, given.literal.integer))) {
      given = Argument::integer(asked.dtype, given.literal.integer);
    }
  }
  return arguments;
}

}  // namespace tessera::tile
