#include "tessera/ir/text.h"
#include "tessera/ir/verify.h"
#include "tests/fuzz/fuzz.h"

using namespace tessera;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto graph = parse_graph(fuzz::text_of(data, size));
  if (!graph) return 0;
  fuzz::require(verify(*graph), "what is read is valid");
  const std::string text = to_text(*graph);
  const auto again = parse_graph(text);
  if (!again) fuzz::require(false, text, to_string(again.error()));
  fuzz::require(to_text(*again) == text, "what is printed prints the same", text);
  fuzz::run_small(*graph);
  return 0;
}
