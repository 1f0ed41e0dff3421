#include "bench/gpu/timing.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

#include "examples/vector_add.h"
#include "tests/codegen/arguments.h"

namespace tessera {
namespace {

using runtime::cuda::Address;
using runtime::cuda::Device;
using runtime::cuda::Memory;
using tile::Argument;

double median(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

/// The median of what `work` gives a stream, in milliseconds.
Expected<double> median_ms(const Device& device, const runtime::cuda::Stream& stream,
                           const std::function<Expected<Done>()>& work) {
  constexpr int kRounds = 20;
  for (int i = 0; i < 3; ++i) TESSERA_TRY_DONE(work());
  std::vector<double> times;
  for (int i = 0; i < kRounds; ++i) {
    TESSERA_TRY(auto before, device.event());
    TESSERA_TRY(auto after, device.event());
    TESSERA_TRY_DONE(before.record(stream.get()));
    TESSERA_TRY_DONE(work());
    TESSERA_TRY_DONE(after.record(stream.get()));
    TESSERA_TRY(const double ms, after.since(before));
    times.push_back(ms);
  }
  return median(std::move(times));
}

/// Random numbers over all of a memory, from a piece that is written again and again.
Expected<Done> randomize(Memory& memory, DType dtype) {
  static std::map<DType, std::vector<std::byte>> pieces;
  std::vector<std::byte>& bytes = pieces[dtype];
  if (bytes.empty()) {
    constexpr std::int64_t kCount = (1 << 20) + 7;
    bytes = codegen::TestArguments(1).pointer(dtype, kCount).memory().front();
    bytes.resize(static_cast<std::size_t>(kCount * byte_width(dtype)));
  }
  for (std::int64_t at = 0; at < memory.bytes(); at += static_cast<std::int64_t>(bytes.size())) {
    const auto size = std::min(static_cast<std::int64_t>(bytes.size()), memory.bytes() - at);
    TESSERA_TRY_DONE(memory.write({bytes.data(), static_cast<std::size_t>(size)}, at));
  }
  return Done{};
}

/// Blocks that a multiprocessor of Hopper runs at once.
int resident(const Loaded& loaded) {
  constexpr int kRegisters = 65536, kThreads = 2048, kBlocks = 32, kShared = 228 << 10, kOwn = 1024;
  const int threads = loaded.ptx.threads;
  return std::max(1, std::min({kBlocks, kThreads / threads,
                               kRegisters / (threads * std::max(loaded.function.registers(), 16)),
                               kShared / (loaded.ptx.shared_bytes + kOwn)}));
}

/// How a kernel is spread over the GPU.
std::string shape_of(const Device& device, const tile::Grid& grid, const Loaded& loaded) {
  const std::int64_t blocks = tile::cdiv(grid[0], loaded.ptx.programs) * grid[1] * grid[2];
  const int at_once = resident(loaded);
  return fmt::format(
      "{} threads {} registers {} local {} shared {} blocks {} at once {:.2f} waves",
      loaded.ptx.threads, loaded.function.registers(), loaded.function.local_bytes(),
      loaded.ptx.shared_bytes, blocks, at_once,
      static_cast<double>(blocks) / static_cast<double>(at_once * device.multiprocessors()));
}

}  // namespace

std::vector<std::uint64_t> words_in(const Step& step, const std::vector<Address>& addresses) {
  std::vector<Argument> arguments = step.arguments;
  std::size_t next = 0;
  for (Argument& argument : arguments)
    if (!argument.type.is_number())
      argument.data = reinterpret_cast<std::byte*>(addresses[step.rooms[next++]]);
  return tile::words_of(arguments);
}

Expected<Sets> sets_of(const Device& device, const std::vector<Room>& rooms) {
  constexpr std::int64_t kEnough = std::int64_t{192} << 20;
  constexpr std::size_t kMost = 16;
  std::int64_t bytes = 0;
  Sets sets;
  while (sets.addresses.empty() || (bytes < kEnough && sets.addresses.size() < kMost)) {
    std::vector<Address> addresses;
    for (std::size_t i = 0; i < rooms.size(); ++i) {
      if (rooms[i].temporary && !sets.addresses.empty()) {
        addresses.push_back(sets.addresses.front()[i]);
        continue;
      }
      TESSERA_TRY(Memory memory, device.allocate(rooms[i].bytes));
      TESSERA_TRY_DONE(randomize(memory, rooms[i].dtype));
      bytes += rooms[i].bytes;
      addresses.push_back(memory.address());
      sets.memory.push_back(std::move(memory));
    }
    sets.addresses.push_back(std::move(addresses));
  }
  return sets;
}

Expected<std::string> time_one(const Device& device, const Bench& bench,
                               const std::vector<const Loaded*>& loaded, const Sets& sets) {
  constexpr std::size_t kInARow = 5;
  const std::size_t different = sets.addresses.size();
  const std::size_t count = different * std::max<std::size_t>(1, kInARow / different);
  TESSERA_TRY(const auto stream, device.stream());
  const auto launch_all = [&]() -> Expected<Done> {
    for (std::size_t i = 0; i < count; ++i)
      for (std::size_t s = 0; s < bench.steps.size(); ++s) {
        const auto words = words_in(bench.steps[s], sets.addresses[i % different]);
        TESSERA_TRY_DONE(loaded[s]->function.launch({bench.steps[s].grid, words}, stream.get()));
      }
    return Done{};
  };
  TESSERA_TRY(const auto graph, stream.capture(launch_all));
  TESSERA_TRY(const double all,
              median_ms(device, stream, [&] { return graph.launch(stream.get()); }));
  const double ms = all / static_cast<double>(count);
  const double rate = bench.amount / (ms * 1e-3) / (bench.unit[0] == 'G' ? 1e9 : 1e12);
  std::string kernels;
  for (std::size_t s = 0; s < bench.steps.size(); ++s) {
    if (s > 0) kernels += "; ";
    kernels += shape_of(device, bench.steps[s].grid, *loaded[s]);
  }
  fmt::print("{:<62} {:>9.4f} ms {:>7.1f} {:<7} {}\n", bench.name, ms, rate, bench.unit, kernels);
  return fmt::format(
      R"({{"name": "{}", "ms": {:.6f}, "rate": {:.3f}, "unit": "{}", "kernels": "{}"}})",
      bench.name, ms, rate, bench.unit, kernels);
}

Expected<std::string> time_driver_copy(const Device& device) {
  const std::int64_t bytes = std::int64_t{1} << 30;
  TESSERA_TRY(Memory from, device.allocate(bytes));
  TESSERA_TRY(const Memory to, device.allocate(bytes));
  TESSERA_TRY_DONE(randomize(from, DType::F32));
  TESSERA_TRY(const auto stream, device.stream());
  TESSERA_TRY(const double ms,
              median_ms(device, stream, [&] { return device.copy(to, from, stream.get()); }));
  const double rate = 2.0 * static_cast<double>(bytes) / (ms * 1e-3) / 1e9;
  fmt::print("{:<62} {:>9.4f} ms {:>7.1f} GB/s\n", "copy by the driver 2^30 bytes", ms, rate);
  return fmt::format(
      R"({{"name": "copy by the driver", "ms": {:.6f}, "rate": {:.3f}, "unit": "GB/s"}})", ms,
      rate);
}

Expected<std::string> time_compile(const Device& device, const std::string& name,
                                   const Matmul& matmul) {
  constexpr int kKernels = 7;
  std::vector<double> ptx, all;
  for (int i = 0; i < kKernels; ++i) {
    // What differs is in which order programs take tiles: the code is of the same size.
    const tile::examples::MatmulTiles tiles{128, 256, 64, 3 + i};
    TESSERA_TRY(const tile::Kernel kernel, matmul(tiles));
    TESSERA_TRY(
        const Loaded loaded,
        load(device, kernel, launched({.precision = codegen::Precision::Fast, .stages = 4})));
    ptx.push_back(loaded.ptx_ms);
    all.push_back(loaded.compile_ms);
  }
  const double first = all.front(), ms = median(all), ptx_ms = median(ptx);
  fmt::print("{:<62} {:>9.1f} ms, {:.1f} of it to write PTX; the first {:.1f} ms\n", name, ms,
             ptx_ms, first);
  return fmt::format(
      R"({{"name": "{}", "ms": {:.3f}, "ptx_ms": {:.3f}, "first_ms": {:.3f}, "rate": {:.3f}, "unit": "ms"}})",
      name, ms, ptx_ms, first, ms);
}

Expected<std::string> time_launch(const Device& device, const LaunchOf& of) {
  constexpr std::int64_t kElements = 1024, kRows = 128, kColumns = 256;
  const auto p = Argument::pointer(DType::F32, nullptr, kElements * 4);
  const auto matrix = [](std::int64_t rows, std::int64_t columns) {
    return Argument::view(DType::BF16, nullptr, {rows, columns});
  };
  const tile::examples::MatmulTiles tiles{kRows, kColumns, 64, 8};
  TESSERA_TRY(const tile::Kernel kernel,
              of.maps ? tile::examples::matmul(DType::BF16, DType::BF16, tiles)
                      : tile::examples::vector_add(DType::F32, kElements));
  TESSERA_TRY(const Loaded loaded, load(device, kernel, launched({})));
  if (loaded.ptx.maps.size() != (of.maps ? 2 : 0))
    return Diagnostic{.id = "gpu-check-launch", .message = "a launch with other tensor maps"};
  TESSERA_TRY(const There there,
              put(device,
                  of.maps ? std::vector{matrix(kRows, kRows), matrix(kRows, kColumns),
                                        matrix(kRows, kColumns)}
                          : std::vector{p, p, p, Argument::integer(DType::I64, kElements)},
                  false));
  TESSERA_TRY(const auto stream, device.stream());
  std::vector<double> times;
  for (int i = 0; i < 2000; ++i) {
    const Stopwatch watch;
    TESSERA_TRY_DONE(loaded.function.launch({{1, 1, 1}, there.words}, stream.get()));
    times.push_back(watch.seconds() * 1e6);
    if (i % 100 == 99) TESSERA_TRY_DONE(stream.wait());
  }
  const double us = median(std::move(times));
  const char* name = of.maps ? "launch with maps" : "launch";
  fmt::print("{:<62} {:>9.3f} us\n", name, us);
  return fmt::format(R"({{"name": "{}", "ms": {:.6f}, "rate": {:.3f}, "unit": "us"}})", name,
                     us / 1e3, us);
}

}  // namespace tessera
