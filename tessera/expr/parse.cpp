#include "tessera/expr/text.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <unordered_map>

#include "tessera/expr/grammar.h"
#include "tessera/expr/walk.h"
#include "tessera/expr/well_formed.h"

namespace tessera {
namespace {

using grammar::Level;

constexpr std::string_view kTooDeep = "this is nested too deeply";

// --- sizes

Expected<Dim> dim_sum(Lexer& lexer);

Expected<Dim> dim_atom(Lexer& lexer) {
  const Nesting nesting(lexer);
  if (nesting.too_deep()) return lexer.error(std::string(kTooDeep));
  // A number takes its sign with it, so that the smallest integer can be said.
  const int ahead = lexer.at("-") ? 1 : 0;
  if (lexer.peek(ahead).kind == Token::Kind::Integer) {
    TESSERA_TRY(const std::int64_t value, lexer.integer("an integer"));
    return Dim(value);
  }
  if (lexer.accept("-")) {
    TESSERA_TRY(const Dim arg, dim_atom(lexer));
    return -arg;
  }
  if (lexer.accept("(")) {
    TESSERA_TRY(Dim inner, dim_sum(lexer));
    TESSERA_TRY_DONE(lexer.expect(")"));
    return inner;
  }
  if (lexer.peek().kind != Token::Kind::Name) return lexer.expected("a size");
  const Token name = lexer.take();
  if (name.quoted) return Dim::symbol(name.text);
  if (name.text == "undefined") return Dim::undefined();
  using Function = Dim (*)(const Dim&, const Dim&);
  static constexpr std::pair<std::string_view, Function> kFunctions[] = {
      {"floor_div", floor_div}, {"ceil_div", ceil_div}, {"mod", mod}, {"min", min}, {"max", max}};
  for (const auto& [known, function] : kFunctions) {
    if (name.text != known || !lexer.at("(")) continue;
    TESSERA_TRY_DONE(lexer.expect("("));
    TESSERA_TRY(const Dim a, dim_sum(lexer));
    TESSERA_TRY_DONE(lexer.expect(","));
    TESSERA_TRY(const Dim b, dim_sum(lexer));
    TESSERA_TRY_DONE(lexer.expect(")"));
    return function(a, b);
  }
  return Dim::symbol(name.text);
}

Expected<Dim> dim_sum(Lexer& lexer) {
  constexpr int kMostTerms = 1000;
  Dim sum = 0;
  for (int terms = 0; terms < kMostTerms; ++terms) {
    TESSERA_TRY(Dim product, dim_atom(lexer));
    while (lexer.accept("*")) {
      TESSERA_TRY(const Dim factor, dim_atom(lexer));
      product = product * factor;
    }
    sum = sum + product;
    // A minus is left to the next term.
    if (!lexer.accept("+") && !lexer.at("-")) return sum;
  }
  return lexer.error("this sum is too long");
}

// --- definitions

/// An infix sign; a > b is b < a, and a != b is !(a == b).
struct Sign {
  grammar::Infix infix;
  bool swapped = false, negated = false;
};

constexpr auto kSigns = [] {
  std::array<Sign, grammar::kInfix.size() + 3> signs = {};
  auto end = std::ranges::transform(grammar::kInfix, signs.begin(), [](const grammar::Infix& row) {
               return Sign{row};
             }).out;
  *end++ = {.infix = {">", Fn::Less, grammar::kCompare}, .swapped = true};
  *end++ = {.infix = {">=", Fn::LessEqual, grammar::kCompare}, .swapped = true};
  *end = {.infix = {"!=", Fn::Equal, grammar::kCompare}, .negated = true};
  return signs;
}();

/// Items between two signs, separated by commas.
template <class T, class Item>
Expected<std::vector<T>> comma_list(Lexer& lexer, std::string_view open, std::string_view close,
                                    const Item& item) {
  TESSERA_TRY_DONE(lexer.expect(open));
  std::vector<T> result;
  while (!lexer.accept(close)) {
    if (!result.empty()) TESSERA_TRY_DONE(lexer.expect(","));
    TESSERA_TRY(T value, item());
    result.push_back(std::move(value));
  }
  return result;
}

/// Parser of expressions: what an element is, over the operands that are declared and the names
/// that `let` introduces.
class ExpressionParser {
 public:
  explicit ExpressionParser(Lexer& lexer) : lexer_(lexer) {}

  /// Makes an operand known; false if there is one of its name.
  bool declare(const Operand& operand) { return operands_.emplace(operand.name, operand).second; }

  /// `let … in expression`.
  Expected<Scalar> whole_expression() {
    const bool any = lexer_.at("let");
    TESSERA_TRY_DONE(lets());
    if (any) TESSERA_TRY_DONE(lexer_.expect("in"));
    return expression();
  }

  /// Definitions of names: `let %a = …`, `let (%a, %b) = fold …`.
  Expected<Done> lets() {
    while (lexer_.accept("let")) {
      std::vector<std::string> names;
      const bool tuple = lexer_.at("(");
      const auto let_name = [&]() -> Expected<std::string> {
        if (lexer_.peek().quoted || !lexer_.peek().text.starts_with('%'))
          return lexer_.expected("a name that begins with %");
        return lexer_.name("a name that begins with %");
      };
      if (tuple) {
        TESSERA_TRY(names, comma_list<std::string>(lexer_, "(", ")", let_name));
      } else {
        TESSERA_TRY(std::string single, let_name());
        names.push_back(std::move(single));
      }
      TESSERA_TRY_DONE(lexer_.expect("="));
      std::vector<Scalar> values;
      if (tuple) {
        TESSERA_TRY_DONE(lexer_.expect("fold"));
        TESSERA_TRY(values, fold_components());
      } else {
        TESSERA_TRY(Scalar value, expression());
        values.push_back(std::move(value));
      }
      if (values.size() != names.size())
        return lexer_.error(fmt::format("{} names for {} values", names.size(), values.size()));
      for (std::size_t i = 0; i < names.size(); ++i)
        if (!lets_.emplace(names[i], values[i]).second)
          return lexer_.error(fmt::format("{} has two meanings", names[i]));
    }
    return Done{};
  }

  Expected<Scalar> expression() {
    const Nesting nesting(lexer_);
    if (nesting.too_deep()) return lexer_.error(std::string(kTooDeep));
    TESSERA_TRY(Scalar result, infix(grammar::kOr));
    if (!lexer_.at("else")) return result;
    const auto* read = std::get_if<node::Read>(&result.node());
    if (read == nullptr || read->otherwise != nullptr)
      return lexer_.error("else follows something that is not read", "as in (x[i] else 0.0) * 2.0");
    lexer_.take();
    TESSERA_TRY(Scalar otherwise, expression());
    node::Read guarded = *read;
    guarded.otherwise = std::make_shared<const Scalar>(std::move(otherwise));
    return sealed(Scalar(Node(std::move(guarded))));
  }

  /// A position along an axis.
  Expected<Scalar> position() {
    TESSERA_TRY(Scalar result, expression());
    if (result.sort() != Sort::Integer && result.sort() != Sort::Unsigned)
      return lexer_.error(fmt::format("an index is a {}", to_string(result.sort())),
                          "it has to be an integer");
    return result;
  }

 private:
  // The deepest expression, counted in nodes: sums of many terms are not nested text, but they are
  // deep.
  static constexpr int kDeepest = 1000;
  static constexpr std::size_t kMostComponents = 64;

  /// One or more expressions, separated by commas.
  Expected<std::vector<Scalar>> expressions() {
    std::vector<Scalar> result;
    do {
      TESSERA_TRY(Scalar value, expression());
      result.push_back(std::move(value));
    } while (lexer_.accept(","));
    return result;
  }

  // Every expression that has parts passes through here.
  Expected<Scalar> sealed(Scalar scalar) {
    int deepest = 0;
    for_each_part(scalar, [&](const Scalar& part) {
      if (const auto it = depths_.find(part.id()); it != depths_.end())
        deepest = std::max(deepest, it->second);
    });
    if (deepest >= kDeepest) return lexer_.error(std::string(kTooDeep));
    if (const std::string why = sort_error(scalar); !why.empty()) return lexer_.error(why);
    depths_[scalar.id()] = deepest + 1;
    kept_.push_back(scalar);
    return scalar;
  }

  Expected<Scalar> infix(Level least) {
    TESSERA_TRY(Scalar left, unary());
    for (bool compared = false;;) {
      const Sign* found = nullptr;
      for (const Sign& sign : kSigns)
        if (lexer_.at(sign.infix.sign)) found = &sign;
      if (found == nullptr || found->infix.level < least) return left;
      if (found->infix.level == grammar::kCompare && std::exchange(compared, true))
        return lexer_.error("comparisons do not chain", "a < b && b < c");
      lexer_.take();
      TESSERA_TRY(Scalar right, infix(static_cast<Level>(found->infix.level + 1)));
      if (found->swapped) std::swap(left, right);
      TESSERA_TRY(left, sealed(apply(found->infix.fn, {left, right})));
      if (found->negated) {
        TESSERA_TRY(left, sealed(apply(Fn::Not, {left})));
      }
    }
  }

  Expected<Scalar> unary() {
    const Nesting nesting(lexer_);
    if (nesting.too_deep()) return lexer_.error(std::string(kTooDeep));
    const bool number =
        lexer_.peek(1).kind == Token::Kind::Integer || lexer_.peek(1).kind == Token::Kind::Float;
    if (lexer_.at("-") && number) {
      lexer_.take();
      return constant(true);
    }
    for (const auto& [sign, fn] : {std::pair("-", Fn::Neg), std::pair("!", Fn::Not)}) {
      if (!lexer_.accept(sign)) continue;
      TESSERA_TRY(Scalar arg, unary());
      return sealed(apply(fn, {std::move(arg)}));
    }
    return atom();
  }

  Expected<Scalar> constant(bool negative) {
    const Token& token = lexer_.peek();
    if (token.kind == Token::Kind::Float) {
      const double number = lexer_.take().number;
      return Scalar(negative ? -number : number);
    }
    const std::uint64_t magnitude = token.integer;
    const Sort sort = token.is_unsigned ? Sort::Unsigned : Sort::Integer;
    if (sort == Sort::Integer && magnitude > (std::uint64_t{1} << 63) - (negative ? 0 : 1))
      return lexer_.error("this integer exceeds 64 bits");
    if (sort == Sort::Unsigned && negative) return lexer_.error("this integer is unsigned");
    lexer_.take();
    const auto integer = static_cast<std::int64_t>(negative ? 0 - magnitude : magnitude);
    return Scalar(Node(node::Constant{.sort = sort, .integer = integer}));
  }

  Expected<Scalar> atom() {
    if (lexer_.accept("(")) {
      TESSERA_TRY(Scalar result, expression());
      TESSERA_TRY_DONE(lexer_.expect(")"));
      return result;
    }
    if (lexer_.peek().kind == Token::Kind::Integer || lexer_.peek().kind == Token::Kind::Float)
      return constant(false);
    if (lexer_.peek().kind != Token::Kind::Name) return lexer_.expected("an expression");
    if (Lexer::is(lexer_.peek(1), "[")) return read();
    if (lexer_.peek().quoted) return index_of(lexer_.take().text);
    if (Lexer::is(lexer_.peek(1), "(")) return call();
    if (lexer_.at("true") || lexer_.at("false")) return truth(lexer_.take().text == "true");
    const std::string& name = lexer_.peek().text;
    if (std::ranges::count(grammar::kReserved, name) != 0) return lexer_.expected("an expression");
    if (name.starts_with('#')) return Scalar(Dim::symbol(lexer_.take().text));
    if (name.starts_with('%')) {
      const auto let = lets_.find(name);
      if (let == lets_.end()) return lexer_.error(fmt::format("{} has no meaning yet", name));
      lexer_.take();
      return let->second;
    }
    for (const std::string_view side : grammar::kSides)
      if (name.starts_with(side)) return partial(side);
    return index_of(lexer_.take().text);
  }

  Expected<Scalar> partial(std::string_view side) {
    std::string_view rest = lexer_.peek().text;
    rest.remove_prefix(side.size());
    int component = 0;
    std::size_t digits = 0;
    for (; digits < rest.size() && digits < 3 && rest[digits] >= '0' && rest[digits] <= '9';
         ++digits)
      component = component * 10 + (rest[digits] - '0');
    const std::string_view suffix = rest.substr(digits);
    const auto row = std::ranges::find(grammar::kSortSuffixes, suffix, &grammar::SortSuffix::text);
    if (digits == 0 || row == grammar::kSortSuffixes.end())
      return lexer_.error(fmt::format("{} is no component of a fold", lexer_.peek().text));
    Sort sort = row->sort;
    if (suffix.empty() && !combined_.empty()) {
      if (static_cast<std::size_t>(component) >= combined_.back().size())
        return lexer_.error(fmt::format("the fold has {} components", combined_.back().size()));
      sort = combined_.back()[static_cast<std::size_t>(component)];
    }
    lexer_.take();
    return Scalar(Node(node::Partial{
        side == grammar::kSides[0] ? node::Partial::Side::Left : node::Partial::Side::Right,
        component, sort}));
  }

  Expected<Scalar> read() {
    const auto operand = operands_.find(lexer_.peek().text);
    if (operand == operands_.end())
      return lexer_.error(fmt::format("there is no operand {}", lexer_.peek().text));
    const Operand& source = operand->second;
    lexer_.take();
    if (sort_of(source.dtype) == Sort::Text) return lexer_.error("text cannot be read");
    TESSERA_TRY(std::vector<Scalar> at,
                comma_list<Scalar>(lexer_, "[", "]", [&] { return position(); }));
    if (at.size() != source.shape.size())
      return lexer_.error(fmt::format("{} has {} axes and is read at {}", source.name,
                                      source.shape.size(), at.size()));
    return sealed(source(std::move(at)));
  }

  Expected<Scalar> call() {
    const Token name = lexer_.peek();
    if (const std::optional<DType> to = parse_dtype(name.text); to && *to != DType::String) {
      lexer_.take();
      TESSERA_TRY(std::vector<Scalar> args, arguments(1));
      return sealed(cast(*to, args[0]));
    }
    if (lexer_.accept("size")) {
      TESSERA_TRY_DONE(lexer_.expect("("));
      TESSERA_TRY(Dim dim, parse_dim(lexer_));
      TESSERA_TRY_DONE(lexer_.expect(")"));
      return Scalar(Node(node::Size{std::move(dim)}));
    }
    for (const grammar::NamedFold& named : grammar::kNamedFolds) {
      if (!lexer_.accept(named.name)) continue;
      TESSERA_TRY(std::vector<Bound> over, bounds());
      const bool braces = lexer_.accept("{");
      TESSERA_TRY(const Scalar term, expression());
      if (braces) TESSERA_TRY_DONE(lexer_.expect("}"));
      return sealed(named.make(std::move(over), term));
    }
    if (lexer_.accept("fold")) {
      TESSERA_TRY(std::vector<Scalar> components, fold_components());
      std::int64_t which = 0;
      if (components.size() > 1) {
        TESSERA_TRY_DONE(lexer_.expect("."));
        TESSERA_TRY(which, lexer_.integer("the number of a component"));
        if (which < 0 || which >= static_cast<std::int64_t>(components.size()))
          return lexer_.error(fmt::format("the fold has {} components", components.size()));
      }
      return components[static_cast<std::size_t>(which)];
    }
    const std::optional<Fn> fn = parse_fn(name.text);
    if (!fn) return lexer_.error(fmt::format("there is no function {}", name.text));
    lexer_.take();
    TESSERA_TRY(std::vector<Scalar> args, arguments(static_cast<std::size_t>(arity(*fn))));
    return sealed(apply(*fn, std::move(args)));
  }

  Expected<std::vector<Scalar>> arguments(std::size_t count) {
    TESSERA_TRY(std::vector<Scalar> args,
                comma_list<Scalar>(lexer_, "(", ")", [&] { return expression(); }));
    if (args.size() != count)
      return lexer_.error(fmt::format("{} arguments are given", args.size()),
                          fmt::format("the function takes {}", count));
    return args;
  }

  Expected<std::vector<Bound>> bounds() {
    return comma_list<Bound>(lexer_, "(", ")", [&]() -> Expected<Bound> {
      TESSERA_TRY(std::string name, lexer_.name("the name of an axis"));
      if (!lexer_.accept(":")) return Bound(Axis{std::move(name)});
      TESSERA_TRY(Scalar extent, position());
      return Bound{std::move(name), std::move(extent)};
    });
  }

  /// What follows the word `fold`.
  Expected<std::vector<Scalar>> fold_components() {
    Fold fold;
    TESSERA_TRY(fold.bounds, bounds());
    TESSERA_TRY_DONE(lexer_.expect("{"));
    TESSERA_TRY_DONE(lexer_.expect("from"));
    TESSERA_TRY(fold.init, expressions());
    if (fold.init.size() > kMostComponents) return lexer_.error("the fold has too many components");
    TESSERA_TRY_DONE(lexer_.expect("take"));
    TESSERA_TRY(fold.lift, expressions());
    TESSERA_TRY_DONE(lexer_.expect("by"));
    std::vector<Sort> sorts;
    for (const Scalar& init : fold.init) sorts.push_back(init.sort());
    combined_.push_back(std::move(sorts));
    auto combine = expressions();
    combined_.pop_back();
    TESSERA_TRY(fold.combine, std::move(combine));
    if (fold.lift.size() != fold.init.size() || fold.combine.size() != fold.init.size())
      return lexer_.error(fmt::format("a fold from {} values takes {} by {}", fold.init.size(),
                                      fold.lift.size(), fold.combine.size()));
    TESSERA_TRY_DONE(lexer_.expect("}"));
    std::vector<Scalar> components;
    const auto shared = std::make_shared<const Fold>(std::move(fold));
    for (int i = 0; i < static_cast<int>(shared->init.size()); ++i) {
      TESSERA_TRY(Scalar component, sealed(Scalar(Node(node::Component{shared, i}))));
      components.push_back(std::move(component));
    }
    return components;
  }

  Lexer& lexer_;
  std::map<std::string, Operand, std::less<>> operands_;
  std::map<std::string, Scalar, std::less<>> lets_;
  std::vector<std::vector<Sort>> combined_;  // of the folds whose combine is being read
  std::unordered_map<const void*, int> depths_;
  std::vector<Scalar> kept_;  // so that no two expressions have the same id
};

/// Parser of definitions: the operands, then each output with its axes and its expression.
class DefinitionParser {
 public:
  explicit DefinitionParser(Lexer& lexer) : lexer_(lexer), expressions_(lexer) {}

  Expected<Definition> definition() {
    Definition result;
    TESSERA_TRY_DONE(lexer_.expect("define"));
    TESSERA_TRY(result.inputs, comma_list<Operand>(lexer_, "(", ")", [&] { return operand(); }));
    TESSERA_TRY_DONE(lexer_.expect("{"));
    TESSERA_TRY_DONE(expressions_.lets());
    std::set<std::string> names;
    while (!lexer_.accept("}")) {
      TESSERA_TRY(Output output, this->output());
      if (!names.insert(output.name).second)
        return lexer_.error(fmt::format("there are two outputs {}", output.name));
      result.outputs.push_back(std::move(output));
    }
    return result;
  }

 private:
  Expected<DType> dtype() {
    const std::optional<DType> known = parse_dtype(lexer_.peek().text);
    if (!known || lexer_.peek().kind != Token::Kind::Name) return lexer_.expected("a dtype");
    lexer_.take();
    return *known;
  }

  Expected<Operand> operand() {
    Operand result;
    TESSERA_TRY(result.name, lexer_.name("the name of an operand"));
    TESSERA_TRY_DONE(lexer_.expect(":"));
    TESSERA_TRY(result.dtype, dtype());
    TESSERA_TRY(result.shape, comma_list<Dim>(lexer_, "[", "]", [&] { return parse_dim(lexer_); }));
    if (!expressions_.declare(result))
      return lexer_.error(fmt::format("there are two operands {}", result.name));
    return result;
  }

  Expected<Axis> axis() {
    Axis result;
    TESSERA_TRY(result.name, lexer_.name("the name of an axis"));
    if (lexer_.accept(":")) {
      TESSERA_TRY(result.extent, parse_dim(lexer_));
    }
    return result;
  }

  Expected<MergedAxis> merged() {
    MergedAxis result;
    if (lexer_.at("(")) {
      TESSERA_TRY(result.parts, comma_list<Axis>(lexer_, "(", ")", [&] { return axis(); }));
    } else {
      TESSERA_TRY(Axis single, axis());
      result.parts.push_back(std::move(single));
    }
    return result;
  }

  Expected<Output> output() {
    TESSERA_TRY(std::string name, lexer_.name("the name of an output"));
    TESSERA_TRY_DONE(lexer_.expect(":"));
    TESSERA_TRY(const DType dtype, this->dtype());
    TESSERA_TRY(std::vector<MergedAxis> axes,
                comma_list<MergedAxis>(lexer_, "[", "]", [&] { return merged(); }));
    TESSERA_TRY_DONE(lexer_.expect("="));
    TESSERA_TRY(Scalar value, expressions_.expression());
    Output result{std::move(name), dtype, std::move(axes), std::move(value)};
    if (lexer_.accept("scatter")) {
      TESSERA_TRY(result.forward, forward());
      if (result.forward->target.size() != result.axes.size())
        return lexer_.error(fmt::format("{} has {} axes and is written at {}", result.name,
                                        result.axes.size(), result.forward->target.size()));
    }
    return result;
  }

  Expected<ScatterWrite> forward() {
    ScatterWrite result;
    TESSERA_TRY(result.over, comma_list<Axis>(lexer_, "(", ")", [&] { return axis(); }));
    TESSERA_TRY_DONE(lexer_.expect("at"));
    TESSERA_TRY(result.target,
                comma_list<Scalar>(lexer_, "[", "]", [&] { return expressions_.position(); }));
    if (!lexer_.accept(grammar::kAssign)) {
      result.combine = parse_fn(lexer_.peek().text);
      if (!result.combine || arity(*result.combine) != 2)
        return lexer_.expected("set, or a function of two arguments,");
      lexer_.take();
    }
    TESSERA_TRY(result.value, expressions_.expression());
    return result;
  }

  Lexer& lexer_;
  ExpressionParser expressions_;
};

}  // namespace

Expected<Dim> parse_dim(Lexer& lexer) {
  return dim_sum(lexer);
}

Expected<Dim> parse_dim(std::string_view text) {
  Lexer lexer(text);
  TESSERA_TRY(Dim dim, parse_dim(lexer));
  TESSERA_TRY_DONE(lexer.end());
  return dim;
}

Expected<Scalar> parse_scalar(std::string_view text, const std::vector<Operand>& operands) {
  Lexer lexer(text);
  ExpressionParser parser(lexer);
  for (const Operand& operand : operands) parser.declare(operand);
  TESSERA_TRY(Scalar scalar, parser.whole_expression());
  TESSERA_TRY_DONE(lexer.end());
  return scalar;
}

Expected<Definition> parse_definition(Lexer& lexer) {
  TESSERA_TRY(Definition definition, DefinitionParser(lexer).definition());
  if (const std::string why = scope_error(definition); !why.empty()) return lexer.error(why);
  return definition;
}

Expected<Definition> parse_definition(std::string_view text) {
  Lexer lexer(text);
  TESSERA_TRY(Definition definition, parse_definition(lexer));
  TESSERA_TRY_DONE(lexer.end());
  return definition;
}

}  // namespace tessera
