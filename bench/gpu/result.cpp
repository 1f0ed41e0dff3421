#include "bench/gpu/result.h"

#include <algorithm>
#include <thread>

#include "tests/codegen/first_difference.h"

namespace tessera {
namespace {

using runtime::cuda::Address;
using runtime::cuda::Device;
using runtime::cuda::Memory;

constexpr std::byte kSpoiled{0xFF};  // NaN, of all floats

/// The memory of a room in the first set.
template <class SetsOrConst>
auto& memory_of(SetsOrConst& sets, std::size_t room) {
  const Address address = sets.addresses.front()[room];
  const auto found =
      std::find_if(sets.memory.begin(), sets.memory.end(),
                   [&](const Memory& memory) { return memory.address() == address; });
  TESSERA_CHECK(found != sets.memory.end(), "a room without memory");
  return *found;
}

double tolerance_of(DType dtype) {
  switch (dtype) {
    case DType::F16: return 1e-2;
    case DType::BF16: return 4e-2;
    case DType::F32: return 1e-5;
    default: return 0;
  }
}

}  // namespace

Expected<Done> spoil(const Bench& bench, Sets& sets) {
  for (const Step& step : bench.steps)
    TESSERA_TRY_DONE(memory_of(sets, step.rooms.back()).fill(kSpoiled));
  return Done{};
}

Expected<Result> result_of(const Bench& bench, const Sets& sets) {
  const std::size_t room = bench.steps.back().rooms.back();
  Result result{.dtype = bench.rooms[room].dtype};
  result.bytes.resize(static_cast<std::size_t>(bench.rooms[room].bytes));
  TESSERA_TRY_DONE(memory_of(sets, room).read(result.bytes));
  return result;
}

Expected<Result> reference_of(const Device& device, const Bench& bench,
                              const std::vector<const Loaded*>& loaded, Sets& sets) {
  TESSERA_TRY_DONE(spoil(bench, sets));
  for (std::size_t s = 0; s < bench.steps.size(); ++s) {
    const auto words = words_in(bench.steps[s], sets.addresses.front());
    TESSERA_TRY_DONE(loaded[s]->function.launch({bench.steps[s].grid, words}));
  }
  TESSERA_TRY_DONE(device.wait());
  TESSERA_TRY(Result result, result_of(bench, sets));
  // What was not written would be like what nobody else writes either.
  const auto left = std::count(result.bytes.begin(), result.bytes.end(), kSpoiled);
  if (2 * left > static_cast<std::ptrdiff_t>(result.bytes.size()))
    return Diagnostic{.id = "gpu-check-reference",
                      .message = "what results are compared with was not computed"};
  return result;
}

std::string difference(const Result& expected, const Result& found) {
  // Of all elements, which are many: in pieces, by as many threads as there are.
  const std::size_t count = std::max(1U, std::thread::hardware_concurrency());
  constexpr std::size_t kUnit = 1 << 16;
  const std::size_t size = (expected.bytes.size() / count / kUnit + 1) * kUnit;
  std::vector<std::string> differences(count);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < count; ++i)
    threads.emplace_back([&, i] {
      const std::size_t at = std::min(i * size, expected.bytes.size());
      const std::size_t bytes = std::min(size, expected.bytes.size() - at);
      const codegen::Compared piece{.dtype = expected.dtype,
                                    .expected = std::span(expected.bytes).subspan(at, bytes),
                                    .found = std::span(found.bytes).subspan(at, bytes)};
      const std::string differs = first_difference(piece, tolerance_of(expected.dtype));
      if (!differs.empty())
        differences[i] = fmt::format(
            "from {} on, {}", at / static_cast<std::size_t>(byte_width(expected.dtype)), differs);
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& differs : differences)
    if (!differs.empty()) return differs;
  return {};
}

}  // namespace tessera
