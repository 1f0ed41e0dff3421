#include "tessera/support/npy.h"

#include "tests/fuzz/fuzz.h"

using namespace tessera;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto tensor = parse_npy(fuzz::bytes_of(data, size), "fuzz.npy");
  if (tensor && tensor->count() > 0) (void)number_at(*tensor, tensor->count() - 1);
  return 0;
}
