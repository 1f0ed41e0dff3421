#include "tessera/triton/scanner.h"

#include <cctype>

namespace tessera::triton {
namespace {

bool is_digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}
bool is_letter(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_';
}
bool is_name(char c) {
  return is_letter(c) || is_digit(c) || c == '.' || c == '$' || c == '-';
}
int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  const int lower = std::tolower(static_cast<unsigned char>(c));
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  std::vector<Token> scan() {
    std::vector<Token> tokens;
    while (skip_blanks()) {
      Token token{.line = line_, .starts_line = starts_line_};
      starts_line_ = false;
      scan_one(token);
      tokens.push_back(std::move(token));
    }
    tokens.push_back({.line = line_, .starts_line = true});
    return tokens;
  }

 private:
  char here(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }

  /// Whether there is another token.
  bool skip_blanks() {
    while (at_ < text_.size()) {
      if (here() == '\n') {
        ++line_;
        starts_line_ = true;
        ++at_;
      } else if (here() == '/' && here(1) == '/') {
        while (at_ < text_.size() && here() != '\n') ++at_;
      } else if (std::isspace(static_cast<unsigned char>(here())) != 0) {
        ++at_;
      } else {
        return true;
      }
    }
    return false;
  }

  void scan_one(Token& token) {
    const char c = here();
    if (c == '"') return scan_string(token);
    if (is_letter(c)) return scan_name(token, Token::Kind::Word, 0);
    if (c == '%' || c == '@' || c == '^' || c == '#' || c == '!') return scan_sigil(token);
    if (is_digit(c) || (c == '-' && is_digit(here(1)))) return scan_number(token);
    token.kind = Token::Kind::Punctuation;
    std::size_t size = c == '-' && here(1) == '>' ? 2 : 1;
    // A character of several bytes stays whole in diagnostics.
    if (static_cast<unsigned char>(c) >= 0xc0)
      while ((static_cast<unsigned char>(here(size)) & 0xc0) == 0x80) ++size;
    token.text = std::string(text_.substr(at_, size));
    at_ += size;
  }

  void scan_name(Token& token, Token::Kind kind, std::size_t skipped) {
    at_ += skipped;
    const std::size_t first = at_;
    // `x->y` does not occur inside of names, `c-1_i32` does.
    while (at_ < text_.size() && is_name(here()) && !(here() == '-' && here(1) == '>')) ++at_;
    token.kind = kind;
    token.text = std::string(text_.substr(first, at_ - first));
  }

  void scan_sigil(Token& token) {
    switch (here()) {
      case '%':
        scan_name(token, Token::Kind::Value, 1);
        if (here() == '#' && is_digit(here(1))) {
          const std::size_t first = at_++;
          while (is_digit(here())) ++at_;
          token.text += text_.substr(first, at_ - first);
        }
        return;
      case '@':
        if (here(1) == '"') {
          ++at_;
          scan_string(token);
          token.kind = Token::Kind::Symbol;
          return;
        }
        return scan_name(token, Token::Kind::Symbol, 1);
      case '^': return scan_name(token, Token::Kind::Block, 1);
      case '#': return scan_name(token, Token::Kind::Alias, 1);
      default: return scan_name(token, Token::Kind::Type, 1);
    }
  }

  void scan_number(Token& token) {
    const std::size_t first = at_;
    if (here() == '-') ++at_;
    if (here() == '0' && here(1) == 'x') {
      at_ += 2;
      while (hex_digit(here()) >= 0) ++at_;
      // `tensor<0x…` has no hexadecimal digits: the x belongs to the shape.
      if (at_ == first + 2) --at_;
    } else {
      while (is_digit(here())) ++at_;
      if (here() == '.' && is_digit(here(1))) {
        ++at_;
        while (is_digit(here())) ++at_;
      }
      if ((here() == 'e' || here() == 'E') &&
          (is_digit(here(1)) || ((here(1) == '+' || here(1) == '-') && is_digit(here(2))))) {
        at_ += 2;
        while (is_digit(here())) ++at_;
      }
    }
    token.kind = Token::Kind::Number;
    token.text = std::string(text_.substr(first, at_ - first));
  }

  void scan_string(Token& token) {
    token.kind = Token::Kind::String;
    ++at_;
    while (at_ < text_.size() && here() != '"' && here() != '\n') {
      if (here() != '\\') {
        token.text += text_[at_++];
        continue;
      }
      const int high = hex_digit(here(1)), low = hex_digit(here(2));
      if (high >= 0 && low >= 0) {
        token.text += static_cast<char>(high * 16 + low);
        at_ += 3;
      } else {
        token.text += here(1) == 'n' ? '\n' : here(1) == 't' ? '\t' : here(1);
        at_ += 2;
      }
    }
    if (at_ > text_.size()) at_ = text_.size();
    if (here() == '"') ++at_;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool starts_line_ = true;
};

}  // namespace

std::vector<Token> tokens_of(std::string_view text) {
  return Scanner(text).scan();
}

}  // namespace tessera::triton
