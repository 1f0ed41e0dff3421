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

/// Opcode of a tile operation. `in` are its operands, `out` its results; fields that an operation
/// does not name are empty. docs/tile.md specifies each.
enum class Code : std::uint8_t {
  // the grid of programs
  Pid,   // () -> i64             ints {axis}: program id
  Npid,  // () -> i64             ints {axis}: number of programs
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
  Vload,   // (view, at…) -> tile          `literal` where out of bounds
  Vstore,  // (view, at…, x)               elements out of bounds are dropped
  Atomic,  // (pointer, x [, mask]) -> what was there    function: add min max and or xor, or
           // exchange
  Cas,     // (pointer, expected, x) -> the old value
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
  Barrier,  // stores before it are visible to loads after it
};

/// Scalar functions of Map, Reduce, Scan and Atomic. Float min and max ignore NaN; minimum and
/// maximum propagate it.
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
/// Number of operands of a Map of the function.
int arity(Function function);
bool is_compare(Function function);

/// Constant of some dtype: floats in `number`, integers and bools in `integer`.
struct Literal {
  double number = 0;
  std::int64_t integer = 0;
  bool operator==(const Literal&) const = default;
};

/// Source location of an operation: a line of C++ or of text.
struct Source {
  std::string file = {};
  int line = 0;
  bool operator==(const Source&) const = default;
};

/// A list of operations with its parameters, as in MLIR.
struct Region {
  std::vector<ValueId> params = {};
  std::vector<OpId> ops = {};
};

/// An operation of a kernel: opcode, operands, results, attributes and nested regions.
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

/// An SSA value: the result of an operation or the parameter of a region.
struct Value {
  Type type = {};
  std::string name = {};  // for printing; may be empty, need not be unique
};

/// Compile-time constant of a kernel, such as a tile size.
struct Constant {
  std::string name = {};
  std::int64_t value = 0;
  bool operator==(const Constant&) const = default;
};

/// Requested schedule of the thread block that runs a program on a GPU; what is 0 or Auto, the
/// compiler chooses (tile/gpu/schedule.h). A request that cannot be met is `schedule-illegal`. It
/// changes no results, and CPUs ignore it.
struct BlockRequest {
  /// Producer warps of a warp-specialized block: none, or warps that copy by cp.async or by TMA.
  enum class Producers : std::uint8_t { Auto, None, Async, Tma };

  int stages = 0;  // pipeline stages of loops of matmuls
  int warps = 0;   // that run a program, without producers
  Producers producers = Producers::Auto;

  bool is_empty() const { return *this == BlockRequest{}; }
  bool operator==(const BlockRequest&) const = default;
};
std::string_view to_string(BlockRequest::Producers producers);
std::optional<BlockRequest::Producers> parse_producers(std::string_view name);

/// Tile IR of a kernel (form T): what one program of a grid does, in SSA form with regions. A value
/// type; ids are indices. Operations that `body` does not reach are dead. Memory operations execute
/// in order.
struct Kernel {
  std::string name = {};
  std::vector<Value> values = {};
  std::vector<Operation> ops = {};
  Region body = {};                      // its params are the arguments; no Yield at its end
  std::vector<Constant> constants = {};  // of its text, where their values are substituted
  BlockRequest block = {};

  const Type& type(ValueId id) const { return values[id].type; }
  const std::vector<ValueId>& params() const { return body.params; }
};

/// Whether an operation reads or writes memory, or is there for its effect.
bool has_effect(Code code);
bool reads_memory(Code code);
bool writes_memory(Code code);

/// Operation that defines each value; none for parameters.
std::vector<std::optional<OpId>> definitions(const Kernel& kernel);
/// Number of uses of each value by operations that the body reaches.
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
