#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tessera/support/lexer.h"
#include "tessera/tile/kernel.h"

namespace tessera::tile {

/// A numeric token before it has a type.
struct Number {
  Token token = {};  // true and false are names
  bool negative = false;
};

/// A declaration: a name with the type that is written after it, if any.
struct Declared {
  std::string name = {};
  std::optional<Type> type = {};
  Token token = {};
};

/// Parser of the context-free parts of tile IR text: types, numbers, declarations.
class PartReader {
 public:
  PartReader(std::string_view text, const std::string& file) : lexer(text, file), file_(file) {}

  /// f32  f32[128, 64]  *f32  view f32[?, 64]  view f32[?, 64] by [?, 1]
  Expected<Type> type();
  /// Parses a name, and a type after a colon.
  Expected<Declared> declared();
  /// Whether the next token is a number; true and false are numbers too.
  bool at_number() const;
  Expected<Number> number();
  /// The number as a literal of a dtype; a diagnostic where that cannot hold it.
  Expected<Literal> literal(const Number& number, DType dtype) const;
  Expected<std::int64_t> integer();

  Source source(const Token& token) const { return {file_, token.line}; }
  /// Diagnostics at a token: of a type, and of the structure.
  Diagnostic ill_typed(const Token& token, std::string found, std::string expected) const;
  Diagnostic unsound(const Token& token, std::string found, std::string expected) const;

  Lexer lexer;

 private:
  Expected<Extents> extents();

  std::string file_;
};

}  // namespace tessera::tile
