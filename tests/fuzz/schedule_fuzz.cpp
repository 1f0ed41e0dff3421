#include "tessera/expr/text.h"
#include "tessera/tile/schedule.h"
#include "tests/fuzz/fuzz.h"

using namespace tessera;

namespace {

tile::Schedule start() {
  const auto definition = fuzz::require(
      parse_definition(
          "define(a: f32[#i, #k], b: f32[#k, #j]) { c: f32[i, j] = sum(k) a[i, k] * b[k, j] }"),
      "the definition parses");
  return fuzz::require(
      tile::Schedule::of(fuzz::require(
          tile::then({}, definition, {{"a", DType::F32, {6, 8}}, {"b", DType::F32, {8, 10}}}),
          "it has stages")),
      "they have loops");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto steps = tile::parse_schedule(fuzz::text_of(data, size));
  if (!steps) return 0;
  const std::string text = tile::to_text(*steps);
  const auto again = tile::parse_schedule(text);
  if (!again) fuzz::require(false, text, to_string(again.error()));
  fuzz::require(*again == *steps, "what is printed parses back", text);
  static const tile::Schedule schedule = start();
  const auto applied = schedule.apply(*steps);
  if (applied) fuzz::require(tile::to_text(*applied) == text, "steps are kept", text);
  return 0;
}
