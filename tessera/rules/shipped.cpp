#include "tessera/rules/shipped.h"

#include "tessera/rules/text.h"

namespace tessera::rules {
namespace {

Expected<Done> add(bool generated, std::vector<Rule>& into) {
  for (const ShippedFile& file : shipped_files()) {
    if (file.name.starts_with("rules/generated/") != generated) continue;
    TESSERA_TRY(std::vector<Rule> rules, parse_rules(file.text, std::string(file.name)));
    std::move(rules.begin(), rules.end(), std::back_inserter(into));
  }
  return Done{};
}

}  // namespace

Expected<std::vector<Rule>> shipped_by_hand() {
  std::vector<Rule> all;
  TESSERA_TRY_DONE(add(false, all));
  return all;
}

Expected<std::vector<Rule>> shipped_by_enumeration() {
  std::vector<Rule> all;
  TESSERA_TRY_DONE(add(true, all));
  return all;
}

Expected<std::vector<Rule>> shipped() {
  TESSERA_TRY(std::vector<Rule> all, shipped_by_hand());
  TESSERA_TRY_DONE(add(true, all));
  return all;
}

}  // namespace tessera::rules
