#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "tessera/ops/families.h"

namespace tessera::define {
namespace {

/// Operand of a matmul: batch axes and the axes of the matrix.
struct Factor {
  Operand operand;
  Scalar value;
  std::vector<Scalar> at = {};  // where it is read
};

/// The argument without its last `count` axes.
Argument without_last(Argument argument, int count) {
  argument.type.shape.resize(argument.type.shape.size() - static_cast<std::size_t>(count));
  return argument;
}

struct Factors {
  Factor a, b;
  std::vector<Axis> result;
  Axis sum{"k"};
};

Expected<Factors> factors_of(const Signature& in) {
  if (in[0].rank() < 1 || in[1].rank() < 1)
    return bad_operands("a factor has no axes", "it needs at least one");
  // A vector operand is a row or a column, whose other axis is not in the result.
  const bool has_m = in[0].rank() > 1, has_n = in[1].rank() > 1;
  const Axis m{"m"}, n{"n"}, k{"k"};
  const std::vector<Axis> left = has_m ? std::vector{m, k} : std::vector{k};
  const std::vector<Axis> right = has_n ? std::vector{k, n} : std::vector{k};
  const Broadcast batch = broadcast(
      {"a", "b"}, {without_last(in[0], has_m ? 2 : 1), without_last(in[1], has_n ? 2 : 1)});

  const auto factor = [&](std::size_t i, const std::vector<Axis>& matrix) -> Factor {
    Operand operand = batch.operands[i];
    operand.shape = tessera::concat(operand.shape, sizes(matrix));
    std::vector<Scalar> at = tessera::concat(batch.at[i], indices(matrix));
    const Scalar value = operand(at);
    return {std::move(operand), value, std::move(at)};
  };
  Factors result{.a = factor(0, left), .b = factor(1, right), .result = batch.axes};
  if (has_m) result.result.push_back(m);
  if (has_n) result.result.push_back(n);
  return result;
}

Expected<Definition> product_of_matrices(const Attrs&, const Signature& in) {
  TESSERA_TRY_DONE(check_same_dtype(in));
  TESSERA_TRY_DONE(check_domain(Domain::Numbers, in[0].dtype()));
  TESSERA_TRY(const Factors f, factors_of(in));
  return Definition{.inputs = {f.a.operand, f.b.operand},
                    .outputs = {output(in[0].dtype(), each(f.result),
                                       tessera::sum({f.sum}, f.a.value * f.b.value))}};
}

/// Zero point of an operand: one number, one per row of the left or column of the right operand, or
/// a broadcast tensor.
Expected<Factor> zero_point(std::string name, const Argument& given, const Factor& of,
                            bool of_rows) {
  const int rank = static_cast<int>(of.at.size());
  const int first =
      of_rows && given.rank() == 1 && rank > 1 ? rank - 2 : rank - static_cast<int>(given.rank());
  if (first < 0 || !is_integer(given.dtype()))
    return bad_operands(fmt::format("{} has {} axes", name, given.rank()),
                        "it is an integer, one for each line, or broadcast to its factor");
  Operand operand{std::move(name), given.dtype()};
  std::vector<Scalar> at;
  for (int i = 0; i < given.rank(); ++i) {
    const auto axis = static_cast<std::size_t>(first + i);
    const bool repeated = given.dim(i).is(1);
    operand.shape.push_back(repeated ? Dim(1) : of.operand.shape[axis]);
    at.push_back(repeated ? Scalar(0) : of.at[axis]);
  }
  const Scalar value = operand(at);
  return Factor{std::move(operand), value, std::move(at)};
}

Expected<Definition> integer_product(const Attrs&, const Signature& in) {
  for (const std::size_t i : {0, 1})
    TESSERA_TRY_DONE(check_domain(Domain::Integers, in[i].dtype()));
  TESSERA_TRY(const Factors f, factors_of(in));
  std::vector<Operand> inputs{f.a.operand, f.b.operand};
  Scalar a = f.a.value, b = f.b.value;
  if (given(in, 2)) {
    TESSERA_TRY(const Factor zero, zero_point("a_zero_point", in[2], f.a, true));
    inputs.push_back(zero.operand);
    a = a - zero.value;
  }
  if (given(in, 3)) {
    TESSERA_TRY(const Factor zero, zero_point("b_zero_point", in[3], f.b, false));
    inputs.push_back(zero.operand);
    b = b - zero.value;
  }
  return Definition{.inputs = std::move(inputs),
                    .outputs = {output(DType::I32, each(f.result), tessera::sum({f.sum}, a * b))}};
}

/// Multiplies x by a factor that need not be representable in its type.
Scalar scaled(const Scalar& x, double factor, DType dtype) {
  if (factor == 1.0) return x;
  return is_float(dtype) ? x * factor : tessera::cast(dtype, tessera::cast(dtype, x) * factor);
}

Expected<Definition> scaled_product(const Attrs& attrs, const Signature& in) {
  TESSERA_TRY_DONE(check_same_dtype(in));
  TESSERA_TRY_DONE(check_domain(Domain::Numbers, in[0].dtype()));
  if (in[0].rank() != 2 || in[1].rank() != 2 || (given(in, 2) && in[2].rank() > 2))
    return bad_operands(fmt::format("the factors have {} and {} axes", in[0].rank(), in[1].rank()),
                        "both have to be matrices, and c at most one");
  const DType dtype = in[0].dtype();
  const Axis m{"m"}, n{"n"}, k{"k"};
  const auto matrix = [&](std::size_t i, const char* name, std::vector<Axis> axes,
                          const char* transposed) -> Factor {
    if (attrs.i(transposed) != 0) std::ranges::reverse(axes);
    Operand operand{name, in[i].dtype(), sizes(axes)};
    const Scalar value = operand(indices(axes));
    return {std::move(operand), value};
  };
  const Factor a = matrix(0, "a", {m, k}, "transA"), b = matrix(1, "b", {k, n}, "transB");
  std::vector<Operand> operands{a.operand, b.operand};
  Scalar value = scaled(tessera::sum({k}, a.value * b.value), attrs.f("alpha"), dtype);
  if (given(in, 2)) {
    Operand c{"c", dtype};
    std::vector<Scalar> at;
    for (int i = 0; i < in[2].rank(); ++i) {
      const Axis& axis = i + 2 - in[2].rank() == 0 ? m : n;
      const bool repeated = in[2].dim(i).is(1);
      c.shape.push_back(repeated ? Dim(1) : axis.size());
      at.push_back(repeated ? Scalar(0) : Scalar(axis));
    }
    value = value + scaled(c(at), attrs.f("beta"), dtype);
    operands.push_back(std::move(c));
  }
  return Definition{.inputs = operands, .outputs = {output(dtype, each({m, n}), value)}};
}

/// Labels of one term of an einsum equation; `dots` is the position of `...` among them.
struct Term {
  std::string labels;
  std::optional<std::size_t> dots = {};
};

struct Equation {
  std::vector<Term> inputs;
  std::optional<Term> result = {};
};

Expected<Equation> parse_equation(std::string_view text) {
  Equation equation{.inputs = {Term{}}};
  Term* term = &equation.inputs.back();
  const auto wrong = [&](std::size_t at) {
    return bad_operands(fmt::format("the equation '{}' goes wrong at character {}", text, at + 1),
                        "it has to be of the form ij,jk->ik");
  };
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == ' ') continue;
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      term->labels += c;
    } else if (text.substr(at, 3) == "..." && !term->dots) {
      term->dots = term->labels.size();
      at += 2;
    } else if (text.substr(at, 2) == "->" && !equation.result) {
      term = &equation.result.emplace();
      at += 1;
    } else if (c == ',' && !equation.result) {
      term = &equation.inputs.emplace_back();
    } else {
      return wrong(at);
    }
  }
  return equation;
}

/// Without `->`, the result has the labels that occur once, in order.
Term implicit_result(const std::vector<Term>& inputs) {
  std::map<char, int> occurrences;
  Term result;
  for (const Term& term : inputs) {
    for (const char label : term.labels) ++occurrences[label];
    if (term.dots) result.dots = 0;
  }
  for (const auto& [label, count] : occurrences)
    if (count == 1) result.labels += label;
  return result;
}

/// Axes of a term; `dotted` are the axes of its `...`.
template <class T, class Labelled>
std::vector<T> spread(const Term& term, const std::vector<T>& dotted, const Labelled& labelled) {
  std::vector<T> result;
  for (std::size_t i = 0; i <= term.labels.size(); ++i) {
    if (term.dots == i) result.insert(result.end(), dotted.begin(), dotted.end());
    if (i < term.labels.size()) result.push_back(labelled(term.labels[i]));
  }
  return result;
}

Expected<Definition> einstein_sum(const Attrs& attrs, const Signature& in) {
  TESSERA_TRY_DONE(check_same_dtype(in));
  TESSERA_TRY_DONE(check_domain(Domain::Numbers, in[0].dtype()));
  TESSERA_TRY(const Equation equation, parse_equation(attrs.s("equation")));
  if (equation.inputs.size() != in.size())
    return bad_operands(fmt::format("the equation has {} terms", equation.inputs.size()),
                        fmt::format("there are {} inputs", in.size()));

  // Number of axes that `...` stands for in each input.
  int dotted = 0;
  std::vector<int> under;
  for (std::size_t i = 0; i < in.size(); ++i) {
    const Term& term = equation.inputs[i];
    under.push_back(in[i].rank() - static_cast<int>(term.labels.size()));
    if (under[i] < 0 || (under[i] > 0 && !term.dots))
      return bad_operands(fmt::format("input {} has {} axes", i, in[i].rank()),
                          fmt::format("the equation names {}", term.labels.size()));
    dotted = std::max(dotted, under[i]);
  }
  const std::vector<Axis> dots = axes("dot", dotted);
  const auto named = [](char label) { return Axis{std::string("at_") + label}; };
  const auto axes_of = [&](std::size_t i) {
    return spread<Axis>(equation.inputs[i], {dots.end() - under[i], dots.end()}, named);
  };

  // An axis whose size is 1 everywhere has no other size to be solved from.
  std::map<std::string, bool> single;
  for (std::size_t i = 0; i < in.size(); ++i) {
    const std::vector<Axis> run = axes_of(i);
    for (std::size_t axis = 0; axis < run.size(); ++axis) {
      const bool one = in[i].type.shape[axis].is(1);
      single[run[axis].name] = one && single.try_emplace(run[axis].name, true).first->second;
    }
  }
  const auto sized_axis = [&](Axis axis) {
    if (single[axis.name]) axis.extent = 1;
    return axis;
  };

  std::vector<Operand> operands;
  std::optional<Scalar> product;
  for (std::size_t i = 0; i < in.size(); ++i) {
    Operand operand{fmt::format("x{}", i), in[i].dtype()};
    std::vector<Scalar> at;
    for (const Axis& axis : axes_of(i)) {
      const bool repeated = in[i].type.shape[at.size()].is(1);
      operand.shape.push_back(repeated ? Dim(1) : axis.size());
      at.push_back(repeated ? Scalar(0) : Scalar(axis));
    }
    const Scalar factor = operand(at);
    product = product ? *product * factor : factor;
    operands.push_back(std::move(operand));
  }

  const Term result = equation.result.value_or(implicit_result(equation.inputs));
  if (dotted > 0 && !result.dots)
    return bad_operands("the equation drops the axes under '...'", "the result has to name them");
  std::vector<Axis> kept = spread<Axis>(result, dots, named);
  for (Axis& axis : kept) {
    if (!single.contains(axis.name))
      return bad_operands(fmt::format("the result has the label {}", axis.name.substr(3)),
                          "no input has it");
    if (std::ranges::count(kept, axis.name, &Axis::name) > 1)
      return bad_operands(fmt::format("the result has the label {} twice", axis.name.substr(3)));
    axis = sized_axis(axis);
  }
  std::vector<Axis> summed;
  for (const auto& [name, one] : single)
    if (std::ranges::find(kept, name, &Axis::name) == kept.end())
      summed.push_back(sized_axis({name}));
  return Definition{
      .inputs = operands,
      .outputs = {output(in[0].dtype(), each(kept),
                         summed.empty() ? *product : tessera::sum(bounds(summed), *product))}};
}

}  // namespace

OpDef matmul() {
  return {.name = "matmul",
          .summary = "product of matrices, of vectors, and of stacks of them",
          .inputs = {"a", "b"},
          .define = product_of_matrices};
}

OpDef matmul_integer() {
  return {.name = "matmul_integer",
          .summary = "(a - a_zero_point) @ (b - b_zero_point) as i32",
          .inputs = {"a", "b", "a_zero_point?", "b_zero_point?"},
          .define = integer_product};
}

OpDef gemm() {
  return {.name = "gemm",
          .summary = "alpha * a * b + beta * c, with a and b transposed if asked for",
          .inputs = {"a", "b", "c?"},
          .attrs = {{"alpha", 1.0}, {"beta", 1.0}, flag_attr("transA", 0), flag_attr("transB", 0)},
          .define = scaled_product};
}

OpDef einsum() {
  return {.name = "einsum",
          .summary = "sum of products, as an equation of labels says",
          .inputs = {"x+"},
          .attrs = {required_attr("equation", std::string())},
          .define = einstein_sum};
}

}  // namespace tessera::define
