#include "tessera/rules/shipped.h"

#include "tessera/rules/text.h"

namespace tessera::rules {

Expected<std::vector<Rule>> shipped() {
  std::vector<Rule> all;
  for (const ShippedFile& file : shipped_files()) {
    TESSERA_TRY(std::vector<Rule> rules, parse_rules(file.text, std::string(file.name)));
    std::move(rules.begin(), rules.end(), std::back_inserter(all));
  }
  return all;
}

}  // namespace tessera::rules
