#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/support/expected.h"
#include "tessera/tile/kernel.h"

namespace tessera::triton {

/// Element types of TTIR. Integers are signless, as in MLIR.
enum class Element : std::uint8_t {
  I1,
  I8,
  I16,
  I32,
  I64,
  F8E4M3FN,
  F8E4M3FNUZ,
  F8E4M3B11FNUZ,
  F8E5M2,
  F8E5M2FNUZ,
  F16,
  BF16,
  F32,
  F64,
};

/// Type of a TTIR value: a number, a pointer, or a tensor of them.
struct Type {
  Element element = Element::I32;
  int pointers = 0;  // levels of indirection: 1 for a pointer to numbers
  std::vector<std::int64_t> shape = {};
  bool is_tensor = false;

  bool is_pointer() const { return pointers > 0; }
  /// The same type with other elements.
  Type of(Element other) const { return {other, pointers, shape, is_tensor}; }
  bool operator==(const Type&) const = default;
};
std::string to_string(const Type& type);

bool is_integer(Element element);
bool is_float8(Element element);
int bit_width(Element element);
/// Element type of tile IR that carries an element.
DType carrier_of(Element element);

/// Attribute of an operation: its text and, where it is a list of integers or one, the integers.
struct Attribute {
  std::string text = {};
  std::vector<std::int64_t> integers = {};
};

/// Number of a constant as it is written: an integer, a float, or the bits of either (0xFF800000).
struct Number {
  enum class Kind : std::uint8_t { Integer, Float, Bits };
  Kind kind = Kind::Integer;
  std::int64_t integer = 0;  // or the bits
  double number = 0;         // of a float
};
/// Constant of arith.constant: one number for every element, or one for each.
using Constant = std::vector<Number>;

struct Block;

/// Region of an operation: blocks, the first of which is its entry.
struct Region {
  std::vector<Block> blocks;
};

/// Branch target with the values for the arguments of its block.
struct Successor {
  std::string label = {};
  std::vector<std::string> arguments = {};
};

/// Operation of TTIR in the printed form, with no knowledge of what it means. Values are named as
/// in the text, the i-th of several results `name#i`.
struct Operation {
  std::string name = {};
  std::vector<std::string> results = {};
  std::vector<std::string> operands = {};
  std::vector<std::string> bindings = {};  // names that `%x = %y` binds: a loop's variables
  /// Words and the number of operands before them: predicates, axes, rounding modes.
  struct Word {
    std::string text = {};
    std::size_t position = 0;
  };
  std::vector<Word> words = {};
  std::vector<std::string> strings = {};
  std::map<std::string, Attribute> attributes = {};
  Constant constant = {};                 // of arith.constant
  std::vector<Type> types = {};           // all that follow a colon, in order
  std::optional<std::size_t> arrow = {};  // index in `types` of the first type of a result
  std::vector<Successor> successors = {};
  std::vector<Region> regions = {};
  tile::Source source = {};

  bool has_word(std::string_view word) const;
  const Attribute* attribute(const std::string& name) const;
};

/// A value with its type: an argument of a function or of a block.
struct Argument {
  std::string name = {};
  Type type = {};
  std::map<std::string, Attribute> attributes = {};
};

struct Block {
  std::string label = {};
  std::vector<Argument> arguments = {};
  std::vector<Operation> ops = {};
};

/// Function of a module: the kernel, or a function that is not inlined.
struct Function {
  std::string name = {};
  bool is_public = false;
  std::vector<Argument> arguments = {};
  std::vector<Type> results = {};
  Region body = {};
  tile::Source source = {};
};

/// Module of Triton's IR (TTIR), as its compiler prints it after the stage `ttir`.
struct Module {
  std::vector<Function> functions = {};
};

/// Parses the printed form of a TTIR module, of Triton 3.4 to 3.9. Diagnostics are `ttir-syntax`,
/// with the line of the text, and `ttir-unsupported` for types that have no counterpart.
Expected<Module> parse_module(std::string_view text, const std::string& file = "ttir");

}  // namespace tessera::triton
