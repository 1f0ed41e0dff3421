#include "tessera/expr/condition.h"

#include "tessera/expr/text.h"

namespace tessera {

Condition equal(Dim left, Dim right) {
  return {Condition::Kind::Equal, std::move(left), std::move(right)};
}

Condition at_most(Dim left, Dim right) {
  return {Condition::Kind::AtMost, std::move(left), std::move(right)};
}

Expected<bool> holds(const Condition& condition, const SizeValues& sizes) {
  const auto value = [&](const Dim& dim) {
    return dim
        .substituted([&](std::string_view symbol) -> std::optional<Dim> {
          const auto it = sizes.find(symbol);
          return it == sizes.end() ? std::nullopt : std::optional<Dim>(it->second);
        })
        .constant();
  };
  const std::optional<std::int64_t> left = value(condition.left), right = value(condition.right);
  if (!left || !right)
    return Diagnostic{.id = "guard-open",
                      .message = fmt::format("{} cannot be told", to_text(condition)),
                      .note = "a size in it has no value, or is beyond 64 bits"};
  return condition.kind == Condition::Kind::Equal ? *left == *right : *left <= *right;
}

Expected<bool> holds(const Guard& guard, const SizeValues& sizes) {
  for (const Condition& condition : guard) {
    TESSERA_TRY(const bool yes, holds(condition, sizes));
    if (!yes) return false;
  }
  return true;
}

std::string to_text(const Condition& condition) {
  return condition.left.to_string() + (condition.kind == Condition::Kind::Equal ? " == " : " <= ") +
         condition.right.to_string();
}

std::string to_text(const Guard& guard) {
  std::string text;
  for (const Condition& condition : guard) text += (text.empty() ? "" : ", ") + to_text(condition);
  return text;
}

Expected<Condition> parse_condition(Lexer& lexer) {
  TESSERA_TRY(Dim left, parse_dim(lexer));
  for (const std::string_view known : {"==", "<=", ">=", "<", ">"}) {
    if (!lexer.accept(known)) continue;
    TESSERA_TRY(Dim right, parse_dim(lexer));
    if (known == "==") return equal(std::move(left), std::move(right));
    if (known.starts_with('>')) std::swap(left, right);
    return known.size() == 1 ? at_most(left + 1, std::move(right))
                             : at_most(std::move(left), std::move(right));
  }
  return lexer.expected("a comparison");
}

}  // namespace tessera
