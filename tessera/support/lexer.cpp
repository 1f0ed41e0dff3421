#include "tessera/support/lexer.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

namespace tessera {
namespace {

constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
constexpr bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
constexpr bool starts_name(char c) {
  return is_letter(c) || c == '_' || c == '#' || c == '%';
}
constexpr bool continues_name(char c) {
  return starts_name(c) || is_digit(c) || c == '.';
}

constexpr std::string_view kSingles = "()[]{},:;.+-*/=<>!?@&|^~$";
constexpr std::array<std::string_view, 9> kDoubles = {
    "->", "=>", ":=", "==", "!=", "<=", ">=", "&&", "||"};

bool is_float_word(std::string_view word) {
  return word == "inf" || word == "nan";
}

int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

template <class T>
std::errc parse_number(std::string_view text, T& into, auto... how) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into, how...);
  if (error != std::errc()) return error;
  return end == text.data() + text.size() ? std::errc() : std::errc::invalid_argument;
}

std::string shown(const Token& token) {
  switch (token.kind) {
    case Token::Kind::End: return "the text ends here";
    case Token::Kind::Bad: return token.text;
    case Token::Kind::String: return "found " + quoted_text(token.text.substr(0, 40));
    case Token::Kind::Name:
    case Token::Kind::Integer:
    case Token::Kind::Float:
    case Token::Kind::Punctuation: break;
  }
  return "found " + token.text.substr(0, 40);
}

}  // namespace

Lexer::Lexer(std::string_view text, std::string file) : text_(text), file_(std::move(file)) {
  for (Token& token : next_) token = scan();
}

void Lexer::define(std::string name, std::uint64_t value) {
  constants_.insert_or_assign(std::move(name), value);
  for (Token& token : next_) replace_constant(token);
}

void Lexer::replace_constant(Token& token) const {
  if (token.kind != Token::Kind::Name || token.quoted) return;
  const auto found = constants_.find(token.text);
  if (found == constants_.end()) return;
  token.kind = Token::Kind::Integer;
  token.integer = found->second;
  token.number = static_cast<double>(found->second);
}

Token Lexer::take() {
  Token token = std::move(next_[0]);
  next_[0] = std::move(next_[1]);
  next_[1] = scan();
  return token;
}

bool Lexer::is(const Token& token, std::string_view word) {
  return (token.kind == Token::Kind::Punctuation || token.kind == Token::Kind::Name) &&
         !token.quoted && token.text == word;
}

bool Lexer::accept(std::string_view word) {
  if (!at(word)) return false;
  take();
  return true;
}

Expected<Done> Lexer::expect(std::string_view word) {
  if (!accept(word)) return expected(word);
  return Done{};
}

Expected<std::string> Lexer::name(std::string_view what) {
  if (peek().kind != Token::Kind::Name) return expected(what);
  return take().text;
}

Expected<std::string> Lexer::string(std::string_view what) {
  if (peek().kind != Token::Kind::String) return expected(what);
  return take().text;
}

Expected<std::int64_t> Lexer::integer(std::string_view what) {
  const bool negative = accept("-");
  if (peek().kind != Token::Kind::Integer) return expected(what);
  const std::uint64_t magnitude = peek().integer;
  const auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (magnitude > most + (negative ? 1 : 0)) return error("this integer exceeds 64 bits");
  take();
  return static_cast<std::int64_t>(negative ? 0 - magnitude : magnitude);
}

Expected<double> Lexer::number(std::string_view what) {
  const bool negative = accept("-");
  if (peek().kind != Token::Kind::Integer && peek().kind != Token::Kind::Float)
    return expected(what);
  const double magnitude = take().number;
  return negative ? -magnitude : magnitude;
}

Expected<Done> Lexer::end() {
  if (peek().kind != Token::Kind::End) return expected("the end of the text");
  return Done{};
}

Diagnostic Lexer::error(const std::string& message, std::string note) const {
  const Token& token = peek();
  return {.id = "text-syntax",
          .where = where(token),
          .message = token.kind == Token::Kind::Bad ? token.text : message,
          .note = std::move(note)};
}

Diagnostic::Where Lexer::where(const Token& token) const {
  return {.file = file_, .item = fmt::format("line {}:{}", token.line, token.column)};
}

Diagnostic Lexer::expected(std::string_view what) const {
  return error(shown(peek()), fmt::format("{} is expected", what));
}

void Lexer::skip_blanks() {
  while (more()) {
    if (here() == '/' && here(1) == '/') {
      position_ = std::min(text_.find('\n', position_), text_.size());
    } else if (here() == '\n') {
      line_start_ = ++position_;
      ++line_;
    } else if (here() == ' ' || here() == '\t' || here() == '\r') {
      ++position_;
    } else {
      return;
    }
  }
}

Token Lexer::scan() {
  skip_blanks();
  Token token{.line = line_, .column = static_cast<int>(position_ - line_start_) + 1};
  if (!more()) return token;
  const char c = here();
  if (is_digit(c))
    scan_number(token);
  else if (starts_name(c))
    scan_name(token);
  else if (c == '"' || c == '\'')
    scan_quoted(token);
  else
    scan_punctuation(token);
  return token;
}

void Lexer::scan_name(Token& token) {
  const std::size_t start = position_;
  while (continues_name(here())) ++position_;
  token.text = text_.substr(start, position_ - start);
  token.kind = Token::Kind::Name;
  replace_constant(token);
  if (token.kind != Token::Kind::Name || !is_float_word(token.text)) return;
  token.kind = Token::Kind::Float;
  token.number = token.text == "inf" ? std::numeric_limits<double>::infinity()
                                     : std::numeric_limits<double>::quiet_NaN();
}

void Lexer::scan_number(Token& token) {
  const std::size_t start = position_;
  const bool hex = here() == '0' && (here(1) == 'x' || here(1) == 'X');
  const char exponent = hex ? 'p' : 'e';
  while (is_digit(here()) || is_letter(here()) || here() == '.' || here() == '_') {
    const bool signed_next = (here() | 0x20) == exponent && (here(1) == '-' || here(1) == '+');
    position_ += signed_next ? 2 : 1;
  }
  token.text = text_.substr(start, position_ - start);
  std::string_view digits = token.text;
  if (std::ranges::all_of(digits.substr(0, digits.size() - 1), is_digit) &&
      (is_digit(digits.back()) || digits.back() == 'u')) {
    token.is_unsigned = digits.back() == 'u';
    if (token.is_unsigned) digits.remove_suffix(1);
    token.kind = Token::Kind::Integer;
    if (parse_number(digits, token.integer) != std::errc())
      token = {.kind = Token::Kind::Bad,
               .text = "this integer exceeds 64 bits",
               .line = token.line,
               .column = token.column};
    token.number = static_cast<double>(token.integer);
    return;
  }
  token.kind = Token::Kind::Float;
  if (hex) digits.remove_prefix(2);
  const auto format = hex ? std::chars_format::hex : std::chars_format::general;
  const std::errc error = parse_number(digits, token.number, format);
  if (error == std::errc()) return;
  token.kind = Token::Kind::Bad;
  token.text = error == std::errc::result_out_of_range ? "this float is out of range"
                                                       : "this is not a number";
}

void Lexer::scan_quoted(Token& token) {
  const char quote = here();
  const auto bad = [&](std::string why) {
    token.kind = Token::Kind::Bad;
    token.text = std::move(why);
  };
  token.kind = quote == '"' ? Token::Kind::String : Token::Kind::Name;
  token.quoted = true;
  for (++position_; here() != quote; ++position_) {
    if (!more() || here() == '\n') return bad("this quote is not closed");
    if (here() != '\\') {
      token.text += here();
      continue;
    }
    ++position_;
    switch (here()) {
      case 'n': token.text += '\n'; break;
      case 't': token.text += '\t'; break;
      case '\\':
      case '"':
      case '\'': token.text += here(); break;
      case 'x': {
        const int high = hex_digit(here(1)), low = hex_digit(here(2));
        if (high < 0 || low < 0) return bad("\\x takes two hexadecimal digits");
        token.text += static_cast<char>(high * 16 + low);
        position_ += 2;
        break;
      }
      default: return bad("the escapes are \\n \\t \\\\ \\\" \\' and \\xHH");
    }
  }
  ++position_;
}

void Lexer::scan_punctuation(Token& token) {
  const std::string_view two = text_.substr(position_, 2);
  const bool known = kSingles.find(here()) != std::string_view::npos;
  const std::size_t length = std::ranges::count(kDoubles, two) != 0 ? 2 : 1;
  token.kind = known ? Token::Kind::Punctuation : Token::Kind::Bad;
  token.text = known
                   ? std::string(text_.substr(position_, length))
                   : fmt::format("the character {} has no meaning here", quoted_text({&two[0], 1}));
  position_ += length;
}

std::string quoted_text(std::string_view text, char quote) {
  std::string result(1, quote);
  for (const char c : text) {
    if (c == quote || c == '\\') {
      result += '\\';
      result += c;
    } else if (c == '\n') {
      result += "\\n";
    } else if (c == '\t') {
      result += "\\t";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      result += fmt::format("\\x{:02x}", static_cast<unsigned>(c));
    } else {
      result += c;
    }
  }
  return result + quote;
}

std::string name_text(std::string_view name) {
  const bool plain = !name.empty() && starts_name(name[0]) &&
                     std::ranges::all_of(name, continues_name) && !is_float_word(name);
  return plain ? std::string(name) : quoted_text(name, '\'');
}

std::string float_text(double number) {
  if (std::isnan(number)) return std::signbit(number) ? "-nan" : "nan";
  std::string text = fmt::format("{}", number);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

}  // namespace tessera
