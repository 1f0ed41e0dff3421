#include "tessera/tile/interp.h"
#include "tessera/tile/text.h"
#include "tessera/tile/verify.h"
#include "tessera/triton/lower.h"
#include "tests/fuzz/fuzz.h"

using namespace tessera;

namespace {

constexpr std::int64_t kMostElements = 256;  // of a tile of a kernel that is run
constexpr std::size_t kMostText = 1 << 20;   // of tile IR that is printed and read again

/// Runs a kernel on small memory: whatever it does, the answer is a diagnostic or memory.
void run_small(const tile::Kernel& kernel) {
  for (const tile::Value& value : kernel.values) {
    if (!value.type.is_view() && value.type.count() > kMostElements) return;
  }
  alignas(8) static std::byte memory[4096] = {};
  std::vector<tile::Argument> arguments;
  for (const tile::ValueId id : kernel.params()) {
    const tile::Type& type = kernel.type(id);
    arguments.push_back(type.is_number()
                            ? tile::Argument::integer(type.dtype, 1)
                            : tile::Argument::pointer(type.dtype, memory, sizeof memory));
  }
  (void)tile::interpret(kernel, arguments, {2, 1, 1}, {.most_steps = 500});
}

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
  run_small(*kernel);
  return 0;
}
