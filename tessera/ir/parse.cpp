#include <map>
#include <memory>

#include "tessera/ir/builder.h"
#include "tessera/ir/control.h"
#include "tessera/ir/literal.h"
#include "tessera/ir/names.h"
#include "tessera/ir/text.h"
#include "tessera/ir/verify.h"
#include "tessera/support/file.h"

namespace tessera {
namespace {

/// Data files that a text refers to, each mapped once.
class DataFiles {
 public:
  explicit DataFiles(std::filesystem::path folder) : folder_(std::move(folder)) {}

  Expected<Bytes> read(const std::string& name, std::int64_t offset, std::int64_t length) {
    if (folder_.empty() || name.empty() || name == "." || name == ".." ||
        name.find_first_of(std::string_view("/\\\0", 3)) != std::string::npos)
      return refused(fmt::format("{} cannot be read from here", quoted_text(name)),
                     "data lies in a file in the folder of the text");
    auto it = files_.find(name);
    if (it == files_.end()) {
      TESSERA_TRY(Bytes bytes, map_file_itself(folder_ / name));
      it = files_.emplace(name, std::move(bytes)).first;
    }
    const Bytes& file = it->second;
    const auto size = static_cast<std::int64_t>(file.size());
    if (offset < 0 || length < 0 || offset > size || length > size - offset)
      return refused(fmt::format("{} bytes at offset {} of {} are asked for", length, offset,
                                 quoted_text(name)),
                     fmt::format("the file has {}", size));
    return file.slice(static_cast<std::size_t>(offset), static_cast<std::size_t>(length));
  }

 private:
  static Diagnostic refused(std::string message, std::string note) {
    return {.id = "text-data", .message = std::move(message), .note = std::move(note)};
  }

  std::filesystem::path folder_;
  std::map<std::string, Bytes> files_;
};

/// Parser of one graph or subgraph, which is one naming scope.
class Parser {
 public:
  Parser(Lexer& lexer, const DataSource& data, std::string scope, OpAliases aliases = {})
      : lexer_(lexer),
        data_(data),
        scope_(std::move(scope)),
        aliases_(std::move(aliases)),
        builder_(scope_) {}

  /// Parses a graph from its name on. Inputs without a type have the types `given`; without those
  /// they are f32 of unknown shape.
  Expected<Graph> graph(const std::vector<Type>* given) {
    const Nesting nesting(lexer_);
    if (nesting.too_deep()) return lexer_.error("this is nested too deeply");
    std::string name;
    if (lexer_.peek().kind == Token::Kind::Name) name = lexer_.take().text;
    TESSERA_TRY_DONE(inputs(given));
    TESSERA_TRY(Graph made, body());
    made.set_name(std::move(name));
    return made;
  }

  /// `{ statements return … }` over inputs that are declared elsewhere.
  Expected<Graph> body(const std::vector<NamedType>& given) {
    for (const NamedType& input : given)
      TESSERA_TRY_DONE(define({.kind = Token::Kind::Name, .text = input.name},
                              builder_.input({}, {.type = input.type})));
    return body();
  }

 private:
  Expected<Graph> body() {
    TESSERA_TRY_DONE(lexer_.expect("{"));
    while (!lexer_.at("return")) TESSERA_TRY_DONE(statement());
    TESSERA_TRY(const Vals outputs, results());
    return builder_.finish(outputs);
  }

  struct Target {
    Token name;
    std::optional<Type> type = {};
  };

  Diagnostic mistake(const Token& at, std::string message, std::string note = {}) const {
    return {.id = "text-graph",
            .where = lexer_.where(at),
            .message = std::move(message),
            .note = std::move(note)};
  }

  /// A diagnostic about the call that begins here.
  Diagnostic at_call(const Token& at, Diagnostic diagnostic) const {
    const Diagnostic::Where where = lexer_.where(at);
    const std::string inner = diagnostic.where.item.empty() ? at.text : diagnostic.where.item;
    diagnostic.where = {where.file, where.item + ": " + inner};
    return diagnostic;
  }

  static std::pair<std::string, bool> key(const Token& name) {
    return {name.text, !name.quoted && grammar::is_number(name.text)};
  }

  Expected<Done> define(const Token& name, const Val& value) {
    if (Lexer::is(name, grammar::kAbsent)) return Done{};
    if (!values_.emplace(key(name), value).second)
      return mistake(name, fmt::format("{} is defined twice", name.text));
    if (!key(name).second) builder_.name(value, name.text);
    return Done{};
  }

  /// `name` or `name: type`
  Expected<Target> target() {
    Target made{.name = lexer_.peek()};
    TESSERA_TRY_DONE(lexer_.name("the name of a value"));
    if (lexer_.accept(":")) {
      TESSERA_TRY(made.type, parse_type(lexer_));
    }
    return made;
  }

  Expected<Done> inputs(const std::vector<Type>* given) {
    const Token at = lexer_.peek();
    TESSERA_TRY_DONE(lexer_.expect("("));
    std::size_t count = 0;
    for (; !lexer_.accept(")"); ++count) {
      TESSERA_TRY(const Target input, target());
      Type type{.kind = Type::Kind::Tensor, .dtype = DType::F32};
      if (given != nullptr && count < given->size()) type = (*given)[count];
      TESSERA_TRY_DONE(define(input.name, builder_.input({}, {.type = input.type.value_or(type)})));
      if (!lexer_.at(")")) TESSERA_TRY_DONE(lexer_.expect(","));
    }
    if (given != nullptr && count != given->size())
      return mistake(at, fmt::format("{} inputs are named", count),
                     fmt::format("the subgraph is given {}", given->size()));
    return Done{};
  }

  Expected<Vals> results() {
    TESSERA_TRY_DONE(lexer_.expect("return"));
    Vals outputs;
    while (!lexer_.accept("}")) {
      if (!outputs.empty()) TESSERA_TRY_DONE(lexer_.expect(","));
      const Token at = lexer_.peek();
      TESSERA_TRY(const Val value, operand());
      if (!value.present()) return mistake(at, "an output cannot be left out");
      outputs.push_back(value);
    }
    return outputs;
  }

  Expected<Done> statement() {
    std::vector<Target> targets;
    const bool has_targets = !Lexer::is(lexer_.peek(1), "(");
    while (has_targets) {
      TESSERA_TRY(Target next, target());
      targets.push_back(std::move(next));
      if (!lexer_.accept(",")) break;
    }
    if (has_targets) TESSERA_TRY_DONE(lexer_.expect("="));

    const Token at = lexer_.peek();
    Vals values;
    if (at.kind == Token::Kind::Name && Lexer::is(lexer_.peek(1), "(")) {
      TESSERA_TRY(values, call(targets.size()));
    } else {
      TESSERA_TRY(Tensor tensor, constant());
      values = {builder_.constant(std::move(tensor))};
      if (targets.size() != 1) return mistake(at, "a constant is one value");
    }
    for (std::size_t i = 0; i < targets.size(); ++i)
      TESSERA_TRY_DONE(refine_and_define(targets[i], values[i]));
    return Done{};
  }

  Expected<Done> refine_and_define(const Target& target, const Val& value) {
    if (target.type) {
      const Type inferred = builder_.known(value).type;
      if (!compatible(inferred, *target.type))
        return mistake(target.name,
                       fmt::format("{} is declared {}", target.name.text, to_string(*target.type)),
                       "it is " + to_string(inferred));
      builder_.refine(value, *target.type);
    }
    return define(target.name, value);
  }

  Expected<Tensor> constant() {
    lexer_.accept("const");
    return at_tensor(lexer_) ? parse_tensor(lexer_, data_) : parse_plain_tensor(lexer_);
  }

  /// A value by its name, `_`, a call or a constant.
  Expected<Val> operand() {
    const Nesting nesting(lexer_);
    if (nesting.too_deep()) return lexer_.error("this is nested too deeply");
    const Token at = lexer_.peek();
    if (at.kind == Token::Kind::Bad) return lexer_.expected("a value");
    if (at.kind != Token::Kind::Name || Lexer::is(at, "const") || at_tensor(lexer_)) {
      TESSERA_TRY(Tensor tensor, constant());
      return builder_.constant(std::move(tensor));
    }
    if (Lexer::is(lexer_.peek(1), "(")) {
      TESSERA_TRY(const Vals results, call(1));
      return results[0];
    }
    lexer_.take();
    if (Lexer::is(at, grammar::kAbsent)) return Val{};
    const auto it = values_.find(key(at));
    if (it == values_.end())
      return mistake(at, fmt::format("{} is not defined", at.text),
                     scope_.empty() ? "" : "a subgraph sees its own inputs only");
    return it->second;
  }

  /// `op(operands) {attrs} @name { subgraphs }`
  Expected<Vals> call(std::size_t wanted) {
    const Token at = lexer_.take();
    const auto alias = aliases_.find(at.text);
    const OpDef* op = alias != aliases_.end() ? alias->second : find_op(at.text);
    if (op == nullptr) return mistake(at, fmt::format("there is no operator {}", at.text));
    TESSERA_TRY_DONE(lexer_.expect("("));
    Vals operands;
    while (!lexer_.accept(")")) {
      TESSERA_TRY(operands.emplace_back(), operand());
      if (!lexer_.at(")")) TESSERA_TRY_DONE(lexer_.expect(","));
    }
    const auto labels = subgraph_labels(*op);
    Attrs attrs;
    if (lexer_.at("{") && (labels.empty() || !Lexer::is(lexer_.peek(1), labels[0]))) {
      lexer_.take();
      TESSERA_TRY(attrs, attributes());
    }
    std::string node_name;
    if (lexer_.accept("@")) {
      TESSERA_TRY(node_name, lexer_.name("the name of a node"));
    }
    if (auto fits = check_results(*op, wanted); !fits) return at_call(at, std::move(fits).error());
    Vals made;
    if (op->kind() == OpDef::Kind::Control) {
      TESSERA_TRY(made, control(at, *op, operands, attrs));
      if (made.size() != wanted)
        return mistake(at, fmt::format("{} results are named", wanted),
                       fmt::format("{} has {}", op->name, made.size()));
    } else {
      made = builder_.call(*op, operands, attrs, static_cast<int>(wanted));
    }
    if (builder_.failed()) return at_call(at, *builder_.error());
    builder_.name_last_node(std::move(node_name));
    return made;
  }

  /// `{ label name?(inputs) { … } … }`
  Expected<Vals> control(const Token& at, const OpDef& op, const Vals& operands,
                         const Attrs& attrs) {
    const auto fail = [&](auto&& failed) { return at_call(at, failed.error()); };
    const auto complete = completed(op, attrs);
    if (!complete) return fail(complete);
    std::vector<bool> present;
    std::vector<Type> types;
    for (const Val& operand : operands) {
      present.push_back(operand.present());
      types.push_back(operand.present() ? builder_.known(operand).type : Type::unknown());
    }
    if (const auto fits = check_arity(op, present); !fits) return fail(fits);
    const auto given = subgraph_inputs(op, *complete, types);
    if (!given) return fail(given);

    TESSERA_TRY_DONE(lexer_.expect("{"));
    GraphBuilder::Subgraphs subgraphs;
    for (const std::string_view label : subgraph_labels(op)) {
      TESSERA_TRY_DONE(lexer_.expect(label));
      const std::string scope = fmt::format("{}{}_", scope_, ++subgraphs_);
      TESSERA_TRY(Graph subgraph, Parser(lexer_, data_, scope, aliases_).graph(&*given));
      subgraphs.push_back(std::make_shared<const Graph>(std::move(subgraph)));
    }
    TESSERA_TRY_DONE(lexer_.expect("}"));
    const auto results = control_results(op, *complete, types, subgraphs);
    if (!results) return fail(results);
    return builder_.call_control(op, operands, attrs, std::move(subgraphs), *results);
  }

  Expected<Attrs> attributes() {
    Attrs attrs;
    while (!lexer_.accept("}")) {
      const Token at = lexer_.peek();
      TESSERA_TRY(const std::string name, lexer_.name("the name of an attribute"));
      TESSERA_TRY_DONE(lexer_.expect("="));
      TESSERA_TRY(Attr value, parse_attr(lexer_));
      if (attrs.has(name)) return mistake(at, fmt::format("{} is given twice", name));
      attrs.set(name, std::move(value));
      if (!lexer_.at("}")) TESSERA_TRY_DONE(lexer_.expect(","));
    }
    return attrs;
  }

  Lexer& lexer_;
  const DataSource& data_;
  std::string scope_;
  OpAliases aliases_;
  GraphBuilder builder_;
  std::map<std::pair<std::string, bool>, Val> values_;
  int subgraphs_ = 0;
};

}  // namespace

Expected<Graph> parse_graph(std::string_view text, const ParseOptions& options) {
  Lexer lexer(text, options.file);
  DataFiles files(options.folder);
  const DataSource data = [&](const std::string& name, std::int64_t offset, std::int64_t length) {
    return files.read(name, offset, length);
  };
  TESSERA_TRY_DONE(lexer.expect("graph"));
  TESSERA_TRY(Graph graph, Parser(lexer, data, {}).graph(nullptr));
  TESSERA_TRY_DONE(lexer.end());
  return graph;
}

Expected<Graph> parse_body(Lexer& lexer, const std::vector<NamedType>& inputs,
                           const OpAliases& aliases) {
  return Parser(lexer, {}, {}, aliases).body(inputs);
}

Expected<Graph> read_text_graph(const std::filesystem::path& path) {
  TESSERA_TRY(const std::string text, read_text(path));
  const std::filesystem::path folder = path.parent_path();
  return parse_graph(text, {.file = path.string(), .folder = folder.empty() ? "." : folder});
}

}  // namespace tessera
