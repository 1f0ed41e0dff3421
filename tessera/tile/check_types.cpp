#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>

#include "tessera/tile/infer.h"
#include "tessera/tile/type_check.h"
#include "tessera/tile/verify.h"

namespace tessera::tile {
namespace {

constexpr int kAny = std::numeric_limits<int>::max();

/// Arity of an operation: operands, ints, regions, results; -1 results: as many as its types say.
struct OperandCounts {
  int least_in, most_in, least_ints, most_ints, regions, out;
};

constexpr std::array<OperandCounts, 36> kCounts = {{
    {0, 0, 1, 1, 0, 1},             // pid
    {0, 0, 1, 1, 0, 1},             // npid
    {0, 0, 0, 0, 0, 1},             // const
    {0, 0, 0, 0, 0, 1},             // iota
    {1, 1, 0, 0, 0, 1},             // broadcast
    {1, 1, 0, 0, 0, 1},             // reshape
    {1, 1, 0, kMostAxes, 0, 1},     // permute
    {1, kAny, 1, 1, 0, 1},          // concat
    {1, 1, 0, kMostAxes, 0, 1},     // slice
    {1, 3, 0, 0, 0, 1},             // map
    {1, 1, 0, 0, 0, 1},             // cast
    {1, 1, 0, 0, 0, 1},             // bitcast
    {1, kAny, 1, 1, -1, -1},        // reduce
    {1, kAny, 2, 2, -1, -1},        // scan
    {2, 2, 1, 1, 0, 1},             // gather
    {3, 3, 0, 0, 0, 1},             // dot
    {2, 2, 0, 0, 0, 1},             // offset
    {1, 3, 0, 0, 0, 1},             // load
    {2, 3, 0, 0, 0, 0},             // store
    {1, kAny, 0, 0, 0, 1},          // view
    {1, 1, 1, 1, 0, 1},             // dim
    {1, 1, 1, 1, 0, 1},             // stride
    {1, 1, 0, 0, 0, 1},             // base
    {2, kAny, 0, kMostAxes, 0, 1},  // vload
    {3, kAny, 0, kMostAxes, 0, 0},  // vstore
    {2, 3, 0, 0, 0, 1},             // atomic
    {3, 3, 0, 0, 0, 1},             // cas
    {3, kAny, 0, 2, 1, -1},         // for
    {0, kAny, 0, 0, 2, -1},         // while
    {1, 1, 0, 0, 2, -1},            // if
    {0, kAny, 0, 0, 0, 0},          // yield
    {1, 1, 0, 0, 0, 0},             // assume
    {1, 1, 1, kMostAxes, 0, 1},     // hint
    {1, 1, 0, 0, 0, 0},             // assert
    {0, kAny, 0, 0, 0, 0},          // print
    {0, 0, 0, 0, 0, 0},             // barrier
}};
static_assert(kCounts.size() == static_cast<std::size_t>(Code::Barrier) + 1);

std::string checked_text(const Type& type) {
  return type_mistake(type) ? "a type that is not one" : to_string(type);
}

bool is_bools(const Type& type) {
  return type.is_number() && type.dtype == DType::Bool;
}

bool is_integers(const Type& type) {
  return type.is_number() && is_integer(type.dtype);
}

bool is_index(const Type& type) {
  return type == Type::scalar(DType::I64) || type == Type::scalar(DType::I32);
}

bool has_axis(const Type& type, std::int64_t axis) {
  return axis >= 0 && axis < type.rank();
}

std::string count_text(int least, int most, std::string_view what) {
  const std::string count =
      least == most ? fmt::format("{}", least) : fmt::format("{} to {}", least, most);
  return fmt::format("{} {}{}", count, what, most == 1 ? "" : "s");
}

std::string type_list(const std::vector<Type>& types) {
  std::string text;
  for (const Type& type : types) text += (text.empty() ? "" : ", ") + checked_text(type);
  return text;
}

/// Types of an operation's operands and results, and diagnostics about them.
class OperationTypes {
 public:
  OperationTypes(const Kernel& kernel, const Operation& op) : kernel_(kernel), op_(op) {}

  const Type& in(std::size_t i) const { return kernel_.type(op_.in[i]); }
  const Type& out() const { return kernel_.type(op_.out[0]); }
  /// Element type of the pointers of the first operand.
  Type pointee() const { return Type::tile(in(0).dtype, in(0).shape); }
  std::vector<Type> types(const std::vector<ValueId>& ids) const {
    std::vector<Type> types;
    for (const ValueId id : ids) types.push_back(kernel_.type(id));
    return types;
  }

  /// Diagnostic with the operation and its types, and a note of what was expected. Results are
  /// shown where they do not follow from the operands.
  Diagnostic wrong(std::string expected) const {
    const bool inferred = inferred_types(kernel_, op_).has_value();
    return wrong(std::move(expected), inferred ? std::vector<Type>{} : types(op_.out));
  }

  Diagnostic wrong(std::string expected, const std::vector<Type>& results) const {
    const bool named = op_.code == Code::Map && op_.function != Function::None;
    std::string found = fmt::format("{}({})", named ? to_string(op_.function) : to_string(op_.code),
                                    type_list(types(op_.in)));
    if (!op_.ints.empty()) found += fmt::format(" {{{}}}", fmt::join(op_.ints, ", "));
    if (!results.empty()) found += " -> " + type_list(results);
    return {.id = "tile-type",
            .where = place_of(op_.source),
            .message = found + " does not fit",
            .note = std::move(expected)};
  }

  /// Parameters and yields of a region. That it ends with a Yield is checked by `verify`.
  Expected<Done> check_region(const Region& region, const std::vector<Type>& params,
                              const std::vector<Type>& yields) const {
    if (types(region.params) != params) {
      return wrong(fmt::format("a region of ({}), not of ({})", type_list(params),
                               type_list(types(region.params))));
    }
    const std::vector<Type> yielded = yielded_types(kernel_, region);
    if (yielded != yields) {
      return wrong(fmt::format("a region that yields ({}), not ({})", type_list(yields),
                               type_list(yielded)));
    }
    return Done{};
  }

 protected:
  const Kernel& kernel_;
  const Operation& op_;
};

/// Type rules of the operations, one for each code.
class Checker : private OperationTypes {
 public:
  using OperationTypes::OperationTypes;

  Expected<Done> check() const {
    TESSERA_TRY_DONE(check_counts());
    for (const ValueId id : op_.out) {
      if (auto mistake = type_mistake(kernel_.type(id))) return wrong(*mistake);
    }
    TESSERA_TRY_DONE(check_operands());
    const auto inferred = inferred_types(kernel_, op_);
    if (inferred && *inferred != types(op_.out))
      return wrong("the result is " + type_list(*inferred), types(op_.out));
    return Done{};
  }

 private:
  Expected<Done> check_counts() const {
    const OperandCounts& counts = kCounts[static_cast<std::size_t>(op_.code)];
    const auto operands = std::ssize(op_.in), ints = std::ssize(op_.ints);
    if (operands < counts.least_in || operands > counts.most_in) {
      return wrong(counts.most_in == kAny ? fmt::format("{} or more operands", counts.least_in)
                                          : count_text(counts.least_in, counts.most_in, "operand"));
    }
    if (ints < counts.least_ints || ints > counts.most_ints) {
      return wrong(count_text(counts.least_ints, counts.most_ints, "integer"));
    }
    if (counts.out >= 0 && std::ssize(op_.out) != counts.out) {
      return wrong(count_text(counts.out, counts.out, "result"));
    }
    if (counts.regions >= 0 && std::ssize(op_.regions) != counts.regions) {
      return wrong(count_text(counts.regions, counts.regions, "region"));
    }
    return Done{};
  }

  Expected<Done> check_operands() const {
    switch (op_.code) {
      case Code::Pid:
      case Code::Npid:
        if (op_.ints[0] < 0 || op_.ints[0] > 2) return wrong("axis 0, 1 or 2");
        return Done{};
      case Code::Const: return check_const();
      case Code::Iota:
        if (!out().is_number() || out().rank() != 1 || !is_integer(out().dtype)) {
          return wrong("the result is a tile of integers with one axis");
        }
        if (!fits(out().dtype, out().shape[0] - 1)) return wrong("numbers that the dtype can hold");
        return Done{};
      case Code::Broadcast: return check_broadcast();
      case Code::Reshape:
        if (in(0).is_view() || out().kind != in(0).kind || out().dtype != in(0).dtype ||
            out().count() != in(0).count()) {
          return wrong("as many elements of the same dtype");
        }
        return Done{};
      case Code::Permute: return check_permute();
      case Code::Concat: return check_concat();
      case Code::Slice: return check_slice();
      case Code::Map: return check_map();
      case Code::Cast:
        if (!in(0).is_number() || !out().is_number() || in(0).shape != out().shape) {
          return wrong("numbers, and a result of the same shape");
        }
        return Done{};
      case Code::Bitcast: return check_bitcast();
      case Code::Reduce:
      case Code::Scan: return check_fold();
      case Code::Gather: return check_gather();
      case Code::Dot: return check_dot();
      case Code::Offset:
        if (!in(0).is_pointer() || !is_integers(in(1)) || in(0).shape != in(1).shape) {
          return wrong("pointers and as many integers");
        }
        return Done{};
      case Code::Load: return check_load();
      case Code::Store:
        if (!in(0).is_pointer() || in(1) != pointee())
          return wrong("pointers and what they point to");
        return check_mask(2);
      case Code::View: return check_view();
      case Code::Dim:
      case Code::Stride:
        if (!in(0).is_view() || !has_axis(in(0), op_.ints[0])) return wrong("an axis of a view");
        return Done{};
      case Code::Base:
        if (!in(0).is_view()) return wrong("a view");
        return Done{};
      case Code::Vload:
      case Code::Vstore: return check_view_access();
      case Code::Atomic:
        if (!is_atomic(op_.function)) return wrong("add, min, max, and, or, xor or exchange");
        if (!in(0).is_pointer() || in(1) != pointee())
          return wrong("pointers and what they point to");
        if (op_.function == Function::Exchange ? in(1).dtype == DType::Bool
                                               : !takes(op_.function, in(1).dtype)) {
          return wrong(domain_text(op_.function));
        }
        return check_mask(2);
      case Code::Cas:
        if (!in(0).is_pointer() || in(1) != pointee() || in(2) != in(1) || !is_integers(in(1))) {
          return wrong("pointers to integers, the integers expected there, and the new ones");
        }
        return Done{};
      case Code::For: return check_for();
      case Code::While: return check_while();
      case Code::If: return check_if();
      case Code::Yield: return Done{};
      case Code::Assume:
        if (in(0) != Type::scalar(DType::Bool)) return wrong("one bool");
        return Done{};
      case Code::Hint: return check_hint();
      case Code::Assert:
        if (!is_bools(in(0))) return wrong("a bool or a tile of bools");
        return Done{};
      case Code::Print:
        for (const ValueId id : op_.in) {
          if (!kernel_.type(id).is_number()) return wrong("numbers and tiles of numbers");
        }
        return Done{};
      case Code::Barrier: return Done{};
    }
    return Done{};
  }

  Expected<Done> check_const() const {
    if (!out().is_number()) return wrong("the result is a number or a tile of numbers");
    return check_literal(out().dtype);
  }

  Expected<Done> check_literal(DType dtype) const {
    if (is_float(dtype) || fits(dtype, op_.literal.integer)) return Done{};
    return wrong(
        fmt::format("a number that {} can hold, not {}", to_string(dtype), op_.literal.integer));
  }

  Expected<Done> check_broadcast() const {
    const Type &x = in(0), &result = out();
    bool fits = !x.is_view() && result.is_tile() && x.kind == result.kind &&
                x.dtype == result.dtype && (x.is_scalar() || x.rank() == result.rank());
    for (std::size_t i = 0; fits && i < x.shape.size(); ++i) {
      fits = x.shape[i] == 1 || x.shape[i] == result.shape[i];
    }
    if (!fits) return wrong("a scalar, or a tile of the result's rank with equal extents or 1");
    return Done{};
  }

  Expected<Done> check_permute() const {
    std::vector<std::int64_t> axes = op_.ints;
    std::sort(axes.begin(), axes.end());
    bool each_once = in(0).is_tile() && std::ssize(axes) == in(0).rank();
    for (std::size_t i = 0; each_once && i < axes.size(); ++i) {
      each_once = axes[i] == static_cast<std::int64_t>(i);
    }
    if (!each_once) return wrong("a tile, and each of its axes once");
    return Done{};
  }

  Expected<Done> check_concat() const {
    for (const ValueId id : op_.in) {
      Type part = kernel_.type(id);
      if (!part.is_tile() || !has_axis(part, op_.ints[0]) || part.rank() != in(0).rank()) {
        return wrong("tiles of the same rank that have the axis");
      }
      const auto axis = static_cast<std::size_t>(op_.ints[0]);
      part.shape[axis] = in(0).shape[axis];
      if (part != in(0)) return wrong("tiles that differ along the axis alone");
    }
    return Done{};
  }

  Expected<Done> check_slice() const {
    const Type &x = in(0), &result = out();
    bool inside = x.is_tile() && x.kind == result.kind && x.dtype == result.dtype &&
                  x.rank() == result.rank() && std::ssize(op_.ints) == x.rank();
    for (std::size_t i = 0; inside && i < x.shape.size(); ++i) {
      inside = op_.ints[i] >= 0 && op_.ints[i] <= x.shape[i] - result.shape[i];
    }
    if (!inside) return wrong("a part that lies inside of the tile, one beginning per axis");
    return Done{};
  }

  Expected<Done> check_map() const {
    if (domain_text(op_.function).empty()) return wrong("a function of elements");
    if (std::ssize(op_.in) != arity(op_.function)) {
      return wrong(count_text(arity(op_.function), arity(op_.function), "operand"));
    }
    const bool selects = op_.function == Function::Select;
    if (selects && (!is_bools(in(0)) || in(0).shape != in(1).shape)) {
      return wrong("a bool for every element, then the two to select from");
    }
    const Type& first = in(selects ? 1 : 0);
    for (std::size_t i = selects ? 2 : 1; i < op_.in.size(); ++i) {
      if (in(i) != first) return wrong("operands of equal types");
    }
    if (!first.is_number() || !takes(op_.function, first.dtype)) {
      return wrong(domain_text(op_.function));
    }
    return Done{};
  }

  Expected<Done> check_bitcast() const {
    const Type &x = in(0), &result = out();
    const auto is_address = [](const Type& type) {
      return type.is_pointer() || (type.is_number() && type.dtype == DType::I64);
    };
    if ((x.is_pointer() || result.is_pointer()) && x.shape == result.shape && is_address(x) &&
        is_address(result)) {
      return Done{};
    }
    if (!x.is_number() || !result.is_number() || x.shape != result.shape ||
        byte_width(x.dtype) != byte_width(result.dtype) || x.dtype == DType::Bool ||
        result.dtype == DType::Bool) {
      return wrong(
          "numbers and a result of the same shape whose elements are as wide, or pointers and i64");
    }
    return Done{};
  }

  Expected<Done> check_fold() const {
    for (const ValueId id : op_.in) {
      const Type& x = kernel_.type(id);
      if (!x.is_number() || !has_axis(x, op_.ints[0]) || x.shape != in(0).shape) {
        return wrong("tiles of one shape that have the axis");
      }
    }
    if (op_.code == Code::Scan && op_.ints[1] != 0 && op_.ints[1] != 1) {
      return wrong("reverse is 0 or 1");
    }
    if (op_.function != Function::None) {
      if (!folds(op_.function) || std::ssize(op_.in) != 1 || !op_.regions.empty()) {
        return wrong("one tile with add, mul, min, max, minimum, maximum, and, or, xor");
      }
      if (!takes(op_.function, in(0).dtype)) return wrong(domain_text(op_.function));
      return Done{};
    }
    if (std::ssize(op_.regions) != 1)
      return wrong("a function, or a region that combines elements");
    std::vector<Type> elements;
    for (const ValueId id : op_.in) elements.push_back(kernel_.type(id).shaped({}));
    std::vector<Type> both = elements;
    both.insert(both.end(), elements.begin(), elements.end());
    return check_region(op_.regions[0], both, elements);
  }

  Expected<Done> check_gather() const {
    const Type &x = in(0), &index = in(1);
    bool alike =
        x.is_number() && is_integers(index) && has_axis(x, op_.ints[0]) && x.rank() == index.rank();
    for (std::size_t i = 0; alike && i < x.shape.size(); ++i) {
      alike = x.shape[i] == index.shape[i] || static_cast<std::int64_t>(i) == op_.ints[0];
    }
    if (!alike) return wrong("a tile and integers whose shape differs along the axis alone");
    return Done{};
  }

  Expected<Done> check_dot() const {
    const Type &a = in(0), &b = in(1), &c = in(2);
    for (const Type* type : {&a, &b, &c}) {
      if (!type->is_number() || type->rank() != 2) return wrong("tiles a[m, k], b[k, n], c[m, n]");
    }
    if (a.shape[1] != b.shape[0] || c.shape != Extents{a.shape[0], b.shape[1]}) {
      return wrong("tiles a[m, k], b[k, n], c[m, n]");
    }
    const auto is_byte = [](DType dtype) { return dtype == DType::I8 || dtype == DType::U8; };
    const bool floats = is_float(a.dtype) && a.dtype == b.dtype &&
                        (c.dtype == a.dtype || (is_half(a.dtype) && c.dtype == DType::F32));
    const bool bytes = is_byte(a.dtype) && is_byte(b.dtype) && c.dtype == DType::I32;
    if (!floats && !bytes) {
      return wrong("floats of one type, f16 and bf16 into f32 too, or i8 and u8 into i32");
    }
    return Done{};
  }

  Expected<Done> check_load() const {
    if (!in(0).is_pointer()) return wrong("pointers");
    TESSERA_TRY_DONE(check_mask(1));
    if (op_.in.size() == 3 && in(2) != pointee())
      return wrong("a mask, then what stands in for it");
    return Done{};
  }

  Expected<Done> check_mask(std::size_t position) const {
    if (op_.in.size() > position &&
        (!is_bools(in(position)) || in(position).shape != in(0).shape)) {
      return wrong("a mask of a bool for every pointer");
    }
    return Done{};
  }

  Expected<Done> check_view() const {
    const Type& view = out();
    if (in(0) != Type::pointer(view.dtype) || !view.is_view()) {
      return wrong("a pointer to the elements of the view");
    }
    const auto open = std::count(view.shape.begin(), view.shape.end(), kDynamic) +
                      std::count(view.strides.begin(), view.strides.end(), kDynamic);
    if (std::ssize(op_.in) != open + 1) {
      return wrong(fmt::format(
          "a pointer and {} extents and strides, those that the type leaves open", open));
    }
    return check_indices(1, op_.in.size());
  }

  Expected<Done> check_view_access() const {
    const bool stores = op_.code == Code::Vstore;
    const Type& view = in(0);
    const Type& tile = stores ? kernel_.type(op_.in.back()) : out();
    if (!view.is_view() || !tile.is_number() || tile.dtype != view.dtype ||
        tile.rank() != view.rank()) {
      return wrong("a view, and a tile of its dtype and rank");
    }
    const std::size_t end = op_.in.size() - (stores ? 1 : 0);
    if (static_cast<std::ptrdiff_t>(end) != view.rank() + 1)
      return wrong("an offset for each axis");
    TESSERA_TRY_DONE(check_indices(1, end));
    const bool marks = op_.ints.empty() || std::ssize(op_.ints) == view.rank();
    if (!marks || std::any_of(op_.ints.begin(), op_.ints.end(),
                              [](std::int64_t mark) { return mark != 0 && mark != 1; })) {
      return wrong("inside is 0 or 1 for each axis");
    }
    return stores ? Expected<Done>(Done{}) : check_literal(view.dtype);
  }

  Expected<Done> check_indices(std::size_t first, std::size_t end) const {
    for (std::size_t i = first; i < end; ++i) {
      if (!is_index(in(i))) return wrong("extents, strides and offsets of i64 or i32");
    }
    return Done{};
  }

  Expected<Done> check_carried(std::size_t first) const {
    for (std::size_t i = first; i < op_.in.size(); ++i) {
      if (in(i).is_view()) return wrong("carried values that are numbers or pointers, not views");
    }
    return Done{};
  }

  Expected<Done> check_for() const {
    if (!is_index(in(0)) || in(1) != in(0) || in(2) != in(0)) {
      return wrong("from, to and step of i64, or all of i32");
    }
    TESSERA_TRY_DONE(check_carried(3));
    for (const std::int64_t hint : op_.ints) {
      if (hint < 0) return wrong("stages and unroll of at least 0");
    }
    const std::vector<Type> carried(types({op_.in.begin() + 3, op_.in.end()}));
    std::vector<Type> params = {in(0)};
    params.insert(params.end(), carried.begin(), carried.end());
    return check_region(op_.regions[0], params, carried);
  }

  Expected<Done> check_while() const {
    TESSERA_TRY_DONE(check_carried(0));
    const std::vector<Type> carried = types(op_.in);
    TESSERA_TRY_DONE(check_region(op_.regions[0], carried, {Type::scalar(DType::Bool)}));
    return check_region(op_.regions[1], carried, carried);
  }

  Expected<Done> check_if() const {
    if (in(0) != Type::scalar(DType::Bool)) return wrong("one bool");
    const std::vector<Type> results = types(op_.out);
    for (const Type& type : results) {
      if (type.is_view()) return wrong("results that are numbers or pointers, not views");
    }
    for (const Region& region : op_.regions) TESSERA_TRY_DONE(check_region(region, {}, results));
    return Done{};
  }

  Expected<Done> check_hint() const {
    if (in(0).is_view() || !(in(0).is_pointer() || is_integers(in(0)))) {
      return wrong("integers or pointers");
    }
    if (op_.text != "multiple_of" && op_.text != "max_contiguous" && op_.text != "max_constancy") {
      return wrong("multiple_of, max_contiguous or max_constancy");
    }
    const bool positive = std::all_of(op_.ints.begin(), op_.ints.end(),
                                      [](std::int64_t value) { return value >= 1; });
    if (!positive || std::ssize(op_.ints) != std::max(in(0).rank(), 1)) {
      return wrong("a number of at least 1 for each axis");
    }
    return Done{};
  }
};

}  // namespace

Expected<Done> check_types(const Kernel& kernel, const Operation& op) {
  return Checker(kernel, op).check();
}

}  // namespace tessera::tile
