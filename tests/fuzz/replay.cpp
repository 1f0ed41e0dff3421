/// A fuzzer's target without libFuzzer: the seeds of a folder, and mutations of them that are the
/// same in every run. Searching with coverage is `tools/fuzz SECONDS`.
///
///   NAME_replay FOLDER COUNT

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "tessera/support/rng.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Input = std::vector<std::uint8_t>;

std::vector<Input> read_seeds(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<Input> seeds;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    seeds.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return seeds;
}

/// One small change: a byte, a part left out, doubled, or taken from another seed.
void mutate(Input& input, const std::vector<Input>& seeds, tessera::Rng& rng) {
  if (input.empty()) input.push_back(0);
  const std::size_t from = rng.below(input.size());
  const std::size_t length = 1 + rng.below(std::min<std::size_t>(input.size() - from, 16));
  const auto at = input.begin() + static_cast<std::ptrdiff_t>(from);
  switch (rng.below(5)) {
    case 0: input[from] = static_cast<std::uint8_t>(rng.below(256)); break;
    case 1: input[from] ^= static_cast<std::uint8_t>(1u << rng.below(8)); break;
    case 2: input.erase(at, at + static_cast<std::ptrdiff_t>(length)); break;
    case 3: {
      const Input part(at, at + static_cast<std::ptrdiff_t>(length));
      input.insert(at, part.begin(), part.end());
      break;
    }
    default: {
      const Input& other = seeds[rng.below(seeds.size())];
      if (other.empty()) break;
      const std::size_t begin = rng.below(other.size());
      const std::size_t count = std::min<std::size_t>(other.size() - begin, 1 + rng.below(64));
      const auto first = other.begin() + static_cast<std::ptrdiff_t>(begin);
      input.insert(at, first, first + static_cast<std::ptrdiff_t>(count));
      break;
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s FOLDER COUNT\n", argv[0]);
    return 2;
  }
  const std::vector<Input> seeds = read_seeds(argv[1]);
  if (seeds.empty()) {
    std::fprintf(stderr, "%s holds no seeds\n", argv[1]);
    return 1;
  }
  for (const Input& seed : seeds) LLVMFuzzerTestOneInput(seed.data(), seed.size());
  tessera::Rng rng(1);
  const long count = std::strtol(argv[2], nullptr, 10);
  for (long i = 0; i < count; ++i) {
    Input input = seeds[rng.below(seeds.size())];
    const std::uint64_t changes = 1 + rng.below(8);
    for (std::uint64_t change = 0; change < changes; ++change) mutate(input, seeds, rng);
    LLVMFuzzerTestOneInput(input.data(), input.size());
  }
  std::printf("%zu seeds and %ld mutations\n", seeds.size(), count);
}
