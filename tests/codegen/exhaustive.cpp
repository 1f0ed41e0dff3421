// Every f32 through every function of floats, against the C library in higher precision; prints the
// largest error in ulp and where it is. Minutes per function: run by hand.
//
//   exhaustive [--fast] [--stride N] [NAME...]

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "map_loop.h"
#include "ulp.h"

namespace tessera::codegen {
namespace {

struct Worst {
  double ulp = 0;
  float at = 0, found = 0;
};

constexpr std::size_t kBlock = 4096;
constexpr double kDropped = 0x1p-125;  // what the fast functions may take for 0

Worst worst_of(const CompiledMap& map, const Reference& reference, Precision precision,
               std::uint64_t first, std::uint64_t last, std::uint64_t stride) {
  Worst worst;
  std::vector<float> x(kBlock), y(kBlock);
  for (std::uint64_t bits = first; bits < last;) {
    for (float& each : x) {
      each = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
      bits += stride;
    }
    map(x.data(), y.data(), kBlock);
    for (std::size_t i = 0; i < kBlock; ++i) {
      const double exact = reference.of(x[i]);
      if (precision == Precision::Fast && std::fabs(exact) < kDropped) continue;
      const double error = ulp_error(y[i], exact);
      if (error > worst.ulp) worst = {error, x[i], y[i]};
    }
  }
  return worst;
}

int run(const std::vector<std::string>& names, Precision precision, std::uint64_t stride) {
  bool good = true;
  for (const Reference& reference : references()) {
    const std::string name(tile::to_string(reference.function));
    if (!names.empty() && std::find(names.begin(), names.end(), name) == names.end()) continue;
    const CompiledMap map(MapLoop::of_map(reference.function, DType::F32, precision, 4, 4));
    const auto start = std::chrono::steady_clock::now();
    constexpr std::uint64_t kAll = std::uint64_t{1} << 32, kHalf = kAll / 2;
    Worst low, high;
    std::thread other([&] { high = worst_of(map, reference, precision, kHalf, kAll, stride); });
    low = worst_of(map, reference, precision, 0, kHalf, stride);
    other.join();
    const Worst& worst = low.ulp > high.ulp ? low : high;
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    fmt::print("{:8} {:.4f} ulp at {:a} ({}), found {:a}, exactly {:a}   {:.0f} s\n", name,
               worst.ulp, worst.at, worst.at, worst.found, reference.of(worst.at), time.count());
    std::fflush(stdout);
    good &= worst.ulp <= 2;
  }
  return good ? 0 : 1;
}

}  // namespace
}  // namespace tessera::codegen

int main(int argc, char** argv) {
  std::vector<std::string> names;
  auto precision = tessera::codegen::Precision::Exact;
  std::uint64_t stride = 1;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--fast") == 0) {
      precision = tessera::codegen::Precision::Fast;
    } else if (std::strcmp(argv[i], "--stride") == 0 && i + 1 < argc) {
      stride = std::strtoull(argv[++i], nullptr, 10);
    } else {
      names.emplace_back(argv[i]);
    }
  }
  return tessera::codegen::run(names, precision, stride);
}
