#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/support/expected.h"
#include "tessera/triton/module.h"
#include "tessera/triton/scanner.h"

namespace tessera::triton {

/// Maximum nesting of types and operations, and length of a chain of locations.
constexpr int kMostDepth = 200;

/// Integer of a decimal or hexadecimal number with an optional sign; none where the text is
/// anything else.
std::optional<std::int64_t> integer_of(std::string_view text);

/// Reader of the tokens of a TTIR text, and of types. Base of the parser.
class TypeParser {
 public:
  TypeParser(std::string_view text, const std::string& file)
      : tokens_(tokens_of(text)), file_(file) {}

 protected:
  const Token& peek(std::size_t ahead = 0) const {
    return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
  }
  Token take() {
    const Token token = peek();
    if (at_ + 1 < tokens_.size()) ++at_;
    return token;
  }
  bool accept(std::string_view punctuation) {
    if (!peek().is(punctuation)) return false;
    take();
    return true;
  }
  Expected<Done> expect(std::string_view punctuation) {
    if (!accept(punctuation)) return wrong(punctuation);
    return Done{};
  }
  void skip_line() {
    take();
    skip_rest_of_line();
  }
  void skip_rest_of_line() {
    while (peek().kind != Token::Kind::End && !peek().starts_line) take();
  }
  Expected<Done> skip_braces() {
    int depth = 0;
    do {
      if (peek().kind == Token::Kind::End) return wrong("}");
      if (peek().is("{")) ++depth;
      if (peek().is("}")) --depth;
      take();
    } while (depth > 0);
    return Done{};
  }

  Diagnostic wrong(std::string_view expected) const {
    const Token& token = peek();
    return {.id = "ttir-syntax",
            .where = {.file = file_, .item = fmt::format("line {}", token.line)},
            .message = token.kind == Token::Kind::End ? "the text ends here"
                                                      : fmt::format("found '{}'", token.text),
            .note = fmt::format("expected {}", expected)};
  }
  Diagnostic unsupported(const std::string& message) const {
    return {.id = "ttir-unsupported",
            .where = {.file = file_, .item = fmt::format("line {}", peek().line)},
            .message = message};
  }

  /// Whether a type begins here.
  bool at_type() const;
  Expected<Type> parse_type();

  std::vector<Token> tokens_;
  std::string file_;
  std::size_t at_ = 0;
  int depth_ = 0;

 private:
  Expected<Type> parse_tensor();
};

}  // namespace tessera::triton
