#include "tessera/tile/text.h"
#include "tessera/tile/verify.h"
#include "tessera/triton/lower.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/tile_kernel.h"

using namespace tessera;

namespace {

constexpr std::size_t kMostText = 1 << 20;  // of tile IR that is printed and read again

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto kernel = triton::kernel_of(fuzz::text_of(data, size));
  if (!kernel) return 0;
  fuzz::require(tile::verify(*kernel), "what is lowered is valid");
  const std::string text = tile::to_text(*kernel);
  if (text.size() > kMostText) return 0;
  const auto again = tile::parse_kernel(text);
  if (!again) fuzz::require(false, text, to_string(again.error()));
  fuzz::require(tile::to_text(*again) == text, "what is printed prints the same", text);
  fuzz::run_small(*kernel);
  return 0;
}
