#pragma once

#include <utility>
#include <variant>

#include "tessera/support/check.h"
#include "tessera/support/diagnostic.h"

namespace tessera {

/// Result of a function that can fail: a value or a Diagnostic (like llvm::Expected).
template <class T>
class [[nodiscard]] Expected {
 public:
  using Value = T;

  // NOLINTBEGIN(google-explicit-constructor): `return value;` and `return Diagnostic{…};` read best
  Expected(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Expected(Diagnostic error) : state_(std::in_place_index<1>, std::move(error)) {}
  // NOLINTEND(google-explicit-constructor)

  explicit operator bool() const { return state_.index() == 0; }
  bool has_value() const { return state_.index() == 0; }

  T& operator*() & { return value(); }
  const T& operator*() const& { return const_cast<Expected*>(this)->value(); }
  T&& operator*() && { return std::move(value()); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &**this; }

  const Diagnostic& error() const& {
    TESSERA_CHECK(!has_value(), "error() of a result");
    return std::get<1>(state_);
  }
  Diagnostic&& error() && { return std::get<1>(std::move(state_)); }

 private:
  T& value() {
    TESSERA_CHECK(has_value(), "{}", to_string(std::get<1>(state_)));
    return std::get<0>(state_);
  }

  std::variant<T, Diagnostic> state_;
};

/// Unit type: Expected<Done> is success without a value, or a diagnostic.
struct Done {};

}  // namespace tessera

// NOLINTBEGIN(bugprone-macro-parentheses): a declaration cannot stand in parentheses
#define TESSERA_CONCAT_(a, b) a##b
#define TESSERA_CONCAT(a, b) TESSERA_CONCAT_(a, b)
#define TESSERA_TRY_(temporary, declaration, expression) \
  auto temporary = (expression);                         \
  if (!temporary) return std::move(temporary).error();   \
  declaration = *std::move(temporary)

/// Declares a variable from an Expected, or returns its diagnostic: TESSERA_TRY(Graph g,
/// read(path));
#define TESSERA_TRY(declaration, expression) \
  TESSERA_TRY_(TESSERA_CONCAT(expected_, __LINE__), declaration, expression)
// NOLINTEND(bugprone-macro-parentheses)

/// Returns the diagnostic of an Expected whose value is not needed.
#define TESSERA_TRY_DONE(expression)                       \
  do {                                                     \
    if (auto expected_done = (expression); !expected_done) \
      return std::move(expected_done).error();             \
  } while (false)
