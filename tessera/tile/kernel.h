#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/tile/type.h"

namespace tessera::tile {

using ValueId = std::uint32_t;
using OpId = std::uint32_t;

/// What an operation is. `in` are its operands, `out` its results; the fields that an operation
/// does not name are empty. docs/tile.md says what each means.
enum class Code : std::uint8_t {
  // the grid of programs
  Pid,   // () -> i64             ints {axis}: which program this is
  Npid,  // () -> i64             ints {axis}: how many there are
  // making tiles
  Const,      // () -> scalar or tile   literal, in every element
  Iota,       // () -> integer[n]       0, 1, … n-1
  Broadcast,  // (x) -> tile            a scalar, or a tile of the same rank with extents 1
  Reshape,    // (x) -> tile or scalar  the same elements, row by row
  Permute,    // (x) -> tile            ints: result axis i is operand axis ints[i]
  Concat,     // (x…) -> tile           ints {axis}
  Slice,      // (x) -> tile            ints: where it begins on each axis
  // element by element
  Map,      // (x…) -> like the operands   function; compares give bool, select takes (bool, x, x)
  Cast,     // (x) -> same shape           rounds to nearest even; to an integer: towards zero,
            // saturates
  Bitcast,  // (x) -> same shape, same width
  // along an axis
  Reduce,  // (x…) -> without the axis     ints {axis}; function, or a region (left…, right…)
  Scan,    // (x…) -> same shape           ints {axis, reverse}; function, or a region
  Gather,  // (x, index) -> like index     ints {axis}: x at index along the axis
  // matrices
  Dot,  // (a[m,k], b[k,n], c[m,n]) -> like c    a·b + c in the type of c
  // memory
  Offset,  // (pointer, integer) -> pointer, element by element; in elements
  Load,    // (pointer [, mask [, other]]) -> numbers; other, or 0, where the mask is false
  Store,   // (pointer, x [, mask])
  View,    // (pointer, extent…, stride…) -> view   those that the type leaves open, in order
  Dim,     // (view) -> i64                ints {axis}
  Stride,  // (view) -> i64                ints {axis}
  Base,    // (view) -> pointer
  Vload,   // (view, at…) -> tile          literal out of the view's bounds
  Vstore,  // (view, at…, x)               what is out of bounds is dropped
  Atomic,  // (pointer, x [, mask]) -> what was there    function: add min max and or xor, or
           // exchange
  Cas,     // (pointer, expected, x) -> what was there
  // control; a region ends with a Yield
  For,  // (from, to, step, x…) -> x…     region (i, x…) yields the next x…; ints {stages, unroll}
  While,  // (x…) -> x…                     regions: (x…) yields bool; (x…) yields the next x…
  If,     // (bool) -> x…                   regions: () yields x…, otherwise
  Yield,  // (x…)
  // facts and debugging
  Assume,   // (bool): holds, or the program is wrong
  Hint,     // (x) -> x    text: multiple_of, max_contiguous or max_constancy; ints: one per axis
  Assert,   // (bool or bool tile)          text; checked in debug mode and by the interpreter
  Print,    // (x…)                         text
  Barrier,  // what was stored before is seen by what is loaded after
};

/// The functions of Map, Reduce, Scan and Atomic. A float min or max passes over NaN; minimum and
/// maximum hand it on.
enum class Function : std::uint8_t {
  None,
  // of one argument
  Neg,
  Abs,
  Exp,
  Exp2,
  Log,
  Log2,
  Sin,
  Cos,
  Tanh,
  Erf,
  Sqrt,
  Rsqrt,
  Sigmoid,
  Floor,
  Ceil,
  Round,  // ties to even
  Not,    // bits; of a bool, the truth
  // of two
  Add,
  Sub,
  Mul,
  Div,  // integers: towards zero; by zero: 0, and so is the remainder
  Rem,  // the sign of the dividend
  Min,
  Max,
  Minimum,
  Maximum,
  And,
  Or,
  Xor,
  Shl,  // by the width or more: 0
  Shr,  // of a signed number: copies of the sign
  Pow,
  MulHi,  // the upper half of an integer product
  Equal,
  NotEqual,
  Less,
  LessEqual,
  Greater,
  GreaterEqual,
  // of three
  Fma,
  Select,
  // of an atomic
  Exchange,
};

std::string_view to_string(Code code);
std::optional<Code> parse_code(std::string_view name);
std::string_view to_string(Function function);
std::optional<Function> parse_function(std::string_view name);
/// How many operands a Map of it has.
int arity(Function function);
bool is_compare(Function function);

/// A number of some dtype: floats in `number`, integers and bools in `integer`.
struct Literal {
  double number = 0;
  std::int64_t integer = 0;
  bool operator==(const Literal&) const = default;
};

/// The line of a program or of a text that an operation comes from.
struct Source {
  std::string file = {};
  int line = 0;
  bool operator==(const Source&) const = default;
};

/// Operations in order, and the values that they are given.
struct Region {
  std::vector<ValueId> params = {};
  std::vector<OpId> ops = {};
};

struct Operation {
  Code code = Code::Yield;
  Function function = Function::None;
  std::vector<ValueId> in = {}, out = {};
  std::vector<std::int64_t> ints = {};
  Literal literal = {};
  std::string text = {};
  std::vector<Region> regions = {};
  Source source = {};
};

struct Value {
  Type type = {};
  std::string name = {};  // for people; may be empty, need not be unique
};

/// A tile program: what one program of a grid does. A value; ids are indices. Operations may lie
/// unused in `ops`: the program is what `body` reaches. What touches memory happens in order.
struct Kernel {
  std::string name = {};
  std::vector<Value> values = {};
  std::vector<Operation> ops = {};
  Region body = {};  // its params are the arguments; no Yield at its end

  const Type& type(ValueId id) const { return values[id].type; }
  const std::vector<ValueId>& params() const { return body.params; }
};

/// Whether an operation reads or writes memory, or is there for its effect.
bool has_effect(Code code);
bool reads_memory(Code code);
bool writes_memory(Code code);

/// The operation that makes each value, if one does (not a parameter).
std::vector<std::optional<OpId>> definitions(const Kernel& kernel);
/// How many times each value is used, by operations that the body reaches.
std::vector<int> uses(const Kernel& kernel);

/// Calls visit(op id) for every operation that the region reaches, outer before inner, in order.
template <class Visit>
void for_each_op(const Kernel& kernel, const Region& region, const Visit& visit) {
  for (const OpId id : region.ops) {
    visit(id);
    for (const Region& inner : kernel.ops[id].regions) for_each_op(kernel, inner, visit);
  }
}

}  // namespace tessera::tile
