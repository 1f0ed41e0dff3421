#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <vector>

#include "tessera/certify/check.h"

/// Conditions of inferences: how the checker states them, and how reasons show them.
namespace tessera::certify {

inline Diagnostic wrong(std::string message) {
  return {.id = "certificate-wrong", .message = std::move(message)};
}

/// Returns a `certificate-wrong` diagnostic where the condition does not hold.
#define CERTIFY(condition, ...) \
  if (!(condition)) return wrong(fmt::format(__VA_ARGS__))

/// Whether a reason shows that e >= 0.
bool holds(const Dim& e, const Reason& reason, const std::vector<Dim>& premises);

/// Clears the premises that mention a name; the others keep their numbers.
void forget(std::vector<Dim>& premises, const std::string& name);

/// Term without one of its factors.
algebra::Term without_factor(algebra::Term term, std::size_t factor);

}  // namespace tessera::certify
