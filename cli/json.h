#pragma once

#include <nlohmann/json.hpp>

#include "tessera/prove/verdict.h"

namespace tessera::cli {

/// Prints an object for scripts; text that is no UTF-8 is printed with replacements.
void print_json(const nlohmann::json& object);

/// A verdict and what comes with it: `assumptions` (of a kind and a text), a `counterexample`, or
/// `why`.
nlohmann::json verdict_json(const prove::Verdict& verdict);

}  // namespace tessera::cli
