#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "tessera/support/expected.h"

namespace tessera {

/// Token of a text form.
struct Token {
  enum class Kind : std::uint8_t { End, Name, Integer, Float, String, Punctuation, Bad };

  Kind kind = Kind::End;
  std::string text = {};  // without quotes and escapes; for Bad, the error message
  bool quoted = false;    // was written in quotes: never a keyword
  std::uint64_t integer = 0;
  bool is_unsigned = false;  // an integer written 1u
  double number = 0;         // value of a float or an integer
  int line = 1, column = 1;
};

/// Tokenizer shared by all text forms (graphs, definitions, rules, kernels):
///
///   names        x  #n  %3  conv1.weight  'any name'       (letters, digits, _ . # %)
///   integers     12  12u
///   floats       1.0  1e-5  0x1.8p3  inf  nan
///   strings      "text\n"
///   punctuation  ( ) [ ] { } , : ; . + - * / = < > ! ? @ & | ^ ~ $  -> => := == != <= >= && ||
///   comments     // to the end of the line
///
/// Anything else is a Bad token, which `error` reports wherever the parser stops. The text must
/// outlive the lexer.
class Lexer {
 public:
  explicit Lexer(std::string_view text, std::string file = {});

  /// Defines a named constant: from the next token on, the name is read as this integer.
  void define(std::string name, std::uint64_t value);

  /// Next token, or with `ahead` = 1 the one after it.
  const Token& peek(int ahead = 0) const { return next_[static_cast<std::size_t>(ahead)]; }
  Token take();

  /// Whether the next token is this punctuation or keyword.
  bool at(std::string_view word) const { return is(peek(), word); }
  bool accept(std::string_view word);
  Expected<Done> expect(std::string_view word);

  /// Consumes a token of one kind; `what` names the expected thing in the diagnostic.
  Expected<std::string> name(std::string_view what);
  Expected<std::string> string(std::string_view what);
  /// Integer with an optional sign.
  Expected<std::int64_t> integer(std::string_view what);
  /// Float or integer with an optional sign.
  Expected<double> number(std::string_view what);
  Expected<Done> end();

  /// A `text-syntax` diagnostic at the next token.
  Diagnostic error(const std::string& message, std::string note = {}) const;
  Diagnostic expected(std::string_view what) const;
  /// Location of a token, for diagnostics about its meaning.
  Diagnostic::Where where(const Token& token) const;

  static bool is(const Token& token, std::string_view word);

 private:
  friend class Nesting;

  Token scan();
  void skip_blanks();
  bool more() const { return position_ < text_.size(); }
  char here(std::size_t ahead = 0) const {
    return position_ + ahead < text_.size() ? text_[position_ + ahead] : '\0';
  }
  void scan_name(Token& token);
  void replace_constant(Token& token) const;
  void scan_number(Token& token);
  void scan_quoted(Token& token);
  void scan_punctuation(Token& token);

  std::string_view text_;
  std::string file_;
  std::size_t position_ = 0, line_start_ = 0;
  int line_ = 1, nesting_ = 0;
  std::map<std::string, std::uint64_t> constants_;
  std::array<Token, 2> next_;
};

/// RAII counter of the nesting depth of a recursive-descent parser. A parser that is too deep
/// returns `lexer.error("this is nested too deeply")`.
class Nesting {
 public:
  explicit Nesting(Lexer& lexer) : lexer_(lexer) { ++lexer_.nesting_; }
  ~Nesting() { --lexer_.nesting_; }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;

  bool too_deep() const { return lexer_.nesting_ > kDeepest; }

 private:
  static constexpr int kDeepest = 200;
  Lexer& lexer_;
};

/// Quoted and escaped text that the lexer reads back as a string.
std::string quoted_text(std::string_view text, char quote = '"');

/// Name in the form that the lexer reads back: plain, or in single quotes.
std::string name_text(std::string_view name);

/// Shortest text that parses back to this float, and as a float: `1.0`, `1e-05`, `-inf`.
std::string float_text(double number);

}  // namespace tessera
