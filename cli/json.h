#pragma once

#include <nlohmann/json.hpp>

#include "tessera/prove/verdict.h"

namespace tessera::cli {

/// Prints a JSON object; invalid UTF-8 is replaced.
void print_json(const nlohmann::json& object);

/// JSON of a verdict: with `assumptions` (kind and text), a `counterexample`, or `why`.
nlohmann::json verdict_json(const prove::Verdict& verdict);

}  // namespace tessera::cli
