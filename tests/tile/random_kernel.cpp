#include "tests/tile/random_kernel.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tessera/support/half.h"
#include "tessera/support/rng.h"
#include "tessera/tile/builder.h"
#include "tessera/tile/text.h"

namespace tessera::testing {
namespace {

using namespace tessera::tile;

constexpr std::int64_t kExtents[] = {1, 2, 3, 4, 5, 7, 8, 13, 16, 17, 31, 32, 33, 64, 100};
constexpr DType kFloatTypes[] = {DType::F32, DType::F32, DType::F64, DType::F16, DType::BF16};
constexpr DType kIntegerTypes[] = {DType::I32, DType::I64, DType::I8, DType::I16,
                                   DType::U32, DType::U64, DType::U8, DType::U16};

/// One element of a buffer, as a double or as the bits of an integer.
double float_at(DType dtype, const std::byte* at) {
  const auto read = [&](auto value) {
    std::memcpy(&value, at, sizeof value);
    return value;
  };
  switch (dtype) {
    case DType::F16: return to_float(read(Half{}));
    case DType::BF16: return to_float(read(BFloat16{}));
    case DType::F32: return read(float{});
    default: return read(double{});
  }
}

void put_float(DType dtype, double number, std::byte* at) {
  const auto write = [&](auto value) { std::memcpy(at, &value, sizeof value); };
  switch (dtype) {
    case DType::F16: return write(to_half(number));
    case DType::BF16: return write(to_bfloat16(number));
    case DType::F32: return write(static_cast<float>(number));
    default: return write(number);
  }
}

class Generator {
 public:
  Generator(std::uint64_t seed, const RandomKernelOptions& options)
      : rng_(seed), options_(options), b_(fmt::format("random_{}", seed)) {}

  RandomKernel generate() {
    for (std::int64_t& count : made_.grid) count = 1 + below(3);
    programs_ = made_.grid[0] * made_.grid[1] * made_.grid[2];
    const ValueId outer = b_.add(b_.pid(1), b_.mul(b_.npid(1), b_.pid(2)));
    program_ = b_.add(b_.pid(0), b_.mul(b_.npid(0), outer));
    scalar_param(DType::I64, 1 + below(40));
    scalar_param(DType::F32, number());
    scalar_param(DType::I32, below(100) - 50);
    values_.push_back(program_);
    steps(options_.steps, 0);
    for (int i = 0; i < 3; ++i) store(any());
    auto kernel = b_.finish();
    EXPECT_TRUE(kernel) << to_string(kernel.error());
    if (kernel) made_.kernel = *std::move(kernel);
    return std::move(made_);
  }

 private:
  // Choices

  std::int64_t below(std::int64_t bound) {
    return static_cast<std::int64_t>(rng_.below(static_cast<std::uint64_t>(bound)));
  }
  bool one_in(std::int64_t n) { return below(n) == 0; }
  template <class List>
  auto one_of(const List& list) {
    return *(std::begin(list) + below(std::ssize(list)));
  }
  double number() { return static_cast<double>(below(65) - 32) / 8; }
  DType float_type() {
    const DType dtype = one_of(kFloatTypes);
    return options_.half || byte_width(dtype) > 2 ? dtype : DType::F32;
  }
  DType dtype() {
    if (one_in(8)) return DType::Bool;
    return one_in(2) ? float_type() : one_of(kIntegerTypes);
  }
  Extents shape(int rank) {
    Extents shape;
    std::int64_t room = options_.most_elements;
    for (int i = 0; i < rank; ++i) {
      std::int64_t extent = one_of(kExtents);
      while (extent > room) extent = (extent + 1) / 2;
      room /= extent;
      shape.push_back(extent);
    }
    return shape;
  }
  Extents shape() { return shape(1 + static_cast<int>(below(3))); }
  Type tile_type() { return Type::tile(dtype(), shape()); }

  // Arguments

  ValueId scalar_param(DType dtype, double value) {
    made_.on_nothing.push_back(Argument::number(dtype, value));
    made_.buffer.push_back({});
    values_.push_back(b_.param(Type::scalar(dtype), fmt::format("n{}", made_.buffer.size())));
    return values_.back();
  }

  /// A parameter for memory of so many elements, filled with small numbers.
  ValueId memory_param(Type type, Argument argument, std::int64_t count) {
    const DType dtype = argument.type.dtype;
    const auto width = static_cast<std::size_t>(byte_width(dtype));
    std::vector<std::byte> bytes(static_cast<std::size_t>(count) * width);
    for (std::size_t at = 0; at < bytes.size(); at += width) {
      if (is_float(dtype)) {
        put_float(dtype, number(), &bytes[at]);
      } else {
        const auto bits = dtype == DType::Bool ? rng_.below(2) : rng_.next();
        std::memcpy(&bytes[at], &bits, width);
      }
    }
    made_.buffer.push_back(made_.memory.size());
    made_.memory.push_back(std::move(bytes));
    made_.on_nothing.push_back(std::move(argument));
    return b_.param(std::move(type), fmt::format("m{}", made_.buffer.size()));
  }

  /// A view of exactly this shape; some of it the type leaves open.
  ValueId view_param(DType dtype, const Extents& shape) {
    Argument argument = Argument::view(dtype, nullptr, shape);
    Type type = argument.type;
    if (one_in(2)) {
      for (std::int64_t& extent : type.shape) {
        if (one_in(2)) extent = kDynamic;
      }
      type = Type::view(dtype, type.shape);
    }
    std::int64_t count = 1;
    for (const std::int64_t extent : shape) count *= extent;
    return memory_param(std::move(type), std::move(argument), count);
  }

  // Values

  ValueId keep(ValueId id) {
    values_.push_back(id);
    return id;
  }
  ValueId any() { return values_[static_cast<std::size_t>(below(std::ssize(values_)))]; }

  /// A value that the predicate holds for, rather a late one; none after some tries.
  template <class Predicate>
  std::optional<ValueId> some(const Predicate& holds) {
    for (int i = 0; i < 20; ++i) {
      const ValueId id = any();
      if (holds(b_.type(id))) return id;
    }
    return {};
  }
  ValueId tile() {
    const auto found = some([](const Type& type) { return type.is_tile(); });
    return found ? *found : load(tile_type());
  }
  /// A value of this type: one that is there, or a new one.
  ValueId of(Type type) {  // by value: the builder moves its types
    if (!one_in(4)) {
      if (const auto found = some([&](const Type& other) { return other == type; })) return *found;
    }
    if (type.is_tile() && one_in(3)) return b_.broadcast(of(type.shaped({})), type.shape);
    if (type.is_tile() && one_in(2)) return load(type);
    return constant(type);
  }
  ValueId constant(Type type) {
    if (is_float(type.dtype)) return b_.constant(type, number());
    if (type.dtype == DType::Bool) return b_.constant(type, Literal{0, below(2)});
    return b_.constant(type, Literal{0, below(100)});
  }
  ValueId of_dtype(ValueId x, DType dtype) {
    return b_.type(x).dtype == dtype ? x : b_.cast(x, dtype);
  }
  ValueId condition() {
    return of_dtype(of(Type::scalar(one_in(2) ? DType::Bool : DType::I32)), DType::Bool);
  }

  /// Small integers as floats: sums and products of them are exact.
  ValueId small(DType dtype, const Extents& shape) {
    const ValueId bytes = load(Type::tile(DType::I8, shape));
    return b_.cast(b_.map(Function::Rem, {bytes, b_.constant(b_.type(bytes), 4.0)}), dtype);
  }

  // Steps

  void steps(int count, int depth) {
    for (int i = 0; i < count; ++i) {
      const std::int64_t kind = below(options_.control && depth < 2 ? 12 : 10);
      if (kind < 4)
        keep(elementwise());
      else if (kind == 4)
        keep(reshaped());
      else if (kind == 5)
        folded();
      else if (kind == 6)
        keep(one_in(2) ? product() : gathered());
      else if (kind == 7)
        keep(one_in(2) ? load(tile_type()) : pointer_load());
      else if (kind == 8)
        one_in(3) ? facts() : store(any());
      else if (kind == 9)
        keep(converted());
      else
        control(depth);
    }
  }

  ValueId elementwise() {
    const ValueId x = one_in(4) ? any() : tile();
    const Type type = b_.type(x);
    const auto binary = [&](Function function) { return b_.map(function, {x, of(type)}); };
    if (one_in(8)) return b_.map(Function::Select, {of(type.of(DType::Bool)), x, of(type)});
    if (type.dtype == DType::Bool) {
      return one_in(4) ? b_.map(Function::Not, {x})
                       : binary(one_of(std::vector{Function::And, Function::Or, Function::Xor,
                                                   Function::Equal, Function::NotEqual}));
    }
    if (one_in(6)) {
      return binary(
          one_of(std::vector{Function::Equal, Function::NotEqual, Function::Less,
                             Function::LessEqual, Function::Greater, Function::GreaterEqual}));
    }
    if (one_in(4)) return b_.map(one_of(std::vector{Function::Neg, Function::Abs}), {x});
    if (one_in(2)) {
      return binary(one_of(std::vector{Function::Add, Function::Sub, Function::Mul, Function::Min,
                                       Function::Max, Function::Minimum, Function::Maximum}));
    }
    if (is_integer(type.dtype)) {
      if (one_in(8)) return b_.map(Function::Not, {x});
      return binary(
          one_of(std::vector{Function::Div, Function::Rem, Function::And, Function::Or,
                             Function::Xor, Function::Shl, Function::Shr, Function::MulHi}));
    }
    if (!options_.exact && one_in(2)) {
      return b_.map(one_of(std::vector{Function::Exp, Function::Exp2, Function::Tanh, Function::Erf,
                                       Function::Sigmoid, Function::Sin, Function::Cos}),
                    {b_.map(Function::Min, {x, b_.constant(type, 4.0)})});
    }
    // At least 1, so that neither the sign of a zero nor a NaN comes in by the divisor.
    const ValueId positive =
        b_.map(Function::Max, {b_.map(Function::Abs, {of(type)}), b_.constant(type, 1.0)});
    if (one_in(3)) return b_.map(Function::Div, {x, positive});
    if (one_in(3)) return b_.map(Function::Sqrt, {positive});
    if (byte_width(type.dtype) > 2 && one_in(3)) {
      return b_.map(Function::Fma, {x, of(type), of(type)});
    }
    return b_.map(one_of(std::vector{Function::Floor, Function::Ceil, Function::Round}), {x});
  }

  ValueId converted() {
    const ValueId x = any();
    const DType from = b_.type(x).dtype;
    if (is_integer(from) && one_in(4)) {
      std::vector<DType> as_wide;
      for (const DType to : kIntegerTypes) {
        if (byte_width(to) == byte_width(from)) as_wide.push_back(to);
      }
      return b_.bitcast(x, one_of(as_wide));
    }
    return b_.cast(x, dtype());
  }

  ValueId reshaped() {
    const ValueId x = tile();
    const Type type = b_.type(x);
    const std::int64_t room = options_.most_elements / type.count();
    const auto axis = below(type.rank());
    const auto at = static_cast<std::size_t>(axis);
    switch (below(6)) {
      case 0: {
        std::vector<std::int64_t> order;
        for (int i = 0; i < type.rank(); ++i) {
          order.insert(order.begin() + below(i + 1), i);
        }
        return b_.permute(x, order);
      }
      case 1: {
        std::vector<std::int64_t> from;
        Extents part;
        for (const std::int64_t extent : type.shape) {
          part.push_back(1 + below(extent));
          from.push_back(below(extent - part.back() + 1));
        }
        return b_.slice(x, from, part);
      }
      case 2: {
        if (room < 2) return x;
        return b_.concat({x, one_in(2) ? x : of(type)}, static_cast<int>(axis));
      }
      case 3: {
        Extents merged = type.shape;  // two axes become one, or one becomes two
        if (type.rank() > 1) {
          merged[0] *= merged[1];
          merged.erase(merged.begin() + 1);
        } else {
          merged.insert(merged.begin() + below(2), 1);
        }
        return b_.reshape(x, merged);
      }
      case 4: {
        Extents column = type.shape;
        column[at] = 1;
        const ValueId part = b_.slice(x, std::vector<std::int64_t>(type.shape.size(), 0), column);
        return b_.broadcast(part, type.shape);
      }
      default: {
        const DType dtype = one_of(kIntegerTypes);
        const std::int64_t count = std::min<std::int64_t>(one_of(kExtents), 100);
        return b_.iota(dtype, count);
      }
    }
  }

  void folded() {
    ValueId x = tile();
    const int axis = static_cast<int>(below(b_.type(x).rank()));
    std::vector<Function> functions = {Function::Min, Function::Max, Function::Minimum,
                                       Function::Maximum};
    const DType dtype = b_.type(x).dtype;
    if (dtype == DType::Bool) functions = {Function::And, Function::Or, Function::Xor};
    if (is_integer(dtype)) {
      functions.insert(functions.end(),
                       {Function::Add, Function::Mul, Function::And, Function::Or, Function::Xor});
    }
    Function function = one_of(functions);
    if (is_float(dtype) && one_in(2)) {
      function = Function::Add;
      if (options_.exact) x = small(dtype, b_.type(x).shape);
    }
    if (one_in(3)) {
      keep(b_.scan(function, x, axis, one_in(2)));
    } else if (one_in(3) && dtype != DType::Bool) {
      greatest(x, axis);
    } else {
      keep(b_.reduce(function, x, axis));
    }
  }

  /// The largest element and where it lies, the first of equal ones: the same in any order.
  void greatest(ValueId x, int axis) {
    const Type type = b_.type(x);
    Extents line(type.shape.size(), 1);
    line[static_cast<std::size_t>(axis)] = type.shape[static_cast<std::size_t>(axis)];
    const ValueId index =
        b_.reshape(b_.iota(DType::I32, line[static_cast<std::size_t>(axis)]), line);
    const auto combine = [&](const std::vector<ValueId>& a, const std::vector<ValueId>& b) {
      const ValueId ties = b_.map(Function::And, {b_.map(Function::Equal, {a[0], b[0]}),
                                                  b_.map(Function::Less, {a[1], b[1]})});
      const ValueId left = b_.map(Function::Or, {b_.map(Function::Greater, {a[0], b[0]}), ties});
      return std::vector{b_.map(Function::Select, {left, a[0], b[0]}),
                         b_.map(Function::Select, {left, a[1], b[1]})};
    };
    // A NaN would make the answer depend on the order.
    const ValueId finite =
        is_float(type.dtype)
            ? b_.map(Function::Select, {b_.map(Function::Equal, {x, x}), x, b_.constant(type, 0.0)})
            : x;
    for (const ValueId id : b_.reduce({finite, b_.broadcast(index, type.shape)}, axis, combine)) {
      keep(id);
    }
  }

  ValueId gathered() {
    const ValueId x = tile();
    const Type type = b_.type(x);
    const auto axis = below(type.rank());
    const std::int64_t extent = type.shape[static_cast<std::size_t>(axis)];
    const Type unsigned_type = Type::tile(DType::U32, type.shape);
    const ValueId wild = of(unsigned_type);
    const ValueId index =
        b_.map(Function::Rem, {wild, b_.constant(unsigned_type, static_cast<double>(extent))});
    return b_.gather(x, one_in(2) ? index : b_.cast(index, DType::I64), static_cast<int>(axis));
  }

  ValueId product() {
    const Extents sizes = shape(2);
    const std::int64_t m = sizes[0], n = sizes[1];
    const std::int64_t most = std::max<std::int64_t>(1, options_.most_elements / std::max(m, n));
    const std::int64_t k = std::min(most, std::int64_t{one_of(kExtents)});
    // One by one, for the arguments of a call are evaluated in any order.
    if (one_in(3)) {
      const ValueId a = of(Type::tile(one_in(2) ? DType::I8 : DType::U8, {m, k}));
      const ValueId b = of(Type::tile(one_in(2) ? DType::I8 : DType::U8, {k, n}));
      return b_.dot(a, b, of(Type::tile(DType::I32, {m, n})));
    }
    const DType dtype = float_type();
    const bool wider = byte_width(dtype) == 2 && one_in(2);
    const auto factor = [&](DType of_type, Extents sizes) {
      return options_.exact ? small(of_type, sizes) : of(Type::tile(of_type, std::move(sizes)));
    };
    const ValueId a = factor(dtype, {m, k}), b = factor(dtype, {k, n});
    return b_.dot(a, b, factor(wider ? DType::F32 : dtype, {m, n}));
  }

  // Memory

  /// From a view of about that shape, at a place that may lie partly outside of it.
  ValueId load(Type type) {
    Extents extents;
    std::vector<ValueId> at;
    for (const std::int64_t extent : type.shape) {
      const std::int64_t size = std::max<std::int64_t>(0, extent + below(5) - 2);
      extents.push_back(size);
      if (one_in(3)) {
        at.push_back(program_);
      } else if (one_in(2)) {
        at.push_back(b_.constant(Type::scalar(DType::I32), Literal{0, below(5) - 2}));
      } else {
        at.push_back(b_.index(0));
      }
    }
    Literal pad;
    if (one_in(3)) pad = literal_of(type.dtype, type.dtype == DType::Bool ? 1 : 7);
    if (is_float(type.dtype) && one_in(4)) pad.number = -INFINITY;
    return b_.vload(view_param(type.dtype, extents), at, type.shape, pad);
  }

  /// The program's stretch of an array, [program * count, …), and whether it lies in the array.
  struct Stretch {
    ValueId pointers, mask;
  };
  Stretch stretch(DType dtype, std::int64_t count, std::int64_t size, std::int64_t reserve) {
    const ValueId memory =
        memory_param(Type::pointer(dtype),
                     Argument::pointer(dtype, nullptr, reserve * byte_width(dtype)), reserve);
    const Type index = Type::tile(DType::I64, {count});
    const ValueId start = b_.mul(program_, b_.index(count));
    const ValueId at = b_.add(b_.broadcast(start, index.shape), b_.iota(DType::I64, count));
    const ValueId mask = b_.map(Function::Less, {at, b_.constant(index, Literal{0, size})});
    return {b_.offset(b_.broadcast(memory, index.shape), at), mask};
  }

  ValueId pointer_load() {
    const std::int64_t count = shape(1)[0];
    const std::int64_t size = std::max<std::int64_t>(1, programs_ * count - below(count + 1));
    const DType dtype = this->dtype();
    const Stretch from = stretch(dtype, count, size, size);
    if (one_in(2)) return b_.load(from.pointers, from.mask);
    return b_.load(from.pointers, from.mask, constant(Type::tile(dtype, {count})));
  }

  void store(ValueId x) {
    const Type type = b_.type(x);
    if (type.rank() == 1 && one_in(2)) {
      const std::int64_t count = type.shape[0];
      const std::int64_t size = std::max<std::int64_t>(1, programs_ * count - below(count + 1));
      const Stretch to = stretch(type.dtype, count, size, size);
      b_.store(to.pointers, x, to.mask);
      if (one_in(3)) keep(b_.load(to.pointers, to.mask));
      return;
    }
    if (is_integer(type.dtype) && byte_width(type.dtype) >= 4 && one_in(4)) {
      const ValueId shared =
          memory_param(Type::pointer(type.dtype),
                       Argument::pointer(type.dtype, nullptr, byte_width(type.dtype)), 1);
      b_.atomic(one_of(std::vector{Function::Add, Function::Max, Function::Xor}),
                type.is_tile() ? b_.broadcast(shared, type.shape) : shared, x);
      return;
    }
    Extents slot = {1}, slots = {programs_};
    std::vector<ValueId> at = {program_};
    for (const std::int64_t extent : type.shape) {
      slot.push_back(extent);
      slots.push_back(std::max<std::int64_t>(0, extent - (one_in(3) ? 1 : 0)));
      at.push_back(b_.index(0));
    }
    const ValueId view = view_param(type.dtype, slots);
    b_.vstore(view, at, b_.reshape(x, slot));
    if (one_in(3)) keep(b_.reshape(b_.vload(view, at, slot), type.shape));
  }

  void facts() {
    switch (below(3)) {
      case 0: b_.assume(b_.map(Function::GreaterEqual, {program_, b_.index(0)})); break;
      case 1: keep(b_.hint(b_.mul(program_, b_.index(16)), "multiple_of", {16})); break;
      default: b_.barrier();
    }
  }

  // Control

  /// Draws steps inside of a region; what they define is not seen outside.
  template <class Body>
  auto inside(const Body& body) {
    const std::size_t outside = values_.size();
    auto results = body();
    values_.resize(outside);
    return results;
  }

  void control(int depth) {
    const int count = 2 + static_cast<int>(below(3));
    std::vector<ValueId> start;
    for (std::int64_t i = below(3); i >= 0; --i) start.push_back(any());
    const auto next_of = [&](const std::vector<ValueId>& carried) {
      return inside([&] {
        values_.insert(values_.end(), carried.begin(), carried.end());
        steps(count, depth + 1);
        std::vector<ValueId> next;
        for (const ValueId id : carried) next.push_back(of(b_.type(id)));
        return next;
      });
    };
    std::vector<ValueId> results;
    switch (below(3)) {
      case 0: {
        const Type type = Type::scalar(one_in(3) ? DType::I32 : DType::I64);
        const ValueId from = constant_index(type, below(3)), to = constant_index(type, below(8));
        const ValueId step = constant_index(type, 1 + below(3));
        results = b_.for_loop(from, to, step, start,
                              [&](ValueId index, const std::vector<ValueId>& carried) {
                                return inside([&] {
                                  keep(index);
                                  return next_of(carried);
                                });
                              });
        break;
      }
      case 1: {
        // The first carried value counts the rounds.
        start.insert(start.begin(), b_.index(0));
        const std::int64_t rounds = below(4);
        results = b_.while_loop(
            start,
            [&](const std::vector<ValueId>& carried) {
              return std::vector{b_.map(Function::Less, {carried[0], b_.index(rounds)})};
            },
            [&](const std::vector<ValueId>& carried) {
              std::vector<ValueId> next = next_of({carried.begin() + 1, carried.end()});
              next.insert(next.begin(), b_.add(carried[0], b_.index(1)));
              return next;
            });
        break;
      }
      default:
        results = b_.if_else(
            condition(), [&] { return next_of(start); }, [&] { return next_of(start); });
    }
    for (const ValueId id : results) keep(id);
  }

  ValueId constant_index(const Type& type, std::int64_t value) {
    return b_.constant(type, Literal{0, value});
  }

  Rng rng_;
  RandomKernelOptions options_;
  Builder b_;
  RandomKernel made_;
  std::int64_t programs_ = 1;
  ValueId program_ = 0;          // its number in the grid
  std::vector<ValueId> values_;  // numbers and tiles that can be used here
};

}  // namespace

std::vector<Argument> RandomKernel::arguments(Memory& on) const {
  std::vector<Argument> arguments = on_nothing;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (buffer[i]) arguments[i].data = on[*buffer[i]].data();
  }
  return arguments;
}

RandomKernel random_kernel(std::uint64_t seed, const RandomKernelOptions& options) {
  return Generator(seed, options).generate();
}

void for_each_random_kernel(std::uint64_t first, int count, const RandomKernelOptions& options,
                            const std::function<void(const RandomKernel&)>& f) {
  for (std::uint64_t seed = first; seed < first + static_cast<std::uint64_t>(count); ++seed) {
    const RandomKernel kernel = random_kernel(seed, options);
    const ::testing::ScopedTrace trace(__FILE__, __LINE__,
                                       fmt::format("seed {}\n{}", seed, to_text(kernel.kernel)));
    f(kernel);
    if (::testing::Test::HasFailure()) return;
  }
}

std::string difference(const RandomKernel& kernel, const Memory& expected, const Memory& found,
                       double tolerance) {
  for (std::size_t i = 0; i < kernel.buffer.size(); ++i) {
    if (!kernel.buffer[i]) continue;
    const DType dtype = kernel.on_nothing[i].type.dtype;
    const auto& a = expected[*kernel.buffer[i]];
    const auto& b = found[*kernel.buffer[i]];
    const auto width = static_cast<std::size_t>(byte_width(dtype));
    for (std::size_t at = 0; at < a.size(); at += width) {
      const std::string place =
          fmt::format("{}[{}]", kernel.kernel.values[kernel.kernel.params()[i]].name, at / width);
      if (!is_float(dtype)) {
        if (std::memcmp(&a[at], &b[at], width) == 0) continue;
        std::uint64_t x = 0, y = 0;
        std::memcpy(&x, &a[at], width);
        std::memcpy(&y, &b[at], width);
        return fmt::format("{}: {:#x} expected, {:#x} found", place, x, y);
      }
      const double x = float_at(dtype, &a[at]), y = float_at(dtype, &b[at]);
      const bool equal = x == y || (std::isnan(x) && std::isnan(y)) ||
                         std::fabs(x - y) <= tolerance * std::max(1.0, std::fabs(x));
      if (!equal) return fmt::format("{}: {} expected, {} found", place, x, y);
    }
  }
  return {};
}

}  // namespace tessera::testing
