#include "tessera/superopt/generate/opset.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "tessera/ir/literal.h"
#include "tessera/ir/text.h"
#include "tessera/support/file.h"

namespace tessera::superopt {
namespace {

constexpr std::size_t kMostVariables = 60, kMostOperators = 200, kMostArgs = 3, kMostAxes = 8;
constexpr std::int64_t kMostElements = 100'000, kLargestSize = 64;

class SetParser {
 public:
  explicit SetParser(Lexer& lexer) : lexer_(lexer) {}

  Expected<OperatorSet> set() {
    TESSERA_TRY_DONE(lexer_.expect("set"));
    TESSERA_TRY(set_.name, lexer_.name("the name of the set"));
    while (lexer_.peek().kind != Token::Kind::End) TESSERA_TRY_DONE(statement());
    if (set_.sizes.size() < 2)
      return invalid(fmt::format("{} choices of sizes are stated", set_.sizes.size()),
                     "coincidences of sizes are told apart by a second one: two lines `sizes …`");
    if (set_.inputs.empty() || set_.operators.empty())
      return invalid("it has no inputs or no operators");
    return std::move(set_);
  }

 private:
  Diagnostic invalid(std::string message, std::string note = {}) const {
    return {.id = "set-invalid",
            .where = lexer_.where(lexer_.peek()),
            .message = std::move(message),
            .note = std::move(note)};
  }

  Expected<Done> statement() {
    if (lexer_.accept("sizes")) return sizes();
    if (lexer_.accept("most")) {
      TESSERA_TRY(set_.most_elements, lexer_.integer("a number of elements"));
      if (set_.most_elements < 1 || set_.most_elements > kMostElements)
        return invalid(fmt::format("a tensor may have {} elements", set_.most_elements),
                       fmt::format("it is a number from 1 to {}", kMostElements));
      return lexer_.expect("elements");
    }
    if (lexer_.accept("input")) return input({});
    if (lexer_.accept("like")) return input({.like = true});
    if (lexer_.accept("weight")) return input({.weight = true});
    if (lexer_.accept("op")) return op();
    return lexer_.expected("sizes, most, input, like, weight or op");
  }

  /// `n=2 k=3`
  Expected<Done> sizes() {
    SizeValues values;
    std::set<std::int64_t> seen;
    while (Lexer::is(lexer_.peek(1), "=")) {
      TESSERA_TRY(const std::string name, lexer_.name("a size"));
      TESSERA_TRY_DONE(lexer_.expect("="));
      TESSERA_TRY(const std::int64_t value, lexer_.integer("its value"));
      if (value < 2 || value > kLargestSize || !seen.insert(value).second)
        return invalid(
            fmt::format("{} is {}", name, value),
            fmt::format("sizes are from 2 to {}, and no two of one line are equal", kLargestSize));
      if (!values.emplace(name, value).second) return invalid(name + " is stated twice");
    }
    const auto same_names = [&] {
      return std::ranges::equal(values, set_.sizes.front(), {}, &SizeValues::value_type::first,
                                &SizeValues::value_type::first);
    };
    if (values.empty() || (!set_.sizes.empty() && !same_names()))
      return invalid("this line has other sizes than the first");
    set_.sizes.push_back(std::move(values));
    return Done{};
  }

  bool is_size(const std::string& name) const {
    return !set_.sizes.empty() && set_.sizes.front().contains(name);
  }

  struct InputKind {
    bool like = false, weight = false;
  };
  Expected<Done> input(const InputKind& kind) {
    OperatorSet::Input input;
    input.like = kind.like;
    input.weight = kind.weight;
    do {
      TESSERA_TRY(std::string name, lexer_.name("the name of an input"));
      if (!names_.insert(name).second) return invalid("two inputs are called " + name);
      input.names.push_back(std::move(name));
    } while (lexer_.accept(","));
    TESSERA_TRY_DONE(lexer_.expect(":"));
    TESSERA_TRY(input.type, parse_type(lexer_));
    if (!input.type.is_ranked_tensor() || input.type.dtype != DType::F32 ||
        input.type.shape->size() > kMostAxes)
      return invalid("an input is " + to_string(input.type),
                     fmt::format("it is a tensor of f32 with up to {} axes", kMostAxes));
    std::set<std::string> used;
    for (const Dim& dim : *input.type.shape) dim.collect_symbols(used);
    for (const std::string& name : used)
      if (!is_size(name)) return invalid(fmt::format("the size {} has no value", name));
    for (const Dim& dim : *input.type.shape)
      input.general.push_back(dim.constant() ? dim : Dim::symbol("_"));
    if (lexer_.accept("as")) {
      TESSERA_TRY(const Type general, parse_type(lexer_));
      if (!general.shape || general.shape->size() != input.type.shape->size())
        return invalid("the general form has another number of axes");
      std::set<std::string> symbols;
      for (const Dim& dim : *general.shape) dim.collect_symbols(symbols);
      if (symbols.size() > 1 || (symbols.size() == 1 && !symbols.contains("_")))
        return invalid("a size of a general form is called _");
      input.general = *general.shape;
    }
    set_.inputs.push_back(std::move(input));
    if (set_.variables() > kMostVariables)
      return invalid("there are too many inputs", fmt::format("up to {}", kMostVariables));
    return Done{};
  }

  Expected<std::vector<OperatorSet::Item>> pattern() {
    using Kind = OperatorSet::Item::Kind;
    std::vector<OperatorSet::Item> items;
    TESSERA_TRY_DONE(lexer_.expect("["));
    while (!lexer_.accept("]")) {
      if (lexer_.accept("*")) {
        TESSERA_TRY(std::string name, lexer_.name("a list of sizes"));
        items.push_back({Kind::List, std::move(name)});
      } else {
        TESSERA_TRY(const Dim dim, parse_size(lexer_));
        const auto symbol = dim.as_symbol();
        if (symbol == "_")
          items.push_back({Kind::Any});
        else if (symbol && !is_size(std::string(*symbol)))
          items.push_back({Kind::Name, std::string(*symbol)});
        else
          items.push_back({Kind::Size, {}, dim});
      }
      if (!lexer_.at("]")) TESSERA_TRY_DONE(lexer_.expect(","));
    }
    const auto lists = std::ranges::count(items, Kind::List, &OperatorSet::Item::kind);
    if (lists > 1) return invalid("a shape has two lists of any length");
    return items;
  }

  /// `x.1`: an axis of an argument.
  Expected<OperatorSet::AxisOf> axis_of(const std::vector<OperatorSet::Arg>& args) {
    const Diagnostic wrong = invalid("an axis of an argument is expected", "as in x.1");
    TESSERA_TRY(const std::string text, lexer_.name("an axis of an argument"));
    const std::size_t dot = text.rfind('.');
    if (dot == std::string::npos) return wrong;
    OperatorSet::AxisOf axis;
    const auto arg = std::ranges::find(args, text.substr(0, dot), &OperatorSet::Arg::name);
    const char* const end = text.data() + text.size();
    const auto read = std::from_chars(text.data() + dot + 1, end, axis.axis);
    if (arg == args.end() || read.ec != std::errc() || read.ptr != end || axis.axis >= kMostAxes)
      return wrong;
    axis.arg = static_cast<std::size_t>(arg - args.begin());
    return axis;
  }

  Expected<Done> op() {
    const Diagnostic twice = invalid("two operators have this name");
    OperatorSet::Operator made;
    TESSERA_TRY(made.name, lexer_.name("the name of an operator"));
    if (std::ranges::find(set_.operators, made.name, &OperatorSet::Operator::name) !=
        set_.operators.end())
      return twice;
    TESSERA_TRY_DONE(lexer_.expect("("));
    std::vector<NamedType> inputs;
    while (!lexer_.accept(")")) {
      OperatorSet::Arg arg;
      arg.like = lexer_.accept("like");
      arg.weight = !arg.like && lexer_.accept("weight");
      TESSERA_TRY(arg.name, lexer_.name("the name of an argument"));
      if (lexer_.accept(":")) {
        TESSERA_TRY(arg.shape, pattern());
      }
      inputs.push_back({arg.name, Type{.kind = Type::Kind::Tensor, .dtype = DType::F32}});
      made.args.push_back(std::move(arg));
      if (!lexer_.at(")")) TESSERA_TRY_DONE(lexer_.expect(","));
    }
    if (made.args.empty() || made.args.size() > kMostArgs)
      return invalid(fmt::format("{} has {} arguments", made.name, made.args.size()),
                     fmt::format("an operator of a set has 1 to {}", kMostArgs));
    if (lexer_.accept("where")) {
      do {
        OperatorSet::Quotient quotient;
        TESSERA_TRY(quotient.attr, lexer_.name("the name of an attribute"));
        TESSERA_TRY_DONE(lexer_.expect("="));
        TESSERA_TRY(quotient.whole, axis_of(made.args));
        TESSERA_TRY_DONE(lexer_.expect("/"));
        TESSERA_TRY(quotient.part, axis_of(made.args));
        made.quotients.push_back(std::move(quotient));
      } while (lexer_.accept(","));
    }
    if (lexer_.accept("cut")) {
      const Type size = Type::tensor(DType::I64, {1});
      TESSERA_TRY(std::string first, lexer_.name("the first part"));
      TESSERA_TRY_DONE(lexer_.expect(","));
      TESSERA_TRY(std::string second, lexer_.name("the second part"));
      TESSERA_TRY_DONE(lexer_.expect("="));
      TESSERA_TRY(made.cut, axis_of(made.args));
      inputs.push_back({std::move(first), size});
      inputs.push_back({std::move(second), size});
    }
    TESSERA_TRY(made.body, parse_body(lexer_, inputs));
    if (made.body.outputs().empty()) return invalid(made.name + " returns nothing");
    set_.operators.push_back(std::move(made));
    if (set_.operators.size() > kMostOperators)
      return invalid("there are too many operators", fmt::format("up to {}", kMostOperators));
    return Done{};
  }

  Lexer& lexer_;
  OperatorSet set_;
  std::set<std::string> names_;
};

}  // namespace

std::size_t OperatorSet::variables() const {
  std::size_t count = 0;
  for (const Input& input : inputs) count += input.names.size();
  return count;
}

Expected<OperatorSet> parse_set(std::string_view text, const std::string& file) {
  Lexer lexer(text, file);
  return SetParser(lexer).set();
}

Expected<OperatorSet> load_set(const std::string& name_or_path) {
  const std::string file = "sets/" + name_or_path + ".set";
  const auto shipped = std::ranges::find(shipped_sets(), file, &ShippedSet::name);
  if (shipped != shipped_sets().end()) return parse_set(shipped->text, file);
  TESSERA_TRY(const std::string text, read_text(name_or_path));
  return parse_set(text, name_or_path);
}

}  // namespace tessera::superopt
