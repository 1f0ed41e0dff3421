#pragma once

#include <string>
#include <utility>
#include <variant>

#include "tessera/support/check.h"

namespace tessera::tile::gpu {

/// Reason why an optimization does not apply, as a short phrase for reports: "a write comes before
/// the loop".
struct DeclineReason {
  std::string why;
};

/// An optimization decision: its parameters, or the reason why it does not apply. Neither is an
/// error.
template <class T>
class [[nodiscard]] Decision {
 public:
  // NOLINTBEGIN(google-explicit-constructor): `return value;` and `return DeclineReason{…};` read
  // best
  Decision(T what) : state_(std::in_place_index<0>, std::move(what)) {}
  Decision(DeclineReason reason) : state_(std::in_place_index<1>, std::move(reason)) {}
  // NOLINTEND(google-explicit-constructor)

  explicit operator bool() const { return state_.index() == 0; }
  const T& operator*() const {
    TESSERA_CHECK(state_.index() == 0, "{}", std::get<1>(state_).why);
    return std::get<0>(state_);
  }
  const T* operator->() const { return &**this; }
  /// Reason for not applying it; empty where it applies.
  std::string why_not() const { return state_.index() == 0 ? "" : std::get<1>(state_).why; }

 private:
  std::variant<T, DeclineReason> state_;
};

}  // namespace tessera::tile::gpu
