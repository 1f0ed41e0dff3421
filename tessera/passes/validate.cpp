#include "tessera/passes/validate.h"

#include <fmt/format.h>

#include "tessera/ir/same_graph.h"
#include "tessera/prove/sweep.h"

namespace tessera::passes {

Expected<std::string> validated(const std::string& pass, const Graph& before, const Graph& after) {
  if (before.hash() == after.hash() && same_graph(before, after)) return std::string("unchanged");
  TESSERA_TRY(const prove::SweepResult result, prove::sweep(before, after, {}));
  const auto* refuted = std::get_if<prove::Refuted>(&result.verdict);
  if (const auto* unknown = std::get_if<prove::Unknown>(&result.verdict))
    return fmt::format("unknown: {}", unknown->why);
  if (refuted == nullptr) return std::string(to_string(result.verdict));
  return Diagnostic{
      .id = "pass-changed-meaning",
      .message = fmt::format("{} changed the result of the model: {}", pass, refuted->what),
      .note = "this is a bug in tessera",
      .help = fmt::format("skip the pass with --disable-pass {}", pass)};
}

}  // namespace tessera::passes
