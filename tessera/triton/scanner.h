#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::triton {

/// Token of MLIR's text.
struct Token {
  enum class Kind : std::uint8_t {
    End,
    Word,        // identifiers with points: tt.load, array, f32
    Number,      // 12  -3  1.5e+00  0xFF800000
    Value,       // %name  %name#1: `text` without the percent sign
    Symbol,      // @name
    Block,       // ^bb1
    Alias,       // #loc12, #tt.cache_policy
    Type,        // !tt.ptr
    String,      // "text", without quotes and escapes
    Punctuation  // ( ) { } < > [ ] , : = * ->  ({ is two tokens
  };

  Kind kind = Kind::End;
  std::string text = {};
  int line = 1;
  bool starts_line = false;

  bool is(std::string_view punctuation) const {
    return kind == Kind::Punctuation && text == punctuation;
  }
  bool is_word(std::string_view word) const { return kind == Kind::Word && text == word; }
};

/// Tokens of a text, with an End at the end. A character that begins no token is a token of its
/// own.
std::vector<Token> tokens_of(std::string_view text);

}  // namespace tessera::triton
