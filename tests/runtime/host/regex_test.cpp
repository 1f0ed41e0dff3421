#include "tessera/runtime/host/regex.h"

#include "tests/runtime/host/call.h"

namespace tessera::host {
namespace {

bool matches(std::string_view pattern, std::string_view text) {
  const auto regex = Regex::parse(pattern);
  if (!regex) {
    ADD_FAILURE() << pattern << ": " << to_string(regex.error());
    return false;
  }
  return regex->matches(text);
}

struct Example {
  std::string_view pattern, text;
  bool expected;
};

TEST(Regex, MatchesTheWholeText) {
  const Example examples[] = {
      {"abc", "abc", true},
      {"abc", "abcd", false},
      {"", "", true},
      {"", "a", false},
      {"a|bc|", "bc", true},
      {"a|bc|", "", true},
      {"a|bc|", "b", false},
      {"a*b+c?", "aaabbb", true},
      {"a*b+c?", "aaa", false},
      {"(ab)*", "ababab", true},
      {"(ab)*", "aba", false},
      {"(a*)*", "aaaa", true},
      {"(a|b)*?abb", "abaabb", true},
      {"a{2,3}", "a", false},
      {"a{2,3}", "aaa", true},
      {"a{2,3}", "aaaa", false},
      {"a{2}", "aa", true},
      {"a{2,}", "aaaaa", true},
      {"a{0}", "", true},
      {"a{0}", "a", false},
      {"a{,2}", "a{,2}", true},
      {".", "\n", false},
      {"(?s).", "\n", true},
      {".", "€", true},
      {".", "\xFF", false},
      {"[a-cx]+", "abcx", true},
      {"[^a-c]", "b", false},
      {"[^a-c]", "ü", true},
      {"[]a]+", "]a", true},
      {"[a-]+", "-a", true},
      {"[[:digit:][:alpha:]]+", "a1B", true},
      {"[[:^digit:]]", "1", false},
      {R"(\d{3}-\w+\s\S)", "123-ab_9 x", true},
      {R"(\D\W)", "a!", true},
      {R"(\x41\x{20AC}\.\n)", "A€.\n", true},
      {R"([\]\-\\]+)", R"(]-\)", true},
      {"^abc$", "abc", true},
      {"a^b", "ab", false},
      {R"(foo\b.*)", "foo bar", true},
      {R"(foo\b.*)", "foobar", false},
      {R"(foo\B.*)", "foobar", true},
      {"(?i)abc[x-z]ü", "aBCYÜ", true},
      {"(?i:a)b", "Ab", true},
      {"(?i:a)b", "AB", false},
      {"((?i)a)b", "AB", false},
      {"(?i)[^a]", "A", false},
      {"(?P<year>[0-9]{4})", "1999", true},
      {"(?:a|b){2}c", "bac", true},
      {R"((\W|^)[\w.\-]{0,25}@(yahoo|gmail)\.com(\W|$))", "account@gmail.com", true},
      {R"((\W|^)[\w.\-]{0,25}@(yahoo|gmail)\.com(\W|$))", "not email", false},
  };
  for (const Example& example : examples)
    EXPECT_EQ(matches(example.pattern, example.text), example.expected)
        << example.pattern << " on " << example.text;
}

TEST(Regex, TakesLinearTimeOnPatternsThatDefeatBacktracking) {
  const std::string text(20'000, 'a');
  EXPECT_FALSE(matches("(a*)*b", text));
  EXPECT_FALSE(matches("(a|aa)+$b", text));
  EXPECT_FALSE(matches("(a?){50}a{50}", text));
}

TEST(Regex, RefusesBadPatterns) {
  const auto refusal = [](std::string_view pattern) {
    const auto regex = Regex::parse(pattern);
    return regex ? std::string("accepted") : regex.error().message;
  };
  EXPECT_EQ(refusal("(a"), "a ( without its )");
  EXPECT_EQ(refusal("a)"), "a ) without its (");
  EXPECT_EQ(refusal("[a"), "a [ without its ]");
  EXPECT_EQ(refusal("[z-a]"), "a range of characters that runs backwards");
  EXPECT_EQ(refusal("*a"), "a repetition of nothing");
  EXPECT_EQ(refusal("a**"), "a repetition of a repetition");
  EXPECT_EQ(refusal("a{3,2}"), "3 to 2 repetitions");
  EXPECT_EQ(refusal("a{99999999999999999999}"), "more than 1000 repetitions");
  EXPECT_EQ(refusal("((a{1000}){1000}){1000}"), "the pattern unfolds to more than 20000 steps");
  EXPECT_EQ(refusal("(((){1000}){1000}){1000}"), "the pattern unfolds to more than 20000 steps");
  EXPECT_EQ(refusal(std::string(10'000, '(')), "more than 200 groups nested");
  EXPECT_EQ(refusal(std::string(30'000, 'a')), "a pattern of 30000 bytes is too long");
  EXPECT_EQ(refusal("\\"), "a pattern that ends in a backslash");
  EXPECT_EQ(refusal(R"(\pL)"), "an escape that is not supported");
  EXPECT_EQ(refusal(R"(\1)"), "an escape that is not supported");
  EXPECT_EQ(refusal(R"(\xZ)"), "a \\x without its number");
  EXPECT_EQ(refusal("[[:foo:]]"), "an unknown class of characters");
  EXPECT_EQ(refusal("(?=a)"), "a flag of a group that is not supported");
  EXPECT_EQ(refusal("(?P<a"), "a group name without its end");
  EXPECT_EQ(refusal("\xFF"), "the pattern is not UTF-8");
}

TEST(RegexFullMatch, TestsEachText) {
  expect_result({"regex_full_match",
                 {texts({2, 2}, {"www.google.com", "www.facebook.com", "www.bbc.co.uk", ""})},
                 {{"pattern", std::string(R"(www\.[\w.-]+\.\bcom\b)")}}},
                bools({2, 2}, {1, 1, 0, 0}));
}

TEST(RegexFullMatch, RefusesBadInput) {
  expect_refused({"regex_full_match", {texts({}, {""})}, {{"pattern", std::string("(")}}},
                 "a ( without its )");
  expect_refused({"regex_full_match", {floats({}, {1})}, {{"pattern", std::string("a")}}},
                 "input 0 has dtype f32");
}

}  // namespace
}  // namespace tessera::host
