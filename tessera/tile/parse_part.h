#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tessera/support/lexer.h"
#include "tessera/tile/kernel.h"

namespace tessera::tile {

/// A number as it is written, before it has a type.
struct Number {
  Token token = {};  // true and false are names
  bool negative = false;
};

/// A name with the type that is written after it, if one is.
struct Declared {
  std::string name = {};
  std::optional<Type> type = {};
  Token token = {};
};

/// Reads the parts of a kernel's text that need no kernel: types, numbers, declarations.
class PartReader {
 public:
  PartReader(std::string_view text, const std::string& file) : lexer(text, file), file_(file) {}

  /// f32  f32[128, 64]  *f32  view f32[?, 64]  view f32[?, 64] by [?, 1]
  Expected<Type> type();
  /// A name, and a type after a colon.
  Expected<Declared> declared();
  /// true and false are numbers too.
  bool at_number() const;
  Expected<Number> number();
  /// The number in a dtype that can hold it.
  Expected<Literal> literal(const Number& number, DType dtype) const;
  Expected<std::int64_t> integer();

  Source source(const Token& token) const { return {file_, token.line}; }
  /// Mistakes at a word: of a type, and of the structure.
  Diagnostic ill_typed(const Token& token, std::string found, std::string expected) const;
  Diagnostic unsound(const Token& token, std::string found, std::string expected) const;

  Lexer lexer;

 private:
  Expected<Extents> extents();

  std::string file_;
};

}  // namespace tessera::tile
