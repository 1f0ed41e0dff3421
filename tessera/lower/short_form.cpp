#include "tessera/lower/short_form.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "tessera/expr/text.h"
#include "tessera/support/lexer.h"

namespace tessera::lower {
namespace {

/// What an operand is read at, axis by axis: the name of an axis, or nothing.
using Uses = std::map<std::string, std::vector<std::string>>;

/// Goes over the words of an equation and takes note of what is read: `name[`, with as many indices
/// as there are commas at its depth.
Uses uses_of(std::string_view text) {
  struct OpenBracket {
    std::string operand;  // empty: some other bracket
    std::vector<std::vector<Token>> indices = {{}};
  };
  Uses uses;
  std::vector<OpenBracket> open;
  Lexer lexer(text);
  for (Token before; lexer.peek().kind != Token::Kind::End;) {
    const Token word = lexer.take();
    if (word.kind == Token::Kind::Bad) break;
    const bool opens = Lexer::is(word, "[") || Lexer::is(word, "(") || Lexer::is(word, "{");
    const bool closes = Lexer::is(word, "]") || Lexer::is(word, ")") || Lexer::is(word, "}");
    if (closes && !open.empty()) {
      const OpenBracket done = std::move(open.back());
      open.pop_back();
      if (!done.operand.empty()) {
        std::vector<std::string>& at = uses[done.operand];
        const bool none = done.indices.size() == 1 && done.indices[0].empty();
        if (at.empty() && !none) at.resize(done.indices.size());
        for (std::size_t i = 0; i < at.size() && i < done.indices.size(); ++i)
          if (at[i].empty() && done.indices[i].size() == 1 &&
              done.indices[i][0].kind == Token::Kind::Name)
            at[i] = done.indices[i][0].text;
      }
    } else if (!open.empty() && Lexer::is(word, ",")) {
      open.back().indices.emplace_back();
    } else if (opens) {
      const bool reads = Lexer::is(word, "[") && before.kind == Token::Kind::Name;
      for (OpenBracket& outer : open) outer.indices.back().push_back(word);
      open.push_back({reads ? before.text : ""});
    } else {
      for (OpenBracket& outer : open) outer.indices.back().push_back(word);
    }
    before = word;
  }
  return uses;
}

}  // namespace

Expected<Operand> parse_tensor(std::string_view text) {
  Lexer lexer(text);
  Operand operand;
  TESSERA_TRY(operand.name, lexer.name("a tensor"));
  TESSERA_TRY_DONE(lexer.expect("="));
  TESSERA_TRY(const std::string name, lexer.name("a dtype"));
  const auto dtype = parse_dtype(name);
  if (!dtype || *dtype == DType::String) return lexer.error(fmt::format("{} is no dtype", name));
  operand.dtype = *dtype;
  TESSERA_TRY_DONE(lexer.expect("["));
  while (!lexer.at("]")) {
    TESSERA_TRY(const std::int64_t extent, lexer.integer("an extent"));
    if (extent < 0) return lexer.error(fmt::format("{} is no extent", extent));
    operand.shape.emplace_back(extent);
    if (!lexer.accept(",")) break;
  }
  TESSERA_TRY_DONE(lexer.expect("]"));
  TESSERA_TRY_DONE(lexer.end());
  return operand;
}

Expected<Definition> parse_short(std::string_view text, const std::vector<Operand>& inputs) {
  if (Lexer(text).at("define")) return parse_definition(text);
  const std::size_t bracket = text.find(']'), equals = text.find('=', bracket + 1);
  Lexer lexer(text);
  TESSERA_TRY(const std::string name, lexer.name("the result, such as c[i, j]"));
  if (!lexer.at("[") || bracket == std::string_view::npos || equals == std::string_view::npos)
    return lexer.error("this is no equation", "c[i, j] = sum(k) a[i, k] * b[k, j] is one");
  const std::string_view axes = text.substr(text.find('[') + 1, bracket - text.find('[') - 1);
  const std::string_view value = text.substr(equals + 1);
  std::string operands;
  DType dtype = DType::F32;
  for (const auto& [operand, at] : uses_of(value)) {
    const auto input = std::ranges::find(inputs, operand, &Operand::name);
    if (input == inputs.end())
      return Diagnostic{.id = "definition-size",
                        .where = {.item = operand},
                        .message = fmt::format("the size of {} is not known", operand),
                        .help = fmt::format("say it with --arg {}=f32[64,32]", operand)};
    if (input->shape.size() != at.size())
      return Diagnostic{.id = "definition-size",
                        .where = {.item = operand},
                        .message = fmt::format("{} has {} axes and is read at {} indices", operand,
                                               input->shape.size(), at.size())};
    if (operands.empty()) dtype = input->dtype;
    operands += fmt::format("{}{}: {}[", operands.empty() ? "" : ", ", name_text(operand),
                            to_string(input->dtype));
    for (std::size_t i = 0; i < at.size(); ++i)
      operands += fmt::format("{}{}", i == 0 ? "" : ", ",
                              at[i].empty() ? input->shape[i].to_string() : name_text("#" + at[i]));
    operands += "]";
  }
  return parse_definition(fmt::format("define({}) {{ {}: {}[{}] = {} }}", operands, name_text(name),
                                      to_string(dtype), axes, value));
}

}  // namespace tessera::lower
