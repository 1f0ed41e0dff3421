#include "tessera/support/lexer.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "tessera/support/rng.h"

namespace tessera {
namespace {

std::vector<Token> words(std::string_view text) {
  Lexer lexer(text, "file");
  std::vector<Token> result;
  while (lexer.peek().kind != Token::Kind::End) result.push_back(lexer.take());
  return result;
}

std::string spaced(std::string_view text) {
  std::string result;
  for (const Token& token : words(text)) result += (result.empty() ? "" : " ") + token.text;
  return result;
}

Token only(std::string_view text) {
  const std::vector<Token> all = words(text);
  EXPECT_EQ(all.size(), 1U) << text;
  return all.empty() ? Token{} : all[0];
}

TEST(Lexer, SplitsNamesFromPunctuation) {
  EXPECT_EQ(spaced("a.b#2:%1->x0<=y==z"), "a.b#2 : %1 -> x0 <= y == z");
}

TEST(Lexer, SkipsComments) {
  EXPECT_EQ(spaced("a // b c\n d//e"), "a d");
}

TEST(Lexer, KeepsAnythingInAQuotedName) {
  const Token token = only(R"('a b\'\x01')");
  EXPECT_EQ(token.kind, Token::Kind::Name);
  EXPECT_EQ(token.text, "a b'\x01");
}

TEST(Lexer, NeverTakesAQuotedNameForAKeyword) {
  Lexer lexer("'let' let");
  EXPECT_FALSE(lexer.at("let"));
  lexer.take();
  EXPECT_TRUE(lexer.at("let"));
}

TEST(Lexer, TellsIntegersFromFloats) {
  EXPECT_EQ(only("12").kind, Token::Kind::Integer);
  EXPECT_EQ(only("12.0").kind, Token::Kind::Float);
  EXPECT_EQ(only("1e3").number, 1000.0);
  EXPECT_EQ(only("1e-3").number, 1e-3);
  EXPECT_EQ(only("0x1.8p+3").number, 12.0);
  EXPECT_EQ(only("inf").number, std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(only("nan").number));
  EXPECT_TRUE(only("7u").is_unsigned);
}

TEST(Lexer, ReadsTheOutermostIntegers) {
  Lexer lexer("-9223372036854775808 9223372036854775807 9223372036854775808");
  EXPECT_EQ(*lexer.integer("n"), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(*lexer.integer("n"), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(lexer.integer("n").error().message, "this integer exceeds 64 bits");
}

TEST(Lexer, TakesADotAndADigitForAComponent) {
  EXPECT_EQ(spaced("}.1"), "} . 1");
}

TEST(Lexer, SaysWhereAWordIs) {
  Lexer lexer("a\n  b", "rules.txt");
  lexer.take();
  const Diagnostic diagnostic = lexer.expect("c").error();
  EXPECT_EQ(to_string(diagnostic),
            "rules.txt: line 2:3: error[text-syntax]: found b\n  note: c is expected");
}

TEST(Lexer, ReportsWhatIsNoWord) {
  for (const char* text : {"'open", "\"open", "\"a\\q\"", "1x", "1e999", "`", "\x80",
                           "99999999999999999999", "0x", "1.2.3", "'a\nb'", "\"\\x1\""}) {
    Lexer lexer(text);
    EXPECT_EQ(lexer.peek().kind, Token::Kind::Bad) << text;
    EXPECT_EQ(lexer.name("a name").error().message, lexer.peek().text) << text;
  }
}

TEST(Lexer, BoundsTheNestingOfItsParsers) {
  Lexer lexer("");
  const std::function<int(int)> depth = [&](int level) {
    const Nesting nesting(lexer);
    return nesting.too_deep() ? level : depth(level + 1);
  };
  EXPECT_EQ(depth(0), 200);
  EXPECT_EQ(depth(0), 200);
}

TEST(Lexer, GivesBackAnyQuotedText) {
  Rng rng(7);
  for (int trial = 0; trial < 500; ++trial) {
    std::string text;
    for (std::uint64_t i = rng.below(12); i > 0; --i)
      text += static_cast<char>(rng.below(4) == 0 ? rng.below(256) : 32 + rng.below(95));
    EXPECT_EQ(only(quoted_text(text)).text, text) << "trial " << trial;
    EXPECT_EQ(only(name_text(text)).text, text) << "trial " << trial;
    EXPECT_EQ(only(name_text(text)).kind, Token::Kind::Name) << "trial " << trial;
  }
}

TEST(Lexer, GivesBackAnyFloat) {
  Rng rng(8);
  for (int trial = 0; trial < 1000; ++trial) {
    const double number = std::fabs(std::bit_cast<double>(rng.next()));
    const Token token = only(float_text(number));
    ASSERT_EQ(token.kind, Token::Kind::Float) << float_text(number);
    EXPECT_TRUE(std::isnan(number) || token.number == number);
  }
  EXPECT_EQ(float_text(1), "1.0");
  EXPECT_EQ(float_text(-0.0), "-0.0");
}

}  // namespace
}  // namespace tessera
