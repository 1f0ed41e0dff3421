#include "tessera/rules/shipped.h"

#include "tessera/rules/text.h"

namespace tessera::rules {
namespace {

constexpr std::string_view kGenerated = "rules/generated/";

template <class Wanted>
Expected<std::vector<Rule>> from_files(const Wanted& is_wanted) {
  std::vector<Rule> all;
  for (const ShippedFile& file : shipped_files()) {
    if (!is_wanted(file.name.starts_with(kGenerated))) continue;
    TESSERA_TRY(std::vector<Rule> rules, parse_rules(file.text, std::string(file.name)));
    std::move(rules.begin(), rules.end(), std::back_inserter(all));
  }
  return all;
}

}  // namespace

Expected<std::vector<Rule>> shipped_by_hand() {
  return from_files([](bool generated) { return !generated; });
}

Expected<std::vector<Rule>> shipped_by_enumeration() {
  return from_files([](bool generated) { return generated; });
}

Expected<std::vector<Rule>> shipped() {
  TESSERA_TRY(std::vector<Rule> all, shipped_by_hand());
  TESSERA_TRY(std::vector<Rule> others, shipped_by_enumeration());
  std::move(others.begin(), others.end(), std::back_inserter(all));
  return all;
}

}  // namespace tessera::rules
