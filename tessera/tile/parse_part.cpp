#include "tessera/tile/parse_part.h"

#include <fmt/format.h>

#include <utility>

#include "tessera/tile/type_check.h"

namespace tessera::tile {

Expected<Extents> PartReader::extents() {
  TESSERA_TRY_DONE(lexer.expect("["));
  Extents list;
  while (!lexer.at("]")) {
    if (!list.empty()) TESSERA_TRY_DONE(lexer.expect(","));
    if (lexer.accept("?")) {
      list.push_back(kDynamic);
      continue;
    }
    const Token token = lexer.peek();
    TESSERA_TRY(const std::int64_t extent, lexer.integer("an extent"));
    if (extent < 0)
      return ill_typed(token, fmt::format("{}", extent), "an extent of at least 0, or ?");
    list.push_back(extent);
  }
  lexer.take();
  return list;
}

Expected<Type> PartReader::type() {
  const Token first = lexer.peek();
  Type type;
  if (lexer.accept("view")) type.kind = Type::Kind::View;
  if (!type.is_view() && lexer.accept("*")) type.kind = Type::Kind::Pointer;
  const auto dtype = parse_dtype(lexer.peek().text);
  if (lexer.peek().kind != Token::Kind::Name || !dtype) return lexer.expected("a type");
  type.dtype = *dtype;
  lexer.take();
  if (type.is_view() || lexer.at("[")) {
    TESSERA_TRY(type.shape, extents());
  }
  if (type.is_view()) {
    type.strides.assign(type.shape.size(), kDynamic);
    if (lexer.accept("by")) {
      TESSERA_TRY(type.strides, extents());
    } else if (!type_mistake(type)) {
      type = Type::view(type.dtype, std::move(type.shape));
    }
  }
  if (const auto mistake = type_mistake(type)) {
    return ill_typed(first, "this is not a type of a value", *mistake);
  }
  return type;
}

Expected<Declared> PartReader::declared() {
  Declared declared{.token = lexer.peek()};
  TESSERA_TRY(declared.name, lexer.name("a name"));
  if (lexer.accept(":")) {
    TESSERA_TRY(declared.type, type());
  }
  return declared;
}

bool PartReader::at_number() const {
  const Token& token = lexer.peek();
  return token.kind == Token::Kind::Integer || token.kind == Token::Kind::Float || lexer.at("-") ||
         lexer.at("true") || lexer.at("false");
}

Expected<Number> PartReader::number() {
  Number number{.negative = lexer.accept("-")};
  if (!at_number() || lexer.at("-")) return lexer.expected("a number");
  number.token = lexer.take();
  return number;
}

Expected<Literal> PartReader::literal(const Number& number, DType dtype) const {
  const Token& token = number.token;
  const bool truth = token.kind == Token::Kind::Name;
  if (is_float(dtype) && !truth) return Literal{number.negative ? -token.number : token.number, 0};
  if (dtype == DType::Bool && truth && !number.negative) {
    return Literal{0, token.text == "true" ? 1 : 0};
  }
  const auto integer =
      static_cast<std::int64_t>(number.negative ? 0 - token.integer : token.integer);
  // A u64 has any bits; otherwise the sign must be as written.
  const bool exact = dtype == DType::U64 ? !number.negative || token.integer == 0
                                         : (integer < 0) == (number.negative && integer != 0);
  if (token.kind != Token::Kind::Integer || !exact || !fits(dtype, integer)) {
    return ill_typed(token,
                     fmt::format("{}{} does not fit into {}", number.negative ? "-" : "",
                                 token.text, to_string(dtype)),
                     fmt::format("a number that {} can hold", to_string(dtype)));
  }
  return Literal{0, integer};
}

Expected<std::int64_t> PartReader::integer() {
  if (lexer.accept("true")) return std::int64_t{1};
  if (lexer.accept("false")) return std::int64_t{0};
  return lexer.integer("an integer");
}

Diagnostic PartReader::ill_typed(const Token& token, std::string found,
                                 std::string expected) const {
  return {.id = "tile-type",
          .where = place_of(source(token)),
          .message = std::move(found),
          .note = std::move(expected)};
}

Diagnostic PartReader::unsound(const Token& token, std::string found, std::string expected) const {
  return {.id = "tile-structure",
          .where = place_of(source(token)),
          .message = std::move(found),
          .note = std::move(expected)};
}

}  // namespace tessera::tile
