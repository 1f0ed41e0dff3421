#include "tessera/tile/fingerprint.h"

#include <gtest/gtest.h>

#include <map>

#include "tessera/tile/text.h"
#include "tests/tile/random_kernel.h"

namespace tessera::tile {
namespace {

std::string of(const std::string& text) {
  const auto kernel = parse_kernel(text);
  EXPECT_TRUE(kernel) << to_string(kernel.error());
  return kernel ? fingerprint(*kernel) : "";
}

TEST(Fingerprint, DoesNotKnowNames) {
  EXPECT_EQ(of("kernel a(x: view f32[4]) { t: f32[4] = vload(x, 0) vstore(x, 0, add(t, t)) }"),
            of("kernel b(y: view f32[4]) { u: f32[4] = vload(y, 0) vstore(y, 0, add(u, u)) }"));
}

TEST(Fingerprint, TellsApartWhatDiffers) {
  const std::string start = "kernel a(x: view f32[4], y: view f32[4]) { t: f32[4] = vload(x, 0)";
  const std::map<std::string, std::string> kernels = {
      {"function", start + " vstore(x, 0, sub(t, t)) }"},
      {"plain", start + " vstore(x, 0, add(t, t)) }"},
      {"argument", start + " vstore(y, 0, add(t, t)) }"},
      {"number", start + " vstore(x, 1, add(t, t)) }"},
      {"minus zero", start + " vstore(x, 0, add(t, -0.0)) }"},
      {"zero", start + " vstore(x, 0, add(t, 0.0)) }"},
      {"block",
       "kernel a(x: view f32[4], y: view f32[4]) block(stages = 3) { t: f32[4] = vload(x, 0)"
       " vstore(x, 0, add(t, t)) }"},
      {"mark", start + " vstore(x, 0, add(t, t)) {inside = [1]} }"},
      {"type",
       "kernel a(x: view f32[4], y: view f32[5]) { t: f32[4] = vload(x, 0)"
       " vstore(x, 0, add(t, t)) }"},
  };
  std::map<std::string, std::string> seen;
  for (const auto& [what, text] : kernels) {
    const auto [it, is_new] = seen.emplace(of(text), what);
    EXPECT_TRUE(is_new) << what << " and " << it->second;
  }
}

TEST(Fingerprint, IsThatOfTheTextReadBack) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const Kernel kernel = tessera::testing::random_kernel(seed).kernel;
    EXPECT_EQ(of(to_text(kernel)), fingerprint(kernel)) << to_text(kernel);
  }
}

}  // namespace
}  // namespace tessera::tile
