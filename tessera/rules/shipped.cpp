#include "tessera/rules/shipped.h"

#include "tessera/rules/text.h"

namespace tessera::rules {
namespace {

constexpr std::string_view kGenerated = "rules/generated/", kMutants = "rules/mutants/";

template <class Wanted>
Expected<std::vector<Rule>> from_files(const Wanted& is_wanted) {
  std::vector<Rule> all;
  for (const ShippedFile& file : shipped_files()) {
    if (!is_wanted(file.name)) continue;
    TESSERA_TRY(std::vector<Rule> rules, parse_rules(file.text, std::string(file.name)));
    std::move(rules.begin(), rules.end(), std::back_inserter(all));
  }
  return all;
}

}  // namespace

Expected<std::vector<Rule>> shipped_by_hand() {
  return from_files([](std::string_view name) {
    return !name.starts_with(kGenerated) && !name.starts_with(kMutants);
  });
}

Expected<std::vector<Rule>> shipped_by_enumeration() {
  return from_files([](std::string_view name) { return name.starts_with(kGenerated); });
}

Expected<std::vector<Rule>> shipped_mutants() {
  return from_files([](std::string_view name) { return name.starts_with(kMutants); });
}

Expected<std::vector<Rule>> shipped() {
  TESSERA_TRY(std::vector<Rule> all, shipped_by_hand());
  for (const auto& more : {shipped_by_enumeration, shipped_mutants}) {
    TESSERA_TRY(std::vector<Rule> others, more());
    std::move(others.begin(), others.end(), std::back_inserter(all));
  }
  return all;
}

}  // namespace tessera::rules
