#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "tessera/tile/infer.h"
#include "tessera/tile/operand_type.h"
#include "tessera/tile/parse_part.h"
#include "tessera/tile/text.h"
#include "tessera/tile/text_form.h"
#include "tessera/tile/verify.h"

namespace tessera::tile {
namespace {

/// Parsed operand: a value, or a number whose type is not known yet.
struct ParsedOperand {
  std::optional<ValueId> value = {};
  Number number = {};
};

/// Name of an operation in the text form.
std::string_view operation_name(const Operation& op) {
  return op.code == Code::Map ? to_string(op.function) : to_string(op.code);
}

/// Semantic actions of the parser: the kernel under construction, with its open regions and the
/// visible names. Results and numbers without a type get the type that follows from their use.
class KernelInProgress {
 public:
  explicit KernelInProgress(const PartReader& parts) : parts_(parts) {}

  Kernel& kernel() { return kernel_; }
  const Type& type(ValueId id) const { return kernel_.type(id); }

  std::optional<ValueId> find(const std::string& name) const {
    const auto found = visible_.find(name);
    return found == visible_.end() ? std::nullopt : std::optional(found->second);
  }

  /// Operations are appended to the region that was opened last.
  void open(Region& region) { open_.push_back(&region); }
  void close() { open_.pop_back(); }
  const Region& innermost() const { return *open_.back(); }

  /// Number of names that are visible; `leave` hides those that were added since.
  std::size_t scope() const { return scope_.size(); }
  void leave(std::size_t outside) {
    for (; scope_.size() > outside; scope_.pop_back()) visible_.erase(scope_.back());
  }

  Expected<ValueId> define(const Declared& declared, Type type) {
    const auto id = static_cast<ValueId>(kernel_.values.size());
    if (!declared.name.empty()) {
      if (!visible_.emplace(declared.name, id).second) {
        return parts_.unsound(declared.token, fmt::format("{} is defined again", declared.name),
                              "a name for each value");
      }
      scope_.push_back(declared.name);
    }
    kernel_.values.push_back({std::move(type), declared.name});
    return id;
  }

  Expected<OpId> place_op(Operation op, const Token& token) {
    op.source = parts_.source(token);
    TESSERA_TRY_DONE(check_types(kernel_, op));
    kernel_.ops.push_back(std::move(op));
    open_.back()->ops.push_back(static_cast<OpId>(kernel_.ops.size() - 1));
    return open_.back()->ops.back();
  }

  Expected<ValueId> emit_one(Operation op, Type type, const Token& token) {
    TESSERA_TRY(const ValueId id, define({}, std::move(type)));
    op.out = {id};
    TESSERA_TRY_DONE(place_op(std::move(op), token));
    return id;
  }

  /// Appends an operation with results of these names; of all its results where none are named.
  Expected<Done> emit(Operation op, const std::vector<Declared>& results, const Token& token) {
    const auto inferred = inferred_types(kernel_, op);
    const std::size_t count = !results.empty() || !inferred ? results.size() : inferred->size();
    for (std::size_t i = 0; i < count; ++i) {
      const Declared result = i < results.size() ? results[i] : Declared{};
      if (inferred && i >= inferred->size()) {
        return parts_.ill_typed(token,
                                fmt::format("{} has a result {}", operation_name(op), result.name),
                                fmt::format("{} results", inferred->size()));
      }
      if (!inferred && !result.type) {
        return parts_.ill_typed(token, fmt::format("{} has no type", result.name),
                                fmt::format("the type of what {} gives: {}: f32[64] = …",
                                            operation_name(op), name_text(result.name)));
      }
      TESSERA_TRY(const ValueId id, define(result, result.type ? *result.type : (*inferred)[i]));
      op.out.push_back(id);
    }
    TESSERA_TRY_DONE(place_op(std::move(op), token));
    return Done{};
  }

  Expected<ValueId> constant(const Number& number, const std::optional<Type>& type) {
    if (!type) {
      return parts_.ill_typed(
          number.token, fmt::format("the type of {} does not follow", number.token.text),
          fmt::format("a number with its type: {}: f32[64]", number.token.text));
    }
    TESSERA_TRY(const Literal value, parts_.literal(number, type->dtype));
    return emit_one({.code = Code::Const, .literal = value}, *type, number.token);
  }

  /// Assigns types to numbers, and broadcasts scalars to the shape of the other operands.
  Expected<Done> set_operands(Operation& op, const std::vector<ParsedOperand>& list,
                              const std::optional<Type>& declared, const Token& token) {
    KnownTypes known(list.size());
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (list[i].value) known[i] = kernel_.type(*list[i].value);
    }
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (list[i].value) {
        op.in.push_back(*list[i].value);
        continue;
      }
      TESSERA_TRY(const ValueId id, constant(list[i].number, operand_type(op, known, i, declared)));
      op.in.push_back(id);
    }
    return broadcast_scalars(op, token);
  }

 private:
  Expected<Done> broadcast_scalars(Operation& op, const Token& token) {
    const bool to_pointers = op.code == Code::Load || op.code == Code::Store ||
                             op.code == Code::Atomic || op.code == Code::Cas;
    if (op.code != Code::Map && op.code != Code::Offset && !to_pointers) return Done{};
    Extents shape;
    for (const ValueId id : op.in) {
      if (kernel_.type(id).is_tile() && shape.empty()) shape = kernel_.type(id).shape;
      if (to_pointers) break;
    }
    if (shape.empty()) return Done{};
    for (ValueId& id : op.in) {
      if (!kernel_.type(id).is_scalar()) continue;
      TESSERA_TRY(id, emit_one({.code = Code::Broadcast, .in = {id}},
                               kernel_.type(id).shaped(shape), token));
    }
    return Done{};
  }

  const PartReader& parts_;
  Kernel kernel_;
  std::vector<Region*> open_;               // innermost last
  std::map<std::string, ValueId> visible_;  // visible names
  std::vector<std::string> scope_;          // the same, in order
};

/// Parser of the attributes of an operation, by the table `kAttributes`.
class AttributeParser {
 public:
  AttributeParser(PartReader& parts, const KernelInProgress& made)
      : parts_(parts), lexer_(parts.lexer), made_(made) {}

  /// Parses `name = value, …` up to the closing brace. `declared` is the type of the result, if it
  /// is written.
  Expected<Done> parse(Operation& op, const std::optional<Type>& declared) {
    for (bool first = true; !lexer_.at("}"); first = false) {
      if (!first) TESSERA_TRY_DONE(lexer_.expect(","));
      const Token token = lexer_.peek();
      TESSERA_TRY(const std::string name, lexer_.name("an attribute"));
      const auto* found =
          std::find_if(kAttributes.begin(), kAttributes.end(), [&](const Attribute& attribute) {
            return attribute.code == op.code && attribute.name == name;
          });
      if (found == kAttributes.end()) {
        return parts_.unsound(token,
                              fmt::format("{} has no attribute {}", operation_name(op), name),
                              "an attribute of docs/tile.md");
      }
      TESSERA_TRY_DONE(lexer_.expect("="));
      TESSERA_TRY_DONE(attribute(op, *found, declared));
    }
    lexer_.take();
    return Done{};
  }

 private:
  Expected<Done> attribute(Operation& op, const Attribute& attribute,
                           const std::optional<Type>& declared) {
    switch (attribute.field) {
      case Attribute::Field::Function: {
        const auto function = parse_function(lexer_.peek().text);
        if (lexer_.peek().kind != Token::Kind::Name || !function) {
          return lexer_.expected("a function");
        }
        op.function = *function;
        lexer_.take();
        return Done{};
      }
      case Attribute::Field::First: {
        TESSERA_TRY(op.ints[0], parts_.integer());
        return Done{};
      }
      case Attribute::Field::Second: {
        TESSERA_TRY(op.ints[1], parts_.integer());
        return Done{};
      }
      case Attribute::Field::Hint: op.text = attribute.name; [[fallthrough]];
      case Attribute::Field::Ints: {
        op.ints.clear();
        TESSERA_TRY_DONE(lexer_.expect("["));
        while (!lexer_.at("]")) {
          if (!op.ints.empty()) TESSERA_TRY_DONE(lexer_.expect(","));
          TESSERA_TRY(op.ints.emplace_back(), parts_.integer());
        }
        lexer_.take();
        return Done{};
      }
      case Attribute::Field::Number: {
        TESSERA_TRY(const Number number, parts_.number());
        const std::optional<Type> type = op.in.empty() ? declared : made_.type(op.in[0]);
        if (!type)
          return parts_.ill_typed(number.token, "this constant has no type",
                                  "name: type = const() {…}");
        TESSERA_TRY(op.literal, parts_.literal(number, type->dtype));
        return Done{};
      }
      case Attribute::Field::Text: {
        TESSERA_TRY(op.text, lexer_.string("a text in quotes"));
        return Done{};
      }
    }
    return Done{};
  }

  PartReader& parts_;
  Lexer& lexer_;  // of the parts
  const KernelInProgress& made_;
};

/// `(stages = 3, warps = 8, producers = tma)`; what is left out is chosen by the compiler.
Expected<Done> parse_block_request(PartReader& parts, BlockRequest& request) {
  constexpr std::int64_t kMost = 64;  // more than any block has
  Lexer& lexer = parts.lexer;
  TESSERA_TRY_DONE(lexer.expect("("));
  for (bool first = true; !lexer.at(")"); first = false) {
    if (!first) TESSERA_TRY_DONE(lexer.expect(","));
    const Token token = lexer.peek();
    TESSERA_TRY(const std::string name, lexer.name("stages, warps or producers"));
    TESSERA_TRY_DONE(lexer.expect("="));
    if (name == "producers") {
      TESSERA_TRY(const std::string kind, lexer.name("none, async or tma"));
      const auto producers = parse_producers(kind);
      if (!producers) return parts.unsound(token, kind + " are no producers", "none, async, tma");
      request.producers = *producers;
      continue;
    }
    if (name != "stages" && name != "warps")
      return parts.unsound(token, "a block has no " + name, "stages, warps or producers");
    TESSERA_TRY(const std::int64_t number, lexer.integer("a number"));
    if (number < 1 || number > kMost)
      return parts.unsound(token, fmt::format("{} is {}", name, number),
                           fmt::format("a number from 1 to {}", kMost));
    (name == "stages" ? request.stages : request.warps) = static_cast<int>(number);
  }
  lexer.take();
  return Done{};
}

/// Parser of the text form (docs/tile.md).
class Parser {
 public:
  Parser(std::string_view text, const std::string& file, const std::vector<Constant>& values)
      : parts_(text, file), lexer_(parts_.lexer), made_(parts_), values_(values) {}

  Expected<Kernel> parse() {
    Kernel& kernel = made_.kernel();
    TESSERA_TRY_DONE(lexer_.expect("kernel"));
    TESSERA_TRY(kernel.name, lexer_.name("the name of the kernel"));
    TESSERA_TRY_DONE(lexer_.expect("("));
    for (bool first = true; !lexer_.at(")"); first = false) {
      if (!first) TESSERA_TRY_DONE(lexer_.expect(","));
      TESSERA_TRY_DONE(parameter());
    }
    lexer_.take();
    if (lexer_.accept("block")) TESSERA_TRY_DONE(parse_block_request(parts_, kernel.block));
    TESSERA_TRY_DONE(lexer_.expect("{"));
    made_.open(kernel.body);
    TESSERA_TRY_DONE(statements(nullptr));
    TESSERA_TRY_DONE(lexer_.end());
    TESSERA_TRY_DONE(verify(kernel));
    return std::move(kernel);
  }

 private:
  // Parameters

  /// `x: view f32[?]`, or a constant with its default: `BLOCK: const = 1024`.
  Expected<Done> parameter() {
    Declared param{.token = lexer_.peek()};
    TESSERA_TRY(param.name, lexer_.name("a name"));
    if (!lexer_.accept(":")) return lexer_.expected("the type of the parameter");
    if (lexer_.accept("const")) return constant(param);
    TESSERA_TRY(const Type type, parts_.type());
    if (type.is_tile()) {
      return parts_.ill_typed(param.token,
                              fmt::format("parameter {} is {}", param.name, to_string(type)),
                              "a number, a pointer or a view");
    }
    TESSERA_TRY(const ValueId id, made_.define(param, type));
    made_.kernel().body.params.push_back(id);
    return Done{};
  }

  Expected<Done> constant(const Declared& param) {
    TESSERA_TRY_DONE(lexer_.expect("="));
    TESSERA_TRY(std::int64_t value, lexer_.integer("the default of the constant"));
    for (const Constant& given : values_)
      if (given.name == param.name) value = given.value;
    if (value < 1)
      return parts_.ill_typed(param.token, fmt::format("constant {} is {}", param.name, value),
                              "an integer of at least 1");
    if (made_.find(param.name))
      return parts_.unsound(param.token, fmt::format("{} is defined again", param.name),
                            "a name for each value");
    lexer_.define(param.name, static_cast<std::uint64_t>(value));
    made_.kernel().constants.push_back({param.name, value});
    return Done{};
  }

  // Operands

  Expected<ParsedOperand> operand() {
    const Nesting nesting(lexer_);
    if (nesting.too_deep()) return lexer_.error("this is nested too deeply");
    const Token token = lexer_.peek();
    if (parts_.at_number()) {
      ParsedOperand operand;
      TESSERA_TRY(operand.number, parts_.number());
      if (!lexer_.accept(":")) return operand;
      TESSERA_TRY(const Type type, parts_.type());
      TESSERA_TRY(operand.value, made_.constant(operand.number, type));
      return operand;
    }
    if (Lexer::is(lexer_.peek(1), "(") && token.kind == Token::Kind::Name) return nested();
    TESSERA_TRY(const std::string name, lexer_.name("an operand"));
    const std::optional<ValueId> found = made_.find(name);
    if (!found) {
      return parts_.unsound(token, fmt::format("{} is not defined here", name),
                            "a value that is defined before");
    }
    return ParsedOperand{.value = found};
  }

  /// Nested operation as an operand: `add(x, exp(y))`, `mul(x, broadcast(s): f32[8, 64])`.
  Expected<ParsedOperand> nested() {
    const Token token = lexer_.peek();
    TESSERA_TRY(Operation op, call({}));
    std::optional<Type> type;
    if (lexer_.accept(":")) {
      TESSERA_TRY(type, parts_.type());
    }
    const auto inferred = inferred_types(made_.kernel(), op);
    if (!type && inferred && inferred->size() == 1) type = inferred->front();
    if (!type) {
      return parts_.ill_typed(
          token, fmt::format("{} has no type", operation_name(op)),
          fmt::format("one result, and its type where it does not follow: {}(…): f32[64]",
                      operation_name(op)));
    }
    TESSERA_TRY(const ValueId id, made_.emit_one(std::move(op), *type, token));
    return ParsedOperand{.value = id};
  }

  Expected<std::vector<ParsedOperand>> operands() {
    TESSERA_TRY_DONE(lexer_.expect("("));
    std::vector<ParsedOperand> list;
    while (!lexer_.at(")")) {
      if (!list.empty()) TESSERA_TRY_DONE(lexer_.expect(","));
      TESSERA_TRY(list.emplace_back(), operand());
    }
    lexer_.take();
    return list;
  }

  // Operations

  Expected<Operation> operation_named() {
    const Token token = lexer_.peek();
    TESSERA_TRY(const std::string name, lexer_.name("an operation"));
    if (const auto function = parse_function(name); function && *function != Function::Exchange) {
      return Operation{.code = Code::Map, .function = *function};
    }
    const auto code = parse_code(name);
    if (!code || *code == Code::Map) {
      return parts_.unsound(token, fmt::format("{} is not an operation", name),
                            "an operation or a function of docs/tile.md");
    }
    return Operation{.code = *code};
  }

  /// Parses an operation with its operands and attributes; reduce and scan with their region too.
  Expected<Operation> call(const std::optional<Type>& declared) {
    const Token token = lexer_.peek();
    TESSERA_TRY(Operation op, operation_named());
    if (op.code == Code::For || op.code == Code::While || op.code == Code::If ||
        op.code == Code::Yield) {
      return parts_.unsound(token, fmt::format("{} inside of an operation", operation_name(op)),
                            "an operation that can be an operand");
    }
    op.source = parts_.source(token);
    TESSERA_TRY(const std::vector<ParsedOperand> list, operands());
    TESSERA_TRY_DONE(made_.set_operands(op, list, declared, token));
    for (const Attribute& attribute : kAttributes) {
      if (attribute.code != op.code) continue;
      if (attribute.field == Attribute::Field::First) op.ints.resize(1);
      if (attribute.field == Attribute::Field::Second) op.ints.resize(2);
    }
    if (lexer_.accept("{")) TESSERA_TRY_DONE(AttributeParser(parts_, made_).parse(op, declared));
    const bool folds = op.code == Code::Reduce || op.code == Code::Scan;
    if (folds && op.function == Function::None) TESSERA_TRY_DONE(combining_region(op));
    return op;
  }

  // Regions

  /// Parses the statements up to the closing brace. `yields` are the types of its yield, if known;
  /// without a yield it yields nothing.
  Expected<Done> statements(const std::vector<Type>* yields) {
    const Nesting nesting(lexer_);
    if (nesting.too_deep()) return lexer_.error("this is nested too deeply");
    const std::size_t outside = made_.scope();
    const Region& region = made_.innermost();
    while (!lexer_.at("}")) TESSERA_TRY_DONE(statement(yields));
    const Kernel& kernel = made_.kernel();
    const Token end = lexer_.take();
    const bool yielded = !region.ops.empty() && kernel.ops[region.ops.back()].code == Code::Yield;
    if (&region != &kernel.body && !yielded)
      TESSERA_TRY_DONE(made_.place_op({.code = Code::Yield}, end));
    made_.leave(outside);
    return Done{};
  }

  /// Parses a region with these parameters, after its opening brace.
  Expected<Region> region(const std::vector<Declared>& params, const std::vector<Type>& types,
                          const std::vector<Type>* yields) {
    const std::size_t outside = made_.scope();
    Region region;
    for (std::size_t i = 0; i < types.size(); ++i) {
      TESSERA_TRY(region.params.emplace_back(), made_.define(params[i], types[i]));
    }
    TESSERA_TRY_DONE(lexer_.expect("{"));
    made_.open(region);
    auto done = statements(yields);
    made_.close();
    if (!done) return std::move(done).error();
    made_.leave(outside);
    return region;
  }

  Expected<Done> combining_region(Operation& op) {
    const Token token = lexer_.peek();
    if (!lexer_.at("(")) return lexer_.expected("a function {fn = add}, or a region (a, b) {…}");
    lexer_.take();
    std::vector<Declared> params;
    while (!lexer_.at(")")) {
      if (!params.empty()) TESSERA_TRY_DONE(lexer_.expect(","));
      TESSERA_TRY(params.emplace_back(), parts_.declared());
    }
    lexer_.take();
    std::vector<Type> elements, both;
    for (const ValueId id : op.in) elements.push_back(made_.type(id).shaped({}));
    for (std::size_t i = 0; i < params.size(); ++i) {
      const bool follows = !elements.empty();
      if (!params[i].type && !follows)
        return parts_.ill_typed(token, "parameters of nothing", "operands");
      both.push_back(params[i].type ? *params[i].type : elements[i % elements.size()]);
    }
    TESSERA_TRY(Region body, region(params, both, &elements));
    op.regions.push_back(std::move(body));
    return Done{};
  }

  Expected<Done> statement(const std::vector<Type>* yields) {
    const Token token = lexer_.peek();
    std::vector<Declared> results;
    if (lexer_.accept("(")) {
      while (!lexer_.at(")")) {
        if (!results.empty()) TESSERA_TRY_DONE(lexer_.expect(","));
        TESSERA_TRY(results.emplace_back(), parts_.declared());
      }
      lexer_.take();
      TESSERA_TRY_DONE(lexer_.expect("="));
    } else if (Lexer::is(lexer_.peek(1), ":") || Lexer::is(lexer_.peek(1), "=")) {
      TESSERA_TRY(results.emplace_back(), parts_.declared());
      TESSERA_TRY_DONE(lexer_.expect("="));
    }
    const auto declared = results.size() == 1 ? results[0].type : std::optional<Type>{};
    if (parts_.at_number()) return number_statement(results, token);
    if (results.empty() && lexer_.at("yield")) return yield(yields);
    if (lexer_.at("for")) return for_loop(results);
    if (lexer_.at("while")) return while_loop(results);
    if (lexer_.at("if")) return if_else(results);
    TESSERA_TRY(Operation op, call(declared));
    return made_.emit(std::move(op), results, token);
  }

  /// `zero: f32[64] = 0.0`
  Expected<Done> number_statement(const std::vector<Declared>& results, const Token& token) {
    TESSERA_TRY(const Number number, parts_.number());
    std::optional<Type> type = results.size() == 1 ? results[0].type : std::optional<Type>{};
    if (!type && lexer_.accept(":")) {
      TESSERA_TRY(type, parts_.type());
    }
    if (!type || results.size() != 1) {
      return parts_.ill_typed(number.token, "this constant has no type", "name: type = number");
    }
    TESSERA_TRY(const Literal value, parts_.literal(number, type->dtype));
    return made_.emit({.code = Code::Const, .literal = value}, {{results[0].name, type, token}},
                      token);
  }

  Expected<Done> yield(const std::vector<Type>* types) {
    const Token token = lexer_.take();
    TESSERA_TRY(const std::vector<ParsedOperand> list, operands());
    Operation op{.code = Code::Yield};
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (list[i].value) {
        op.in.push_back(*list[i].value);
        continue;
      }
      const bool known = types && i < types->size();
      TESSERA_TRY(const ValueId id,
                  made_.constant(list[i].number, known ? (*types)[i] : std::optional<Type>{}));
      op.in.push_back(id);
    }
    if (!lexer_.at("}")) return lexer_.expected("the end of the region after its yield");
    TESSERA_TRY_DONE(made_.place_op(std::move(op), token));
    return Done{};
  }

  /// `acc: f32[64] = start, …` up to the closing parenthesis: parameters and what they start with.
  Expected<Done> carried(Operation& op, std::vector<Declared>& params, std::vector<Type>& types) {
    for (bool first = true; !lexer_.at(")"); first = false) {
      if (!first || op.code == Code::For) TESSERA_TRY_DONE(lexer_.expect(","));
      TESSERA_TRY(Declared param, parts_.declared());
      TESSERA_TRY_DONE(lexer_.expect("="));
      TESSERA_TRY(ParsedOperand start, operand());
      if (!start.value) {
        TESSERA_TRY(start.value, made_.constant(start.number, param.type));
      }
      op.in.push_back(*start.value);
      types.push_back(param.type ? *param.type : made_.type(*start.value));
      params.push_back(std::move(param));
    }
    lexer_.take();
    return Done{};
  }

  Expected<Done> for_loop(const std::vector<Declared>& results) {
    const Token token = lexer_.take();
    Operation op{.code = Code::For};
    std::vector<Declared> params;
    std::vector<Type> types;
    TESSERA_TRY_DONE(lexer_.expect("("));
    TESSERA_TRY(const Declared index, parts_.declared());
    TESSERA_TRY_DONE(lexer_.expect("="));
    std::optional<Type> type = index.type;
    std::vector<ParsedOperand> bounds;
    for (const std::string_view before : {"", "to", "step"}) {
      if (!before.empty()) TESSERA_TRY_DONE(lexer_.expect(before));
      TESSERA_TRY(const ParsedOperand bound, operand());
      if (bound.value && !type) type = made_.type(*bound.value);
      bounds.push_back(bound);
    }
    const Type known = type.value_or(Type::scalar(DType::I64));
    for (ParsedOperand& bound : bounds) {
      if (!bound.value) {
        TESSERA_TRY(bound.value, made_.constant(bound.number, known));
      }
      op.in.push_back(*bound.value);
    }
    params.push_back(index);
    types.push_back(known);
    TESSERA_TRY_DONE(carried(op, params, types));
    for (const std::string_view hint : {"stages", "unroll"}) {
      if (!lexer_.accept(hint)) continue;
      op.ints.resize(hint == "unroll" ? 2 : 1);
      TESSERA_TRY(op.ints.back(), lexer_.integer("a count"));
    }
    const std::vector<Type> yields(types.begin() + 1, types.end());
    TESSERA_TRY(Region body, region(params, types, &yields));
    op.regions.push_back(std::move(body));
    return made_.emit(std::move(op), results, token);
  }

  Expected<Done> while_loop(const std::vector<Declared>& results) {
    const Token token = lexer_.take();
    Operation op{.code = Code::While};
    std::vector<Declared> params;
    std::vector<Type> types;
    TESSERA_TRY_DONE(lexer_.expect("("));
    TESSERA_TRY_DONE(carried(op, params, types));
    const std::vector<Type> condition = {Type::scalar(DType::Bool)};
    TESSERA_TRY(Region test, region(params, types, &condition));
    TESSERA_TRY_DONE(lexer_.expect("do"));
    TESSERA_TRY(Region body, region(params, types, &types));
    op.regions.push_back(std::move(test));
    op.regions.push_back(std::move(body));
    return made_.emit(std::move(op), results, token);
  }

  Expected<Done> if_else(const std::vector<Declared>& results) {
    const Token token = lexer_.take();
    Operation op{.code = Code::If};
    TESSERA_TRY(const std::vector<ParsedOperand> list, operands());
    TESSERA_TRY_DONE(made_.set_operands(op, list, {}, token));
    std::vector<Type> yields;
    for (const Declared& result : results) {
      if (result.type) yields.push_back(*result.type);
    }
    const bool known = yields.size() == results.size();
    TESSERA_TRY(Region then, region({}, {}, known ? &yields : nullptr));
    op.regions.push_back(std::move(then));
    if (!known) yields = yielded_types(made_.kernel(), op.regions[0]);
    if (lexer_.accept("else")) {
      TESSERA_TRY(Region otherwise, region({}, {}, &yields));
      op.regions.push_back(std::move(otherwise));
    } else {
      Region nothing;
      made_.open(nothing);
      auto placed = made_.place_op({.code = Code::Yield}, token);
      made_.close();
      if (!placed) return std::move(placed).error();
      op.regions.push_back(std::move(nothing));
    }
    return made_.emit(std::move(op), results, token);
  }

  PartReader parts_;
  Lexer& lexer_;  // of the parts
  KernelInProgress made_;
  const std::vector<Constant>& values_;  // of constants, in place of their defaults
};

}  // namespace

Expected<Kernel> parse_kernel(std::string_view text, const std::string& file,
                              const std::vector<Constant>& values) {
  return Parser(text, file, values).parse();
}

}  // namespace tessera::tile
