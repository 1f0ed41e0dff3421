#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "tessera/support/expected.h"

namespace tessera {

/// One word of a text form.
struct Token {
  enum class Kind : std::uint8_t { End, Name, Integer, Float, String, Punctuation, Bad };

  Kind kind = Kind::End;
  std::string text = {};  // without quotes and escapes; of a Bad one, what is wrong with it
  bool quoted = false;    // a name in quotes is never a keyword
  std::uint64_t integer = 0;
  bool is_unsigned = false;  // an integer written 1u
  double number = 0;         // of a float; of an integer too
  int line = 1, column = 1;
};

/// Splits a text into words, one at a time. All text forms share them:
///
///   names        x  #n  %3  conv1.weight  'any name'       (letters, digits, _ . # %)
///   integers     12  12u
///   floats       1.0  1e-5  0x1.8p3  inf  nan
///   strings      "text\n"
///   punctuation  ( ) [ ] { } , : ; . + - * / = < > ! ? @ & | ^ ~ $  -> => := == != <= >= && ||
///   comments     // to the end of the line
///
/// A word that is none of these is Bad, and `error` reports it wherever the parser stops. The text
/// has to outlive the lexer.
class Lexer {
 public:
  explicit Lexer(std::string_view text, std::string file = {});

  /// The next word, or (`ahead` = 1) the one after it.
  const Token& peek(int ahead = 0) const { return next_[static_cast<std::size_t>(ahead)]; }
  Token take();

  /// Whether the next word is this punctuation or keyword.
  bool at(std::string_view word) const { return is(peek(), word); }
  bool accept(std::string_view word);
  Expected<Done> expect(std::string_view word);

  /// The next word, if it is of the kind; `what` says in the diagnostic what is expected.
  Expected<std::string> name(std::string_view what);
  Expected<std::string> string(std::string_view what);
  /// With an optional sign.
  Expected<std::int64_t> integer(std::string_view what);
  /// A float or an integer, with an optional sign.
  Expected<double> number(std::string_view what);
  Expected<Done> end();

  /// A `text-syntax` diagnostic at the next word.
  Diagnostic error(const std::string& message, std::string note = {}) const;
  Diagnostic expected(std::string_view what) const;
  /// The place of a word, for diagnostics about what it means.
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
  void scan_number(Token& token);
  void scan_quoted(Token& token);
  void scan_punctuation(Token& token);

  std::string_view text_;
  std::string file_;
  std::size_t position_ = 0, line_start_ = 0;
  int line_ = 1, nesting_ = 0;
  std::array<Token, 2> next_;
};

/// One level of a recursive parser, for as long as it lives. A parser that is too deep returns
/// `lexer.error("this is nested too deeply")`.
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

/// Text between quotes, escaped so that the lexer gives it back.
std::string quoted_text(std::string_view text, char quote = '"');

/// A name as the lexer reads it: as it is, or in single quotes.
std::string name_text(std::string_view name);

/// The shortest text that reads as this float, and as a float: `1.0`, `1e-05`, `-inf`.
std::string float_text(double number);

}  // namespace tessera
