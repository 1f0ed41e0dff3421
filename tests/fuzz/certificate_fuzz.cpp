#include "tessera/certify/check.h"
#include "tests/fuzz/fuzz.h"

using namespace tessera;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // Sealed anew, so that what is behind the seal is reached.
  const auto certificate = certify::parse_certificate(certify::sealed(fuzz::text_of(data, size)));
  if (!certificate) return 0;
  const std::string text = certify::to_text(*certificate);
  const auto again = certify::parse_certificate(text);
  if (!again) fuzz::require(false, text, to_string(again.error()));
  fuzz::require(certify::to_text(*again) == text, "what is printed prints the same", text);
  (void)certify::check(*certificate);
  return 0;
}
