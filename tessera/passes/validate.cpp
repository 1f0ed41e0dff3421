#include "tessera/passes/validate.h"

#include <fmt/format.h>

#include "tessera/prove/sweep.h"

namespace tessera::passes {

Expected<Done> validated(const std::string& pass, const Graph& before, const Graph& after) {
  if (before.hash() == after.hash()) return Done{};
  TESSERA_TRY(const prove::SweepResult result, prove::sweep(before, after, {}));
  const auto* refuted = std::get_if<prove::Refuted>(&result.verdict);
  if (refuted == nullptr) return Done{};
  return Diagnostic{
      .id = "pass-changed-meaning",
      .message = fmt::format("{} changed what the model computes: {}", pass, refuted->what),
      .note = "this is a bug in tessera",
      .help = fmt::format("go on without it: --disable-pass {}", pass)};
}

}  // namespace tessera::passes
