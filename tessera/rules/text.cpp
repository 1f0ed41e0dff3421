#include "tessera/rules/text.h"

#include <algorithm>
#include <map>
#include <set>

#include "tessera/ir/infer.h"
#include "tessera/ir/literal.h"
#include "tessera/ir/names.h"
#include "tessera/ir/text.h"
#include "tessera/ops/catalog.h"
#include "tessera/rules/certified.h"
#include "tessera/support/file.h"

namespace tessera::rules {
namespace {

constexpr std::size_t kColumns = 100;

/// `*s`
std::string axes_text(std::string_view symbol) {
  return "*" + name_text(symbol.substr(1));
}

std::string type_text(const Type& type) {
  std::string sizes;
  for (const Dim& dim : type.shape.value_or(Shape{})) {
    const std::string text = is_any_rank(dim) ? axes_text(*dim.as_symbol()) : dim.to_string();
    sizes += (sizes.empty() ? "" : ", ") + text;
  }
  return type.is_ranked_tensor() ? fmt::format("{}[{}]", to_string(type.dtype), sizes)
                                 : to_string(type);
}

/// `*s`
Expected<std::string> parse_axes(Lexer& lexer) {
  TESSERA_TRY_DONE(lexer.expect("*"));
  TESSERA_TRY(const std::string name, lexer.name("the name of some axes"));
  return "*" + name;
}

/// `*b <= *s`
Expected<ShapeCondition> parse_shape_condition(Lexer& lexer) {
  ShapeCondition condition;
  TESSERA_TRY(condition.shape, parse_axes(lexer));
  TESSERA_TRY_DONE(lexer.expect("<="));
  TESSERA_TRY(condition.to, parse_axes(lexer));
  return condition;
}

/// `f32[n, *s]`
Expected<Type> parse_pattern_type(Lexer& lexer) {
  const std::optional<DType> dtype = parse_dtype(lexer.peek().text);
  if (lexer.peek().kind != Token::Kind::Name || !dtype) return lexer.expected("a type");
  lexer.take();
  TESSERA_TRY_DONE(lexer.expect("["));
  Shape shape;
  while (!lexer.accept("]")) {
    if (lexer.at("*")) {
      TESSERA_TRY(const std::string name, parse_axes(lexer));
      shape.push_back(Dim::symbol(name));
    } else {
      TESSERA_TRY(shape.emplace_back(), parse_size(lexer));
    }
    if (!lexer.at("]")) TESSERA_TRY_DONE(lexer.expect(","));
  }
  return Type::tensor(*dtype, std::move(shape));
}

/// Writes calls into calls; what has a name, several uses or sister results is a statement. Of
/// values that share a name the first has it.
class BodyWriter {
 public:
  explicit BodyWriter(const Graph& graph)
      : graph_(graph), uses_(graph.value_count()), named_(graph.value_count()) {
    std::set<std::string> names;
    for (std::uint32_t i = 0; i < graph.value_count(); ++i)
      named_[i] = graph.is_named(ValueId{i}) && names.insert(graph.name(ValueId{i})).second;
    for (const GraphNode& node : graph.nodes())
      for (const ValueId id : graph.inputs(node))
        if (id.present()) ++uses_[id.index];
    for (const ValueId id : graph.outputs()) ++uses_[id.index];
  }

  /// The lines between the braces.
  std::vector<std::string> lines() {
    std::vector<std::string> made;
    for (const GraphNode& node : graph_.nodes()) {
      const auto results = graph_.outputs(node);
      if (results.size() == 1 && !named_[results[0].index] && uses_[results[0].index] == 1)
        continue;
      std::string names;
      for (const ValueId id : results) names += (names.empty() ? "" : ", ") + named(id);
      made.push_back(names + " = " + call(node));
    }
    made.push_back("return " + list(graph_.outputs()));
    return made;
  }

 private:
  std::string named(ValueId id) {
    if (named_[id.index]) return grammar::value_text(graph_.name(id));
    const auto number = numbers_.try_emplace(id, numbers_.size()).first->second;
    return fmt::format("%{}", number);
  }

  std::string list(std::span<const ValueId> ids) {
    std::string text;
    for (const ValueId id : ids) text += (text.empty() ? "" : ", ") + value(id);
    return text;
  }

  std::string value(ValueId id) {
    if (!id.present()) return std::string(grammar::kAbsent);
    if (const Tensor* constant = graph_.constant(id)) return constant_text(*constant);
    const GraphNode* node = graph_.producer(id);
    if (node == nullptr || named_[id.index] || uses_[id.index] != 1 ||
        graph_.outputs(*node).size() != 1)
      return named(id);
    return call(*node);
  }

  std::string call(const GraphNode& node) {
    return name_text(node.op->name) + "(" + list(graph_.inputs(node)) + ")" +
           attrs_text(*node.op, *node.attrs);
  }

  const Graph& graph_;
  std::vector<int> uses_;
  std::vector<bool> named_;
  std::map<ValueId, std::size_t> numbers_;
};

/// `as op`: the numerics of the law by which the operator associates.
Expected<Numerics> parse_law_numerics(Lexer& lexer, const OpAliases& aliases) {
  const Diagnostic unknown = lexer.error("this is not the name of an associative operator");
  TESSERA_TRY(const std::string name, lexer.name("the name of the operator"));
  const auto alias = aliases.find(name);
  if (alias == aliases.end()) return unknown;
  switch (alias->second->laws.associative) {
    case Laws::Associative::No: return unknown;
    case Laws::Associative::OverReals: return Numerics{Numerics::Kind::Reals};
    case Laws::Associative::Exactly: return Numerics{Numerics::Kind::Exact};
  }
  return unknown;
}

Expected<Numerics> parse_numerics(Lexer& lexer, const OpAliases& aliases) {
  if (lexer.accept("as")) return parse_law_numerics(lexer, aliases);
  if (lexer.accept("exact")) return Numerics{Numerics::Kind::Exact};
  if (lexer.accept("reals")) return Numerics{Numerics::Kind::Reals};
  if (!lexer.accept("error")) return lexer.expected("exact, reals, error or as");
  TESSERA_TRY(const double error, lexer.number("a relative error"));
  return Numerics{Numerics::Kind::Error, error};
}

/// The fields of a rule, in any order, the source before the target.
class RuleParser {
 public:
  RuleParser(Lexer& lexer, std::string name, OpAliases aliases)
      : lexer_(lexer), aliases_(std::move(aliases)) {
    rule_.name = std::move(name);
  }

  /// From behind the brace on; `at` is where the rule has its name.
  Expected<Rule> rule(const Token& at) {
    while (!lexer_.accept("}")) TESSERA_TRY_DONE(field());
    if (!has_source_ || !has_target_)
      return Diagnostic{
          .id = "rule-invalid",
          .where = lexer_.where(at),
          .message = fmt::format("{} has no {}", rule_.name, has_source_ ? "target" : "source")};
    if (!wrong_.empty()) {
      auto target = corrected(rule_.source, rule_.target, wrong_);
      if (!target) return located_in_rule(std::move(target).error(), at);
      // As it is read from the text of a certificate: constants are in the order of the text.
      Rule plain = rule_;
      plain.target = *std::move(target);
      TESSERA_TRY(std::vector<Rule> written, parse_rules(to_text(statement_of(std::move(plain)))));
      rule_.mutant =
          Mutant{std::exchange(rule_.target, std::move(written[0].target)), std::move(wrong_)};
    }
    if (auto fits = check(rule_); !fits) {
      return located_in_rule(std::move(fits).error(), at);
    }
    return std::move(rule_);
  }

 private:
  Diagnostic located_in_rule(Diagnostic diagnostic, const Token& at) const {
    const Diagnostic::Where where = lexer_.where(at);
    diagnostic.where = {where.file, where.item + ": " + rule_.name};
    return diagnostic;
  }

  Expected<Done> field() {
    if (lexer_.accept("about")) {
      TESSERA_TRY(rule_.about, lexer_.string("a sentence in quotes"));
    } else if (lexer_.accept("found")) {
      TESSERA_TRY(rule_.found, lexer_.string("a sentence in quotes"));
    } else if (lexer_.accept("numerics")) {
      TESSERA_TRY(rule_.numerics, parse_numerics(lexer_, aliases_));
    } else if (lexer_.accept("both")) {
      TESSERA_TRY_DONE(lexer_.expect("ways"));
      rule_.both_ways = true;
    } else if (lexer_.accept("helps")) {
      if (lexer_.accept("smaller")) {
        rule_.helps = Helps::WhereSmaller;
      } else if (lexer_.accept("mutants")) {
        rule_.helps = Helps::WithMutant;
      } else {
        TESSERA_TRY_DONE(lexer_.expect("everywhere"));
        rule_.helps = Helps::Everywhere;
      }
    } else if (lexer_.accept("where")) {
      do {
        if (lexer_.at("*")) {
          TESSERA_TRY(rule_.shapes.emplace_back(), parse_shape_condition(lexer_));
        } else {
          TESSERA_TRY(rule_.guard.emplace_back(), parse_condition(lexer_));
        }
      } while (lexer_.accept(","));
    } else if (lexer_.accept("wrong")) {
      do {
        TESSERA_TRY(wrong_.emplace_back(), parse_box(lexer_));
      } while (lexer_.accept(","));
    } else if (!has_source_ && lexer_.accept("source")) {
      TESSERA_TRY_DONE(inputs());
      TESSERA_TRY(rule_.source, parse_body(lexer_, inputs_, aliases_));
      has_source_ = true;
    } else if (has_source_ && !has_target_ && lexer_.accept("target")) {
      TESSERA_TRY(rule_.target, parse_body(lexer_, inputs_, aliases_));
      has_target_ = true;
    } else {
      return lexer_.expected(
          "about, found, numerics, both ways, helps, where, wrong, source, then target");
    }
    return Done{};
  }

  /// `(x: f32[m, k], c: const f32[*s])`
  Expected<Done> inputs() {
    TESSERA_TRY_DONE(lexer_.expect("("));
    while (!lexer_.accept(")")) {
      const Diagnostic twice = lexer_.error("two inputs have this name");
      TESSERA_TRY(std::string name, lexer_.name("the name of an input"));
      if (std::ranges::find(inputs_, name, &NamedType::name) != inputs_.end()) return twice;
      TESSERA_TRY_DONE(lexer_.expect(":"));
      if (lexer_.accept("const")) rule_.constants.push_back(name);
      TESSERA_TRY(Type type, parse_pattern_type(lexer_));
      inputs_.push_back({std::move(name), std::move(type)});
      if (!lexer_.at(")")) TESSERA_TRY_DONE(lexer_.expect(","));
    }
    return Done{};
  }

  Lexer& lexer_;
  OpAliases aliases_;
  Rule rule_;
  Region wrong_;
  std::vector<NamedType> inputs_;
  bool has_source_ = false, has_target_ = false;
};

}  // namespace

std::vector<const OpDef*> associative_operators() {
  const ValueInfo number{.type = Type::tensor(DType::F32, {})};
  std::vector<const OpDef*> ops;
  for (const OpDef& op : catalog())
    if (op.laws.associative != Laws::Associative::No && infer(op, {}, {number, number}))
      ops.push_back(&op);
  return ops;
}

namespace {

/// `add, mul`, or `associative`
Expected<std::vector<const OpDef*>> parse_operators(Lexer& lexer) {
  if (lexer.accept("associative")) return associative_operators();
  std::vector<const OpDef*> ops;
  do {
    const Diagnostic unknown = lexer.error("there is no such operator");
    TESSERA_TRY(const std::string name, lexer.name("the name of an operator"));
    ops.push_back(find_op(name));
    if (ops.back() == nullptr) return unknown;
  } while (lexer.accept(","));
  return ops;
}

/// A rule, or one for each operator that it is for.
Expected<Done> parse_rule(Lexer& lexer, std::vector<Rule>& rules) {
  TESSERA_TRY_DONE(lexer.expect("rule"));
  const Token at = lexer.peek();
  TESSERA_TRY(const std::string name, lexer.name("the name of a rule"));
  TESSERA_TRY_DONE(lexer.expect("{"));
  if (!lexer.accept("for")) {
    TESSERA_TRY(rules.emplace_back(), RuleParser(lexer, name, {}).rule(at));
    return Done{};
  }
  TESSERA_TRY(const std::string alias, lexer.name("a name for operators"));
  TESSERA_TRY_DONE(lexer.expect("in"));
  TESSERA_TRY(const std::vector<const OpDef*> ops, parse_operators(lexer));
  const Lexer fields = lexer;
  for (const OpDef* op : ops) {
    lexer = fields;
    TESSERA_TRY(rules.emplace_back(),
                RuleParser(lexer, name + "_" + op->name, {{alias, op}}).rule(at));
  }
  return Done{};
}

}  // namespace

std::string constant_text(const Tensor& tensor) {
  const std::string text = to_text(tensor);
  const bool plain = (tensor.dtype == DType::I64 || tensor.dtype == DType::F32) &&
                     tensor.shape.size() <= 1 && !text.ends_with(')') &&
                     (tensor.count() > 0 || tensor.dtype == DType::I64);
  return plain ? text.substr(text.find(' ') + 1) : text;
}

std::string to_text(const Numerics& numerics) {
  switch (numerics.kind) {
    case Numerics::Kind::Exact: return "exact";
    case Numerics::Kind::Reals: return "reals";
    case Numerics::Kind::Error: break;
  }
  return "error " + float_text(numerics.error);
}

std::string body_text(const Graph& graph, int indent) {
  const std::vector<std::string> lines = BodyWriter(graph).lines();
  const std::string outer(static_cast<std::size_t>(indent), ' ');
  if (lines.size() == 1 && lines[0].size() + outer.size() + 11 <= kColumns)
    return "{ " + lines[0] + " }";
  std::string text = "{\n";
  for (const std::string& line : lines) text += fmt::format("{}  {}\n", outer, line);
  return text + outer + "}";
}

std::string inputs_text(const Rule& rule) {
  std::string inputs;
  for (const ValueId id : rule.source.inputs()) {
    const std::string name = rule.source.name(id);
    const bool constant = std::ranges::find(rule.constants, name) != rule.constants.end();
    inputs += (inputs.empty() ? "" : ", ") + grammar::value_text(name) + ": " +
              (constant ? "const " : "") + type_text(rule.source.type(id));
  }
  return inputs;
}

std::string to_text(const Rule& rule) {
  std::string text = fmt::format("rule {} {{\n", name_text(rule.name));
  const auto field = [&](std::string_view name, const std::string& content) {
    text += fmt::format("  {:<8} {}\n", name, content);
  };
  if (!rule.about.empty()) field("about", quoted_text(rule.about));
  field("numerics", to_text(rule.numerics));
  if (!rule.found.empty()) field("found", quoted_text(rule.found));
  if (rule.both_ways) text += "  both ways\n";
  switch (rule.helps) {
    case Helps::Unknown: break;
    case Helps::WhereSmaller: field("helps", "smaller"); break;
    case Helps::Everywhere: field("helps", "everywhere"); break;
    case Helps::WithMutant: field("helps", "mutants"); break;
  }
  std::string conditions;
  for (const ShapeCondition& condition : rule.shapes)
    conditions += fmt::format("{}{} <= {}", conditions.empty() ? "" : ", ",
                              axes_text(condition.shape), axes_text(condition.to));
  if (!rule.guard.empty()) conditions += (conditions.empty() ? "" : ", ") + to_text(rule.guard);
  if (!conditions.empty()) field("where", conditions);
  if (rule.mutant) field("wrong", to_text(rule.mutant->wrong));
  const std::string head = "  source (" + inputs_text(rule) + ") ";
  std::string body = body_text(rule.source, 2);
  // A body that fits on a line of its own, but not behind the inputs, has its own lines.
  if (head.size() + body.find('\n') > kColumns && head.size() + body.size() > kColumns &&
      body.starts_with("{ "))
    body = "{\n    " + body.substr(2, body.size() - 4) + "\n  }";
  text += head + body + "\n";
  const Graph& target = rule.mutant ? rule.mutant->target : rule.target;
  return text + "  target " + body_text(target, 2) + "\n}\n";
}

Expected<std::vector<Rule>> parse_rules(std::string_view text, const std::string& file) {
  Lexer lexer(text, file);
  std::vector<Rule> rules;
  while (lexer.peek().kind != Token::Kind::End) TESSERA_TRY_DONE(parse_rule(lexer, rules));
  return rules;
}

Expected<std::vector<Rule>> load_rules(const std::filesystem::path& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  std::vector<fs::path> files;
  if (fs::is_directory(path, error)) {
    for (const auto& entry : fs::directory_iterator(path, error))
      if (entry.path().extension() == ".rules") files.push_back(entry.path());
    std::ranges::sort(files);
  } else {
    files.push_back(path);
  }
  std::vector<Rule> all;
  std::map<std::string, std::string> home;
  for (const fs::path& file : files) {
    TESSERA_TRY(const std::string text, read_text(file));
    TESSERA_TRY(std::vector<Rule> rules, parse_rules(text, file.string()));
    for (Rule& rule : rules) {
      const auto [it, added] = home.emplace(rule.name, file.filename().string());
      if (!added)
        return Diagnostic{.id = "rule-duplicate",
                          .where = {.file = file.string(), .item = rule.name},
                          .message = fmt::format("there are two rules {}", rule.name),
                          .note = "the other one is in " + it->second};
      all.push_back(std::move(rule));
    }
  }
  return all;
}

}  // namespace tessera::rules
