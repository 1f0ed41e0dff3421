#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstdlib>
#include <unordered_map>
#include <utility>

#include "tessera/triton/module.h"
#include "tessera/triton/type_parser.h"

namespace tessera::triton {
namespace {

/// Location of MLIR: a file and a line, or another location that it refers to.
struct Location {
  tile::Source source = {};
  std::string alias = {};
};

class Parser : private TypeParser {
 public:
  using TypeParser::TypeParser;

  Expected<Module> parse() {
    read_locations();
    Module module;
    int wrappers = 0;  // `module {` … `}`
    while (peek().kind != Token::Kind::End) {
      if (peek().kind == Token::Kind::Alias) {
        skip_line();
      } else if (peek().is_word("module")) {
        while (!peek().is("{") || attributes_follow()) {
          if (peek().kind == Token::Kind::End) return wrong("the body of the module");
          if (peek().is("{"))
            TESSERA_TRY_DONE(skip_braces());
          else
            take();
        }
        take();
        ++wrappers;
      } else if (peek().is("}") && wrappers > 0) {
        take();
        --wrappers;
        skip_rest_of_line();
      } else if (peek().is_word("tt.func")) {
        TESSERA_TRY(Function function, parse_function());
        module.functions.push_back(std::move(function));
      } else {
        return wrong("module, tt.func or the end");
      }
    }
    if (wrappers != 0) return wrong("} at the end of the module");
    if (module.functions.empty()) return wrong("a tt.func");
    return module;
  }

 private:
  // Locations

  /// Reads `#loc1 = loc(…)`, which may stand anywhere, ahead of everything else.
  void read_locations() {
    for (at_ = 0; peek().kind != Token::Kind::End; take()) {
      if (peek().kind == Token::Kind::Alias && peek().starts_line && peek(1).is("=") &&
          peek(2).is_word("loc")) {
        const std::string name = peek().text;
        take();
        take();
        locations_[name] = parse_location();
        if (at_ > 0) --at_;  // the loop takes the last token
      }
    }
    at_ = 0;
  }

  /// Reads `loc(…)`. Of a call site it is the caller: the user's line, not that of a library.
  Location parse_location() {
    take();  // loc
    Location location;
    if (!accept("(")) return location;
    int depth = 1;
    while (depth > 0 && peek().kind != Token::Kind::End) {
      const Token token = take();
      if (token.is("(")) ++depth;
      if (token.is(")")) --depth;
      if (token.kind == Token::Kind::String && peek().is(":")) {
        take();
        const auto line = integer_of(peek().text);
        location = {.source = {token.text, static_cast<int>(line.value_or(0) & 0x7fffffff)}};
      }
      if (token.kind == Token::Kind::Alias) location = {.alias = token.text};
    }
    return location;
  }

  tile::Source resolved(Location location) const {
    for (int depth = 0; depth < kMostDepth && !location.alias.empty(); ++depth) {
      const auto found = locations_.find(location.alias);
      if (found == locations_.end()) return {};
      location = found->second;
    }
    return location.source;
  }

  // Attributes

  /// Whether the brace that follows opens attributes, not a region.
  bool attributes_follow() const {
    const Token &first = peek(1), &second = peek(2);
    if (first.is("}")) return !first.starts_line;
    const bool is_name = first.kind == Token::Kind::Word || first.kind == Token::Kind::String;
    return is_name && !first.starts_line && (second.is("=") || second.is(",") || second.is("}"));
  }

  /// Reads `{name = value, flag}`.
  Expected<Done> parse_attributes(std::map<std::string, Attribute>& attributes) {
    TESSERA_TRY_DONE(expect("{"));
    while (!accept("}")) {
      if (peek().kind != Token::Kind::Word && peek().kind != Token::Kind::String)
        return wrong("the name of an attribute");
      const std::string name = take().text;
      Attribute value{.text = "true"};
      if (accept("=")) {
        TESSERA_TRY(value, parse_attribute());
      }
      attributes[name] = std::move(value);
      accept(",");
    }
    return Done{};
  }

  /// Reads a value with everything in its brackets, up to a comma or the end of what is around it.
  Expected<Attribute> parse_attribute() {
    Attribute attribute;
    int depth = 0;
    for (std::size_t taken = 0;; ++taken) {
      const Token& token = peek();
      if (token.kind == Token::Kind::End) return wrong("the value of an attribute");
      if (depth == 0 && taken > 0 &&
          (token.is(",") || token.is("}") || token.is(")") || token.starts_line)) {
        break;
      }
      if (token.is("<") || token.is("[") || token.is("(") || token.is("{")) ++depth;
      if (token.is(">") || token.is("]") || token.is(")") || token.is("}")) --depth;
      if (token.kind == Token::Kind::Number) {
        if (const auto number = integer_of(token.text)) attribute.integers.push_back(*number);
      }
      if (depth == 0 && token.is(":")) {  // the type of the value
        take();
        TESSERA_TRY([[maybe_unused]] const Type type, parse_type());
        continue;
      }
      attribute.text += token.text;
      take();
      if (depth < 0) return wrong("the value of an attribute");
    }
    return attribute;
  }

  // Constants

  Expected<Number> parse_number() {
    const Token token = take();
    if (token.is_word("true") || token.is_word("false"))
      return Number{.integer = token.text == "true" ? 1 : 0};
    if (token.kind != Token::Kind::Number) return wrong("a number");
    if (const auto integer = integer_of(token.text)) {
      const bool bits = token.text.starts_with("0x");
      return Number{.kind = bits ? Number::Kind::Bits : Number::Kind::Integer, .integer = *integer};
    }
    return Number{.kind = Number::Kind::Float, .number = std::strtod(token.text.c_str(), nullptr)};
  }

  Expected<Constant> parse_constant() {
    Constant constant;
    if (!peek().is_word("dense")) {
      TESSERA_TRY(const Number number, parse_number());
      return Constant{number};
    }
    take();
    TESSERA_TRY_DONE(expect("<"));
    if (peek().kind == Token::Kind::String) return unsupported("constants written as bytes");
    int depth = 0;
    do {
      if (accept("[")) {
        ++depth;
      } else if (accept("]")) {
        --depth;
      } else if (!accept(",")) {
        TESSERA_TRY(const Number number, parse_number());
        constant.push_back(number);
      }
    } while (depth > 0);
    TESSERA_TRY_DONE(expect(">"));
    return constant;
  }

  // Operations

  Expected<Operation> parse_operation() {
    if (++depth_ > kMostDepth) return unsupported("operations are nested too deeply");
    Operation op;
    op.source = {file_, peek().line};
    while (peek().kind == Token::Kind::Value) {
      const std::string name = take().text;
      if (accept(":")) {
        const auto count = integer_of(take().text);
        if (!count || *count < 1 || *count > 1000) return wrong("a number of results");
        for (std::int64_t i = 0; i < *count; ++i)
          op.results.push_back(fmt::format("{}#{}", name, i));
      } else {
        op.results.push_back(name);
      }
      if (!accept(",")) break;
    }
    if (!op.results.empty()) TESSERA_TRY_DONE(expect("="));
    if (peek().kind != Token::Kind::Word && peek().kind != Token::Kind::String)
      return wrong("an operation");
    op.name = take().text;
    if (op.name == "arith.constant") {
      if (peek().is("{")) TESSERA_TRY_DONE(parse_attributes(op.attributes));
      TESSERA_TRY(op.constant, parse_constant());
    }
    while (!peek().starts_line && !peek().is("}") && peek().kind != Token::Kind::End) {
      TESSERA_TRY_DONE(parse_item(op));
    }
    --depth_;
    return op;
  }

  /// Reads one item of the printed form of an operation.
  Expected<Done> parse_item(Operation& op) {
    const Token& token = peek();
    switch (token.kind) {
      case Token::Kind::Value: return parse_operand(op);
      case Token::Kind::String: op.strings.push_back(take().text); return Done{};
      case Token::Kind::Symbol:
        op.words.push_back({take().text, op.operands.size()});
        return Done{};
      case Token::Kind::Block: return parse_successor(op);
      case Token::Kind::Type: return parse_result_type(op);
      case Token::Kind::Word: return parse_word(op);
      case Token::Kind::Number:
      case Token::Kind::Alias: take(); return Done{};
      case Token::Kind::End: return wrong("the rest of the operation");
      case Token::Kind::Punctuation: break;
    }
    if (token.is("{")) {
      if (attributes_follow()) return parse_attributes(op.attributes);
      TESSERA_TRY(Region region, parse_region());
      op.regions.push_back(std::move(region));
      return Done{};
    }
    if (token.is("<") && peek(1).is("{")) {
      take();
      TESSERA_TRY_DONE(parse_attributes(op.attributes));
      return expect(">");
    }
    if (token.is("->")) op.arrow = op.types.size();
    take();
    return Done{};
  }

  Expected<Done> parse_operand(Operation& op) {
    const std::string name = take().text;
    if (!accept("=")) {
      op.operands.push_back(name);
      return Done{};
    }
    op.bindings.push_back(name);
    if (peek().kind != Token::Kind::Value) return wrong("a value");
    op.operands.push_back(take().text);
    return Done{};
  }

  Expected<Done> parse_successor(Operation& op) {
    Successor successor{.label = take().text};
    if (accept("(")) {
      while (!accept(")")) {
        if (peek().kind == Token::Kind::End) return wrong(")");
        const Token token = take();
        if (token.kind == Token::Kind::Value) successor.arguments.push_back(token.text);
      }
    }
    op.successors.push_back(std::move(successor));
    return Done{};
  }

  Expected<Done> parse_result_type(Operation& op) {
    TESSERA_TRY(Type type, parse_type());
    op.types.push_back(std::move(type));
    return Done{};
  }

  Expected<Done> parse_word(Operation& op) {
    if (peek().is_word("loc") && peek(1).is("(")) {
      tile::Source source = resolved(parse_location());
      if (source.line > 0) op.source = std::move(source);
      return Done{};
    }
    if (at_type()) return parse_result_type(op);
    const Token word = take();
    if (word.text == "to" && !op.types.empty()) op.arrow = op.types.size();
    if (accept("=")) {
      TESSERA_TRY(op.attributes[word.text], parse_inline_attribute());
      return Done{};
    }
    op.words.push_back({word.text, op.operands.size()});
    return Done{};
  }

  /// Value of `name = value` outside of braces: one token, with what is in its angle brackets.
  Expected<Attribute> parse_inline_attribute() {
    Attribute attribute;
    const Token token = take();
    attribute.text = token.text;
    if (const auto number = integer_of(token.text)) attribute.integers.push_back(*number);
    if (peek().is("<") && !peek(1).is("{")) {
      while (!accept(">")) {
        if (peek().kind == Token::Kind::End) return wrong(">");
        const Token inner = take();
        attribute.text += inner.text;
        if (const auto number = integer_of(inner.text)) attribute.integers.push_back(*number);
      }
    }
    return attribute;
  }

  // Regions and functions

  Expected<std::vector<Argument>> parse_arguments() {
    std::vector<Argument> arguments;
    TESSERA_TRY_DONE(expect("("));
    while (!accept(")")) {
      if (peek().kind != Token::Kind::Value) return wrong("an argument");
      Argument argument{.name = take().text};
      TESSERA_TRY_DONE(expect(":"));
      TESSERA_TRY(argument.type, parse_type());
      if (peek().is("{")) TESSERA_TRY_DONE(parse_attributes(argument.attributes));
      if (peek().is_word("loc")) parse_location();
      arguments.push_back(std::move(argument));
      accept(",");
    }
    return arguments;
  }

  Expected<Region> parse_region() {
    TESSERA_TRY_DONE(expect("{"));
    Region region;
    region.blocks.emplace_back();
    while (!accept("}")) {
      if (peek().kind == Token::Kind::End) return wrong("}");
      if (peek().kind == Token::Kind::Block) {
        Block block{.label = take().text};
        if (peek().is("(")) {
          TESSERA_TRY(block.arguments, parse_arguments());
        }
        TESSERA_TRY_DONE(expect(":"));
        const bool replaces_entry = region.blocks.size() == 1 && region.blocks[0].label.empty() &&
                                    region.blocks[0].ops.empty();
        if (replaces_entry) region.blocks.clear();
        region.blocks.push_back(std::move(block));
        continue;
      }
      TESSERA_TRY(Operation op, parse_operation());
      region.blocks.back().ops.push_back(std::move(op));
    }
    return region;
  }

  Expected<Function> parse_function() {
    Function function;
    function.source = {file_, peek().line};
    take();
    while (peek().kind == Token::Kind::Word) {
      if (take().text == "public") function.is_public = true;
    }
    if (peek().kind != Token::Kind::Symbol) return wrong("the name of the function");
    function.name = take().text;
    TESSERA_TRY(function.arguments, parse_arguments());
    if (accept("->")) {
      const bool several = accept("(");
      do {
        TESSERA_TRY(Type type, parse_type());
        function.results.push_back(std::move(type));
        if (several && peek().is("{")) TESSERA_TRY_DONE(skip_braces());
      } while (several && accept(","));
      if (several) TESSERA_TRY_DONE(expect(")"));
    }
    if (peek().is_word("attributes")) {
      take();
      TESSERA_TRY_DONE(skip_braces());
    }
    TESSERA_TRY(function.body, parse_region());
    skip_rest_of_line();
    return function;
  }

  std::unordered_map<std::string, Location> locations_;
};

}  // namespace

bool Operation::has_word(std::string_view word) const {
  return std::any_of(words.begin(), words.end(), [&](const Word& w) { return w.text == word; });
}

const Attribute* Operation::attribute(const std::string& name) const {
  const auto found = attributes.find(name);
  return found == attributes.end() ? nullptr : &found->second;
}

Expected<Module> parse_module(std::string_view text, const std::string& file) {
  return Parser(text, file).parse();
}

}  // namespace tessera::triton
