#include "tessera/expr/lanes.h"

#include <algorithm>
#include <cstring>

#include "tessera/expr/number.h"
#include "tessera/expr/storage.h"
#include "tessera/support/check.h"
#include "tessera/support/half.h"
#include "tessera/support/small_float.h"
#include "tessera/support/tensor.h"

namespace tessera {
namespace {

/// Wraps an integer to the width and signedness of a dtype.
std::int64_t narrowed(DType dtype, std::int64_t value) {
  return dtype == DType::Bool ? (value != 0 ? 1 : 0) : wrapped_to(dtype, value);
}

double rounded(DType dtype, double value) {
  if (is_small(dtype)) return decoded(dtype, encoded(dtype, value));
  switch (dtype) {
    case DType::F16: return to_float(to_half(value));
    case DType::BF16: return to_float(to_bfloat16(value));
    case DType::F32: return static_cast<double>(static_cast<float>(value));
    default: return value;
  }
}

/// Loops over lanes with arguments that vary (step 1) or do not (step 0).
template <class Out, class A, class F>
void map1(Out* out, const A* a, int width, F&& f) {
  for (int lane = 0; lane < width; ++lane) out[lane] = f(a[lane]);
}
template <class Out, class A, class B, class F>
void map2(Out* out, const A* a, bool a_varies, const B* b, bool b_varies, int width, F&& f) {
  if (a_varies && b_varies) {
    for (int lane = 0; lane < width; ++lane) out[lane] = f(a[lane], b[lane]);
  } else if (a_varies) {
    const B fixed = b[0];
    for (int lane = 0; lane < width; ++lane) out[lane] = f(a[lane], fixed);
  } else if (b_varies) {
    const A fixed = a[0];
    for (int lane = 0; lane < width; ++lane) out[lane] = f(fixed, b[lane]);
  } else {
    const Out result = f(a[0], b[0]);
    for (int lane = 0; lane < width; ++lane) out[lane] = result;
  }
}

}  // namespace

template <class T>
Lanes<T>::Lanes(const Setup& setup) : setup_(setup) {
  const Plan& plan = setup.plan;
  const auto lanes = static_cast<std::size_t>(setup.lanes);
  position_.resize(static_cast<std::size_t>(plan.slots));
  within_.resize(static_cast<std::size_t>(plan.slots));
  const std::size_t per_row = lanes / static_cast<std::size_t>(setup.rows);
  if (setup.rows > 1) {
    auto& table = within_[static_cast<std::size_t>(setup.row_axis)];
    table.resize(lanes);
    for (std::size_t lane = 0; lane < lanes; ++lane)
      table[lane] = static_cast<std::int64_t>(lane / per_row);
  }
  std::int64_t inner = 1;
  for (int axis = static_cast<int>(plan.axes.size()) - 1; axis >= std::max(setup.partial, 0);
       --axis) {
    const std::int64_t extent = plan.axes[static_cast<std::size_t>(axis)];
    auto& table = within_[static_cast<std::size_t>(axis)];
    table.resize(lanes);
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      const std::int64_t step = static_cast<std::int64_t>(lane % per_row) / inner;
      table[lane] = axis == setup.partial ? step : step % extent;
    }
    inner *= extent;
  }
  offsets_.resize(lanes);
  valid_.resize(lanes);
  registers_.resize(plan.registers.size());
  accesses_.resize(plan.accesses.size());
  mark(plan.code);
  for (std::size_t i = 0; i < registers_.size(); ++i) {
    const std::size_t size = registers_[i].varies ? lanes : 1;
    if (plan.registers[i] == Sort::Value)
      registers_[i].values.resize(size);
    else
      registers_[i].integers.resize(size);
  }
  for (std::size_t i = 0; i < accesses_.size(); ++i) {
    accesses_[i].offset = relative(plan.accesses[i].offset);
    for (const Access::Checked& checked : plan.accesses[i].checked)
      accesses_[i].checked.push_back(relative(checked.at));
    accesses_[i].varies = varies(plan.accesses[i]);
  }
}

/// Marks the registers that vary over the lanes; returns whether any of this code does.
template <class T>
bool Lanes<T>::mark(const Code& code) {
  bool any = false;
  for (const Instruction& instruction : code) {
    bool vary = false;
    for (const int arg : instruction.args) vary = vary || reg(arg).varies;
    switch (instruction.kind) {
      case Instruction::Kind::Index:
        vary = !within_[static_cast<std::size_t>(instruction.which)].empty();
        break;
      case Instruction::Kind::Read:
        vary = varies(setup_.plan.accesses[static_cast<std::size_t>(instruction.which)]);
        break;
      case Instruction::Kind::Fold: {
        const FoldPlan& fold = setup_.plan.folds[static_cast<std::size_t>(instruction.which)];
        vary = mark(fold.body);
        for (const int lift : fold.lift) vary = vary || reg(lift).varies;
        for (const int init : fold.init) vary = vary || reg(init).varies;
        for (const FoldPlan::Loop& loop : fold.loops)
          vary = vary || (loop.extent_reg >= 0 && reg(loop.extent_reg).varies);
        for (const auto* list : {&fold.left, &fold.right, &fold.results})
          for (const int number : *list) reg(number).varies = vary;
        mark(fold.combine);
        break;
      }
      default: break;
    }
    if (instruction.out >= 0) reg(instruction.out).varies = vary;
    any = any || vary;
  }
  return any;
}

template <class T>
bool Lanes<T>::varies(const Access& access) const {
  const auto moves = [&](const AffinePosition& affine) {
    return std::ranges::any_of(affine.terms, [&](const AffinePosition::Term& term) {
      return !within_[static_cast<std::size_t>(term.variable)].empty();
    });
  };
  if (moves(access.offset)) return true;
  for (const Access::Checked& checked : access.checked)
    if (moves(checked.at)) return true;
  for (const Access::Computed& computed : access.computed)
    if (reg(computed.reg).varies) return true;
  return access.otherwise >= 0 && reg(access.otherwise).varies;
}

template <class T>
typename Lanes<T>::Relative Lanes<T>::relative(const AffinePosition& affine) const {
  Relative result;
  result.table.resize(static_cast<std::size_t>(setup_.lanes));
  bool moves = false;
  for (const AffinePosition::Term& term : affine.terms) {
    const auto& within = within_[static_cast<std::size_t>(term.variable)];
    if (within.empty()) continue;
    moves = true;
    for (std::size_t lane = 0; lane < within.size(); ++lane)
      result.table[lane] =
          integer::add(result.table[lane], integer::mul(term.factor, within[lane]));
  }
  if (!moves) {
    result.table.clear();
    return result;
  }
  const auto [least, most] = std::ranges::minmax(result.table);
  result.least = least;
  result.most = most;
  result.shape = Relative::Shape::Consecutive;
  for (std::size_t lane = 0; lane < result.table.size(); ++lane)
    if (result.table[lane] != static_cast<std::int64_t>(lane)) {
      result.shape = Relative::Shape::Table;
      break;
    }
  return result;
}

template <class T>
std::int64_t Lanes<T>::uniform_part(const AffinePosition& affine) const {
  std::int64_t sum = affine.base;
  for (const AffinePosition::Term& term : affine.terms)
    sum = integer::add(
        sum, integer::mul(term.factor, position_[static_cast<std::size_t>(term.variable)]));
  return sum;
}

template <class T>
Expected<Done> Lanes<T>::run(int count) {
  count_ = count;
  error_.reset();
  if (!execute(setup_.plan.code)) return *error_;
  return Done{};
}

template <class T>
bool Lanes<T>::execute(const Code& code) {
  for (const Instruction& instruction : code) {
    switch (instruction.kind) {
      case Instruction::Kind::Constant: {
        Register& out = reg(instruction.out);
        if (!out.values.empty())
          out.values[0] = number_of<T>(instruction.number);
        else
          out.integers[0] = instruction.integer;
        break;
      }
      case Instruction::Kind::Index: execute_index(instruction); break;
      case Instruction::Kind::Read:
        if (!execute_read(instruction)) return false;
        break;
      case Instruction::Kind::Apply: execute_apply(instruction); break;
      case Instruction::Kind::Convert: execute_convert(instruction); break;
      case Instruction::Kind::Cast: execute_cast(instruction); break;
      case Instruction::Kind::Fold:
        if (!execute_fold(setup_.plan.folds[static_cast<std::size_t>(instruction.which)]))
          return false;
        break;
    }
  }
  return true;
}

template <class T>
void Lanes<T>::execute_index(const Instruction& instruction) {
  Register& out = reg(instruction.out);
  const auto slot = static_cast<std::size_t>(instruction.which);
  const std::int64_t position = position_[slot];
  if (!out.varies) {
    out.integers[0] = position;
    return;
  }
  for (int lane = 0; lane < count_; ++lane)
    out.integers[static_cast<std::size_t>(lane)] =
        position + within_[slot][static_cast<std::size_t>(lane)];
}

/// Whether some of what an access reads may be out of range.
inline bool is_guarded(const Access& access) {
  return !access.checked.empty() || !access.computed.empty();
}

template <class T>
bool Lanes<T>::locate(const Access& access, const AccessState& state, int width) {
  const std::int64_t base = uniform_part(access.offset);
  for (int lane = 0; lane < width; ++lane)
    offsets_[static_cast<std::size_t>(lane)] =
        state.offset.table.empty()
            ? base
            : integer::add(base, state.offset.table[static_cast<std::size_t>(lane)]);
  if (is_guarded(access)) std::fill_n(valid_.begin(), width, std::uint8_t{1});
  // Whether an index out of range is allowed: the lane is inactive, or the access has an `else`.
  const auto pardoned = [&](int lane) {
    return access.otherwise >= 0 ||
           (active_ != nullptr && width > 1 && (*active_)[static_cast<std::size_t>(lane)] == 0);
  };
  const auto out_of_range = [&](int axis, std::int64_t at, std::int64_t size) {
    error_ = Diagnostic{
        .id = "eval-index",
        .message = fmt::format("index {} is out of range for axis {} of {}", at, axis,
                               setup_.operands[static_cast<std::size_t>(access.operand)].name),
        .note = fmt::format("the axis has size {}", size)};
    return false;
  };
  for (std::size_t i = 0; i < access.checked.size(); ++i) {
    const Access::Checked& checked = access.checked[i];
    const Relative& moves = state.checked[i];
    const std::int64_t start = uniform_part(checked.at);
    for (int lane = 0; lane < width; ++lane) {
      const std::int64_t at =
          moves.table.empty() ? start
                              : integer::add(start, moves.table[static_cast<std::size_t>(lane)]);
      if (at >= 0 && at < checked.size) continue;
      if (!pardoned(lane)) return out_of_range(checked.axis, at, checked.size);
      valid_[static_cast<std::size_t>(lane)] = 0;
    }
  }
  for (const Access::Computed& computed : access.computed) {
    const Register& index = reg(computed.reg);
    for (int lane = 0; lane < width; ++lane) {
      const std::int64_t at = index.integers[index.varies ? static_cast<std::size_t>(lane) : 0];
      if (at >= 0 && at < computed.size) {
        offsets_[static_cast<std::size_t>(lane)] += at * computed.stride;
        continue;
      }
      if (!pardoned(lane)) return out_of_range(computed.axis, at, computed.size);
      valid_[static_cast<std::size_t>(lane)] = 0;
    }
  }
  return true;
}

template <class T>
bool Lanes<T>::execute_read(const Instruction& instruction) {
  const Access& access = setup_.plan.accesses[static_cast<std::size_t>(instruction.which)];
  const AccessState& state = accesses_[static_cast<std::size_t>(instruction.which)];
  Register& out = reg(instruction.out);
  const int width = this->width(out);
  if (!locate(access, state, width)) return false;
  const bool guarded = is_guarded(access);
  const ConstArray& array = setup_.inputs[static_cast<std::size_t>(access.operand)];
  const auto fill = [&](auto& elements, auto&& element, const auto& otherwise) {
    if (!guarded) {
      for (int lane = 0; lane < width; ++lane)
        elements[static_cast<std::size_t>(lane)] =
            element(offsets_[static_cast<std::size_t>(lane)]);
      return;
    }
    for (int lane = 0; lane < width; ++lane) {
      const auto l = static_cast<std::size_t>(lane);
      if (valid_[l] != 0)
        elements[l] = element(offsets_[l]);
      else
        elements[l] = otherwise.empty() ? std::decay_t<decltype(elements[l])>{}
                                        : otherwise[otherwise.size() == 1 ? 0 : l];
    }
  };
  const Register none;
  const Register& otherwise = access.otherwise >= 0 ? reg(access.otherwise) : none;
  if (!out.values.empty()) {
    if (array.lifted)
      fill(
          out.values, [&](std::int64_t at) { return load<T>(array.data, at); }, otherwise.values);
    else
      with_float_storage(array.dtype, [&](auto tag) {
        fill(
            out.values,
            [&](std::int64_t at) {
              const auto element = as_float(load<decltype(tag)>(array.data, at));
              if constexpr (std::is_floating_point_v<T>)
                return static_cast<T>(element);
              else
                return number_of<T>(static_cast<double>(element));
            },
            otherwise.values);
      });
  } else {
    with_integer_storage(array.dtype, [&](auto tag) {
      fill(
          out.integers,
          [&](std::int64_t at) {
            return static_cast<std::int64_t>(load<decltype(tag)>(array.data, at));
          },
          otherwise.integers);
    });
  }
  return true;
}

template <class T>
void Lanes<T>::execute_apply(const Instruction& instruction) {
  Register& out = reg(instruction.out);
  if (instruction.fn == Fn::Select) {
    const Register &condition = reg(instruction.args[0]), &then = reg(instruction.args[1]),
                   &other = reg(instruction.args[2]);
    const int width = this->width(out);
    const auto choose = [&](auto& into, const auto& a, const auto& b) {
      for (int lane = 0; lane < width; ++lane) {
        const auto l = static_cast<std::size_t>(lane);
        const bool holds = condition.integers[condition.varies ? l : 0] != 0;
        into[l] = holds ? a[then.varies ? l : 0] : b[other.varies ? l : 0];
      }
    };
    if (!out.values.empty())
      choose(out.values, then.values, other.values);
    else
      choose(out.integers, then.integers, other.integers);
    return;
  }
  if (!reg(instruction.args[0]).values.empty())
    apply_values(instruction, out);
  else
    apply_integers(instruction, out);
}

template <class T>
void Lanes<T>::apply_values(const Instruction& instruction, Register& out) {
  const int width = this->width(out);
  const Register& a = reg(instruction.args[0]);
  if (instruction.args.size() == 1) {
    const Fn fn = instruction.fn;
    map1(out.values.data(), a.values.data(), width, [fn](T x) { return apply_unary<T>(fn, x); });
    return;
  }
  const Register& b = reg(instruction.args[1]);
  const auto values = [&](auto&& f) {
    map2(out.values.data(), a.values.data(), a.varies, b.values.data(), b.varies, width, f);
  };
  const auto truths = [&](auto&& f) {
    map2(out.integers.data(), a.values.data(), a.varies, b.values.data(), b.varies, width,
         [&](T x, T y) { return std::int64_t{f(x, y) ? 1 : 0}; });
  };
  switch (instruction.fn) {
    case Fn::Add: return values([](T x, T y) { return x + y; });
    case Fn::Sub: return values([](T x, T y) { return x - y; });
    case Fn::Mul: return values([](T x, T y) { return x * y; });
    case Fn::Div:
      return values([](T x, T y) {
        if constexpr (std::is_integral_v<T>)
          return integer::div(x, y);
        else
          return x / y;
      });
    case Fn::Max: return values([](T x, T y) { return larger(x, y); });
    case Fn::Min: return values([](T x, T y) { return smaller(x, y); });
    case Fn::Equal: return truths([](T x, T y) { return x == y; });
    case Fn::Less: return truths([](T x, T y) { return x < y; });
    case Fn::LessEqual: return truths([](T x, T y) { return x < y || x == y; });
    default: {
      const Fn fn = instruction.fn;
      return values([fn](T x, T y) { return apply_binary<T>(fn, x, y); });
    }
  }
}

template <class T>
void Lanes<T>::apply_integers(const Instruction& instruction, Register& out) {
  using I = std::int64_t;
  const int width = this->width(out);
  const Register& a = reg(instruction.args[0]);
  const bool truth =
      setup_.plan.registers[static_cast<std::size_t>(instruction.args[0])] == Sort::Bool;
  const bool is_unsigned = instruction.integer != 0;
  if (instruction.args.size() == 1) {
    const auto ints = [&](auto&& f) { map1(out.integers.data(), a.integers.data(), width, f); };
    switch (instruction.fn) {
      case Fn::Neg: return ints([](I x) { return integer::sub(0, x); });
      case Fn::Abs:
        return ints([=](I x) { return x < 0 && !is_unsigned ? integer::sub(0, x) : x; });
      case Fn::Not: return ints([=](I x) { return truth ? I{x == 0 ? 1 : 0} : ~x; });
      default: return ints([](I x) { return x; });
    }
  }
  const Register& b = reg(instruction.args[1]);
  const auto ints = [&](auto&& f) {
    map2(out.integers.data(), a.integers.data(), a.varies, b.integers.data(), b.varies, width, f);
  };
  const auto less = [=](I x, I y) {
    return is_unsigned ? integer::word(x) < integer::word(y) : x < y;
  };
  switch (instruction.fn) {
    case Fn::Add: return ints([](I x, I y) { return integer::add(x, y); });
    case Fn::Sub: return ints([](I x, I y) { return integer::sub(x, y); });
    case Fn::Mul: return ints([](I x, I y) { return integer::mul(x, y); });
    case Fn::Div:
      return ints([=](I x, I y) {
        if (!is_unsigned) return integer::div(x, y);
        return y == 0 ? I{0} : integer::wrap(integer::word(x) / integer::word(y));
      });
    case Fn::FloorDiv:
      return ints([=](I x, I y) {
        if (!is_unsigned) return integer::floor_div(x, y);
        return y == 0 ? I{0} : integer::wrap(integer::word(x) / integer::word(y));
      });
    case Fn::Mod:
      return ints([=](I x, I y) {
        if (!is_unsigned) return integer::mod(x, y);
        return y == 0 ? I{0} : integer::wrap(integer::word(x) % integer::word(y));
      });
    case Fn::Pow: return ints([](I x, I y) { return integer::pow(x, y); });
    case Fn::Max: return ints([=](I x, I y) { return less(x, y) ? y : x; });
    case Fn::Min: return ints([=](I x, I y) { return less(y, x) ? y : x; });
    case Fn::Equal: return ints([](I x, I y) { return I{x == y ? 1 : 0}; });
    case Fn::Less: return ints([=](I x, I y) { return I{less(x, y) ? 1 : 0}; });
    case Fn::LessEqual: return ints([=](I x, I y) { return I{less(y, x) ? 0 : 1}; });
    case Fn::And: return ints([](I x, I y) { return x & y; });
    case Fn::Or: return ints([](I x, I y) { return x | y; });
    case Fn::Xor: return ints([](I x, I y) { return x ^ y; });
    case Fn::ShiftLeft: return ints([](I x, I y) { return integer::shift_left(x, y); });
    case Fn::ShiftRight:
      return ints([=](I x, I y) { return integer::shift_right(x, y, is_unsigned); });
    default: TESSERA_CHECK(false, "{} is not a function of integers", to_string(instruction.fn));
  }
}

template <class T>
void Lanes<T>::execute_convert(const Instruction& instruction) {
  Register& out = reg(instruction.out);
  const Register& a = reg(instruction.args[0]);
  const int width = this->width(out);
  const Sort from = setup_.plan.registers[static_cast<std::size_t>(instruction.args[0])];
  if (!out.values.empty()) {
    const bool is_unsigned = from == Sort::Unsigned;
    map1(out.values.data(), a.integers.data(), width,
         [=](std::int64_t x) { return number_of_integer<T>(x, is_unsigned); });
  } else {
    map1(out.integers.data(), a.values.data(), width, [](T x) -> std::int64_t {
      if constexpr (kIsField<T>)
        return integer::wrap(x.word());
      else
        return number_of<std::int64_t>(static_cast<double>(x));
    });
  }
}

template <class T>
void Lanes<T>::execute_cast(const Instruction& instruction) {
  Register& out = reg(instruction.out);
  const Register& a = reg(instruction.args[0]);
  const int width = this->width(out);
  const DType to = instruction.to;
  const Sort from = setup_.plan.registers[static_cast<std::size_t>(instruction.args[0])];
  const auto round = [&](T x) {
    if constexpr (std::is_floating_point_v<T>)
      return static_cast<T>(rounded(to, static_cast<double>(x)));
    else
      return x;  // fields and integers know no rounding
  };
  if (from == Sort::Value && !out.values.empty()) {
    map1(out.values.data(), a.values.data(), width, round);
  } else if (from == Sort::Value) {
    map1(out.integers.data(), a.values.data(), width, [to](T x) -> std::int64_t {
      if (to == DType::Bool) return x == T() ? 0 : 1;
      if constexpr (kIsField<T>) {
        return narrowed(to, integer::wrap(x.word()));
      } else if constexpr (std::is_integral_v<T>) {
        return narrowed(to, x);
      } else {
        const auto number = static_cast<double>(x);
        if (to == DType::U64 && number >= 0x1p63)
          return integer::wrap(number >= 0x1p64 ? ~std::uint64_t{0}
                                                : static_cast<std::uint64_t>(number));
        return narrowed(to, number_of<std::int64_t>(number));
      }
    });
  } else if (!out.values.empty()) {
    const bool is_unsigned = from == Sort::Unsigned;
    map1(out.values.data(), a.integers.data(), width,
         [=](std::int64_t x) { return round(number_of_integer<T>(x, is_unsigned)); });
  } else {
    map1(out.integers.data(), a.integers.data(), width,
         [to](std::int64_t x) { return narrowed(to, x); });
  }
}

template <class T>
bool Lanes<T>::execute_fold(const FoldPlan& fold) {
  for (std::size_t i = 0; i < fold.results.size(); ++i) {
    Register& result = reg(fold.results[i]);
    const Register& init = reg(fold.init[i]);
    const int width = this->width(result);
    for (int lane = 0; lane < width; ++lane) {
      const auto l = static_cast<std::size_t>(lane), from = init.varies ? l : 0;
      if (!result.values.empty())
        result.values[l] = init.values.empty() ? number_of_integer<T>(init.integers[from], false)
                                               : init.values[from];
      else
        result.integers[l] = init.integers[from];
    }
  }
  // In a field, rounding and clamping are hashes: what bounds an extent in numbers does not.
  constexpr std::int64_t kMostSteps = std::int64_t{1} << 20;
  if (kIsField<T> && computed_steps(fold) > kMostSteps) {
    error_ = Diagnostic{.id = "loop-limit",
                        .message = fmt::format("a fold has more than {} steps", kMostSteps)};
    return false;
  }
  if (sums_products(fold)) return sum_of_products(fold);
  return fold_step(fold, 0);
}

/// The number of steps of the loops whose extents are computed.
template <class T>
std::int64_t Lanes<T>::computed_steps(const FoldPlan& fold) const {
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  std::int64_t steps = 1;
  for (const FoldPlan::Loop& loop : fold.loops)
    if (loop.extent_reg >= 0) steps *= std::clamp(extent_of(loop), std::int64_t{1}, kMost / steps);
  return steps;
}

/// The largest extent of a loop in any lane.
template <class T>
std::int64_t Lanes<T>::extent_of(const FoldPlan::Loop& loop) const {
  if (loop.extent_reg < 0) return loop.extent;
  const Register& computed = reg(loop.extent_reg);
  std::int64_t extent = 0;
  for (int lane = 0; lane < width(computed); ++lane)
    extent = std::max(extent, computed.integers[static_cast<std::size_t>(lane)]);
  return extent;
}

/// The loops of a fold from `depth` inwards.
template <class T>
bool Lanes<T>::fold_step(const FoldPlan& fold, std::size_t depth) {
  if (depth == fold.loops.size()) {
    const Mask within = within_bounds(fold);
    const Mask* const outer = active_;
    if (!within.empty()) active_ = &within;
    const bool done = execute(fold.body);
    active_ = outer;
    if (done) take_in(fold, within);
    return done;
  }
  const FoldPlan::Loop& loop = fold.loops[depth];
  const std::int64_t extent = extent_of(loop);
  for (std::int64_t at = 0; at < extent; ++at) {
    if (depth == 0 && stopped()) {
      error_ = Diagnostic{.id = "stopped", .message = "the evaluation was stopped"};
      return false;
    }
    position_[static_cast<std::size_t>(loop.slot)] = at;
    if (!fold_step(fold, depth + 1)) return false;
  }
  return true;
}

/// The lanes in which every axis of a fold is within its own bound.
template <class T>
typename Lanes<T>::Mask Lanes<T>::within_bounds(const FoldPlan& fold) const {
  Mask within;
  for (const FoldPlan::Loop& loop : fold.loops) {
    if (loop.extent_reg < 0 || !reg(loop.extent_reg).varies) continue;
    if (within.empty()) within.assign(static_cast<std::size_t>(count_), 1);
    const std::int64_t at = position_[static_cast<std::size_t>(loop.slot)];
    for (std::size_t lane = 0; lane < within.size(); ++lane)
      if (at >= reg(loop.extent_reg).integers[lane]) within[lane] = 0;
  }
  if (active_ != nullptr && !within.empty())
    for (std::size_t lane = 0; lane < within.size(); ++lane) within[lane] &= (*active_)[lane];
  return within;
}

/// Combines what was lifted into the results, in the lanes that are within their bounds.
template <class T>
void Lanes<T>::take_in(const FoldPlan& fold, const Mask& within) {
  const int width = this->width(reg(fold.results[0]));
  const bool all = within.empty();
  const auto move_into = [&](Register& into, const Register& from, bool masked) {
    for (int lane = 0; lane < width; ++lane) {
      const auto l = static_cast<std::size_t>(lane);
      if (masked && !all && within[l] == 0) continue;
      if (!into.values.empty())
        into.values[l] = from.values[from.varies ? l : 0];
      else
        into.integers[l] = from.integers[from.varies ? l : 0];
    }
  };
  if (fold.simple && all) {
    // In place: result = f(result, lift).
    const bool is_unsigned =
        setup_.plan.registers[static_cast<std::size_t>(fold.results[0])] == Sort::Unsigned;
    const Instruction step{.kind = Instruction::Kind::Apply,
                           .fn = *fold.simple,
                           .out = fold.results[0],
                           .args = {fold.results[0], fold.lift[0]},
                           .integer = is_unsigned ? 1 : 0};
    execute_apply(step);
    return;
  }
  for (std::size_t i = 0; i < fold.results.size(); ++i) {
    move_into(reg(fold.left[i]), reg(fold.results[i]), false);
    move_into(reg(fold.right[i]), reg(fold.lift[i]), false);
  }
  execute(fold.combine);
  for (std::size_t i = 0; i < fold.results.size(); ++i)
    move_into(reg(fold.results[i]), reg(fold.combined[i]), true);
}

template <class T>
std::int64_t Lanes<T>::integer(int number, int lane) const {
  const Register& from = reg(number);
  return from.integers[from.varies ? static_cast<std::size_t>(lane) : 0];
}

template <class T>
void Lanes<T>::store(int number, const MutableArray& into, std::int64_t position,
                     Stretch lanes) const {
  const Register& from = reg(number);
  const int count = lanes.count;
  const auto at = [&](int lane) {
    return from.varies ? static_cast<std::size_t>(lanes.first + lane) : 0;
  };
  if (!from.values.empty() && into.lifted) {
    for (int lane = 0; lane < count; ++lane)
      std::memcpy(into.data + (position + lane) * static_cast<std::int64_t>(sizeof(T)),
                  &from.values[at(lane)], sizeof(T));
    return;
  }
  if constexpr (std::is_floating_point_v<T>) {
    if (!from.values.empty() && into.dtype == DType::F32) {
      auto* const out = reinterpret_cast<float*>(into.data) + position;
      for (int lane = 0; lane < count; ++lane)
        out[lane] = static_cast<float>(from.values[at(lane)]);
      return;
    }
  }
  for (int lane = 0; lane < count; ++lane) {
    if (!from.values.empty()) {
      if constexpr (!kIsField<T>)
        store_number(into.dtype, into.data, position + lane,
                     static_cast<double>(from.values[at(lane)]));
    } else {
      store_integer(into.dtype, into.data, position + lane, from.integers[at(lane)]);
    }
  }
}

template <class T>
void Lanes<T>::write(int number, int lane, std::optional<Fn> combine, const MutableArray& into,
                     std::int64_t position) const {
  const Register& from = reg(number);
  const auto l = from.varies ? static_cast<std::size_t>(lane) : 0;
  const auto combined = [&](auto old, auto update) {
    using V = decltype(old);
    switch (combine.value_or(Fn::Select)) {
      case Fn::Add:
        if constexpr (std::is_same_v<V, std::int64_t>)
          return integer::add(old, update);
        else
          return old + update;
      case Fn::Mul:
        if constexpr (std::is_same_v<V, std::int64_t>)
          return integer::mul(old, update);
        else
          return old * update;
      case Fn::Max: return larger(old, update);
      case Fn::Min: return smaller(old, update);
      default: return update;
    }
  };
  if (from.values.empty()) {
    std::int64_t old = 0;
    with_integer_storage(into.dtype,
                         [&](auto tag) { old = load<decltype(tag)>(into.data, position); });
    const std::int64_t update = from.integers[l];
    std::int64_t result = combined(old, update);
    if (into.dtype == DType::U64 && (combine == Fn::Max || combine == Fn::Min)) {
      const auto a = static_cast<std::uint64_t>(old), b = static_cast<std::uint64_t>(update);
      result = (a < b) == (combine == Fn::Max) ? update : old;
    }
    store_integer(into.dtype, into.data, position, result);
  } else if (into.lifted) {
    const T result = combined(load<T>(into.data, position), from.values[l]);
    std::memcpy(into.data + position * static_cast<std::int64_t>(sizeof(T)), &result, sizeof(T));
  } else if constexpr (!kIsField<T>) {
    T old{};
    with_float_storage(into.dtype, [&](auto tag) {
      old = static_cast<T>(as_float(load<decltype(tag)>(into.data, position)));
    });
    store_number(into.dtype, into.data, position,
                 static_cast<double>(combined(old, from.values[l])));
  }
}

#define TESSERA_INSTANTIATE(T) template class Lanes<T>;
TESSERA_NUMBER_TYPES(TESSERA_INSTANTIATE)
#undef TESSERA_INSTANTIATE

}  // namespace tessera
