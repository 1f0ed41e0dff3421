#include <fmt/format.h>

#include "tessera/certify/certificate.h"
#include "tessera/support/lexer.h"

namespace tessera::certify {
namespace {

using algebra::Factor;
using algebra::Term;

std::string list_text(const std::vector<Dim>& dims) {
  std::string text;
  for (const Dim& dim : dims) text += (text.empty() ? "" : ", ") + dim.to_string();
  return text;
}

std::string args_text(const Factor& factor) {
  std::string text;
  if (factor.args != nullptr)
    for (const algebra::Sum& arg : *factor.args) text += (text.empty() ? "" : ", ") + sum_text(arg);
  return text;
}

std::string base_text(const Factor& factor) {
  using Kind = Factor::Kind;
  switch (factor.kind) {
    case Kind::Number: return fmt::format("size[{}]", list_text(factor.at));
    case Kind::Read: return fmt::format("@{}[{}]", name_text(factor.name), list_text(factor.at));
    case Kind::Apply:
      return fmt::format("{}{}({})", factor.to == DType::I64 ? "integer " : "",
                         to_string(factor.fn), args_text(factor));
    case Kind::Cast: return fmt::format("cast {}({})", to_string(factor.to), args_text(factor));
    case Kind::Power: return fmt::format("({})", args_text(factor));
    case Kind::Group: return fmt::format("{{{}}}", args_text(factor));
    case Kind::Most: return fmt::format("most({})", args_text(factor));
    case Kind::Fold: return fmt::format("fold {}({})", factor.component, args_text(factor));
    case Kind::Bottom: return "bottom";
  }
  return "";
}

std::string term_text(const Term& term) {
  std::string text;
  if (!term.bound.empty() || !term.guards.empty()) {
    text = "sum(";
    for (const std::string& name : term.bound)
      text += (text.size() == 4 ? "" : ", ") + name_text(name);
    text += fmt::format("; {}) ", list_text(term.guards));
  }
  text += term.coefficient.to_string();
  for (const Factor& factor : term.factors) {
    text += " * " + base_text(factor);
    if (!factor.exponent.is(1)) text += "^" + factor.exponent.to_string();
  }
  return text;
}

}  // namespace

std::string sum_text(const algebra::Sum& sum) {
  std::string text;
  for (const Term& term : sum.terms) text += (text.empty() ? "" : " + ") + term_text(term);
  return text.empty() ? "0" : text;
}

}  // namespace tessera::certify
