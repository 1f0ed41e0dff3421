#include "tessera/rules/text.h"
#include "tests/fuzz/fuzz.h"

using namespace tessera;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto rules = rules::parse_rules(fuzz::text_of(data, size));
  if (!rules) return 0;
  for (const rules::Rule& rule : *rules) {
    const std::string text = rules::to_text(rule);
    const auto again = rules::parse_rules(text);
    if (!again) fuzz::require(false, text, to_string(again.error()));
    fuzz::require(rules::to_text(again->at(0)) == text, "what is printed prints the same", text);
  }
  return 0;
}
