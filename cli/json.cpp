#include "cli/json.h"

#include <fmt/format.h>

namespace tessera::cli {

void print_json(const nlohmann::json& object) {
  fmt::print("{}\n", object.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

nlohmann::json verdict_json(const prove::Verdict& verdict) {
  nlohmann::json object = {{"verdict", prove::to_string(verdict)}};
  if (const auto* proved = std::get_if<prove::Proved>(&verdict)) {
    object["assumptions"] = nlohmann::json::array();
    for (const prove::Assumption& assumption : proved->assumptions)
      object["assumptions"].push_back(
          {{"kind", prove::to_string(assumption.kind)}, {"text", assumption.text}});
  } else if (const auto* refuted = std::get_if<prove::Refuted>(&verdict)) {
    object["counterexample"] = {{"output", refuted->output},
                                {"position", refuted->position},
                                {"source", refuted->source},
                                {"target", refuted->target},
                                {"what", refuted->what}};
  } else {
    object["why"] = std::get<prove::Unknown>(verdict).why;
  }
  return object;
}

}  // namespace tessera::cli
