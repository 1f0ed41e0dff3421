#include "tessera/report/compare.h"
#include "tests/fuzz/fuzz.h"

using namespace tessera;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto log = report::parse_event_log({reinterpret_cast<const char*>(data), size});
  if (!log) return 0;
  const std::string text = report::to_json_lines(*log);
  const auto again = report::parse_event_log(text);
  TESSERA_CHECK(again.has_value(), "a log that was read is not read again");
  TESSERA_CHECK(report::to_json_lines(*again) == text, "a log changes when it is read again");
  (void)report::compare(*log, *again);
  return 0;
}
