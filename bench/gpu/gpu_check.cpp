// gpu_check: runs kernels on an NVIDIA GPU, compares them with the tile interpreter, then times
// them.
//
//   gpu_check [--only NAME] [--no-check] [--no-time] [--json FILE]
//   gpu_check --ptx FOLDER [--only NAME]   writes the PTX of every kernel; needs no GPU
//
// Exits with 0: all agree; 1: some do not; 2: bad usage; 3: there is no GPU.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "bench/gpu/benches.h"
#include "examples/attention.h"
#include "examples/conv.h"
#include "examples/dropout.h"
#include "examples/histogram.h"
#include "examples/layer_norm.h"
#include "examples/matmul.h"
#include "examples/softmax.h"
#include "examples/vector_add.h"
#include "tessera/runtime/cuda/device.h"
#include "tessera/support/rng.h"
#include "tessera/support/tensor.h"
#include "tessera/tile/interp.h"

namespace tessera {
namespace {

namespace examples = tile::examples;
using codegen::PtxKernel;
using tile::Argument;
using tile::Kernel;

/// Arguments in memory of their own, drawn by a seed.
struct Arguments {
  Rng rng{1};
  std::vector<std::vector<std::byte>> memory = {};
  std::vector<Argument> list = {};

  std::byte* fill(DType dtype, std::int64_t count) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(count * byte_width(dtype)));
    for (std::int64_t i = 0; i < count; ++i) {
      if (is_float(dtype)) {
        store_number(dtype, bytes.data(), i, static_cast<double>(rng.below(2000)) / 500.0 - 2.0);
      } else {
        store_integer(dtype, bytes.data(), i, static_cast<std::int64_t>(rng.below(100)));
      }
    }
    memory.push_back(std::move(bytes));
    return memory.back().data();
  }
  Arguments& view(DType dtype, tile::Extents shape) {
    std::byte* data = fill(dtype, tile::Type::tile(dtype, shape).count());
    list.push_back(Argument::view(dtype, data, std::move(shape)));
    return *this;
  }
  Arguments& pointer(DType dtype, std::int64_t count) {
    list.push_back(Argument::pointer(dtype, fill(dtype, count), count * byte_width(dtype)));
    return *this;
  }
  Arguments& integer(DType dtype, std::int64_t value) {
    list.push_back(Argument::integer(dtype, value));
    return *this;
  }
  Arguments& number(DType dtype, double value) {
    list.push_back(Argument::number(dtype, value));
    return *this;
  }
  /// A copy has memory of its own; its arguments have to point there.
  void point_to_memory() {
    std::size_t next = 0;
    for (Argument& argument : list) {
      if (!argument.type.is_number()) argument.data = memory[next++].data();
    }
  }
};

struct Case {
  std::string name;
  Expected<Kernel> kernel;
  Arguments arguments;
  tile::Grid grid;
  double tolerance = 0;
};

double tolerance_of(DType dtype) {
  switch (dtype) {
    case DType::F16: return 2e-3;
    case DType::BF16: return 2e-2;
    case DType::F32: return 2e-5;
    case DType::F64: return 1e-10;
    default: return 0;
  }
}

std::vector<Case> cases() {
  std::vector<Case> all;
  const auto add = [&](std::string name, Expected<Kernel> kernel, Arguments arguments,
                       tile::Grid grid, double tolerance) {
    all.push_back({std::move(name), std::move(kernel), std::move(arguments), grid, tolerance});
  };
  constexpr DType kTypes[] = {DType::F32, DType::F16, DType::BF16, DType::F64,
                              DType::I32, DType::I8,  DType::I64};
  for (const DType dtype : kTypes)
    for (const std::int64_t n : {0, 1, 3, 7, 127, 1024, 4099, 65537})
      add(fmt::format("vector_add {} {}", to_string(dtype), n), examples::vector_add(dtype, 1024),
          Arguments().pointer(dtype, n).pointer(dtype, n).pointer(dtype, n).integer(DType::I64, n),
          {tile::cdiv(n, 1024), 1, 1}, 0);
  for (const DType dtype : {DType::F32, DType::F16, DType::BF16}) {
    for (const std::int64_t n : {1, 3, 7, 31, 127, 1000, 1024, 1025, 4096, 8191})
      add(fmt::format("softmax {} {}", to_string(dtype), n), examples::softmax(dtype, n),
          Arguments().view(dtype, {5, n}).view(dtype, {5, n}), {5, 1, 1}, tolerance_of(dtype));
    add(fmt::format("softmax {} of many rows", to_string(dtype)), examples::softmax(dtype, 264),
        Arguments().view(dtype, {20011, 264}).view(dtype, {20011, 264}), {20011, 1, 1},
        tolerance_of(dtype));
    for (const std::int64_t n : {1, 7, 257, 4099})
      add(fmt::format("online_softmax {} {}", to_string(dtype), n),
          examples::online_softmax(dtype, 256), Arguments().view(dtype, {5, n}).view(dtype, {5, n}),
          {5, 1, 1}, tolerance_of(dtype));
    for (const std::int64_t n : {1, 7, 768, 1023})
      add(fmt::format("layer_norm {} {}", to_string(dtype), n), examples::layer_norm(dtype, n),
          Arguments()
              .view(dtype, {5, n})
              .view(dtype, {n})
              .view(dtype, {n})
              .view(dtype, {5, n})
              .number(DType::F32, 1e-5),
          {5, 1, 1}, tolerance_of(dtype));
  }
  struct Shape {
    std::int64_t m, n, k;
    examples::MatmulTiles tiles;
  };
  const Shape shapes[] = {{1, 1, 1, {16, 8, 16}},        {3, 7, 5, {16, 16, 16}},
                          {64, 64, 64, {32, 32, 32}},    {33, 65, 127, {32, 32, 32}},
                          {128, 256, 192, {64, 64, 64}}, {200, 136, 72, {64, 128, 32}},
                          {130, 258, 96, {128, 128, 32}}};
  for (const Shape& s : shapes) {
    for (const auto& [dtype, result] :
         {std::pair(DType::F16, DType::F32), std::pair(DType::F16, DType::F16),
          std::pair(DType::BF16, DType::F32), std::pair(DType::I8, DType::I32),
          std::pair(DType::F32, DType::F32)}) {
      add(fmt::format("matmul {}->{} {}x{}x{}", to_string(dtype), to_string(result), s.m, s.n, s.k),
          examples::matmul(dtype, result, s.tiles),
          Arguments().view(dtype, {s.m, s.k}).view(dtype, {s.k, s.n}).view(result, {s.m, s.n}),
          {examples::matmul_programs(s.m, s.n, s.tiles), 1, 1}, 4 * tolerance_of(result));
    }
  }
  add("matmul f16->f16 256x512x256 128x256x64",
      examples::matmul(DType::F16, DType::F16, {128, 256, 64, 8}),
      Arguments()
          .view(DType::F16, {256, 256})
          .view(DType::F16, {256, 512})
          .view(DType::F16, {256, 512}),
      {4, 1, 1}, 8e-3);
  for (const examples::Mask mask : {examples::Mask::None, examples::Mask::Causal})
    for (const std::int64_t length : {64, 100, 257})
      add(fmt::format("attention f16 {} {}", length,
                      mask == examples::Mask::Causal ? "causal" : ""),
          examples::attention(DType::F16, 64, {64, 64}, mask),
          Arguments()
              .view(DType::F16, {2, length, 64})
              .view(DType::F16, {2, length, 64})
              .view(DType::F16, {2, length, 64})
              .view(DType::F16, {2, length, 64}),
          {tile::cdiv(length, 64), 2, 1}, 4e-3);
  for (const auto& [dtype, width] : {std::pair(DType::F16, 64), std::pair(DType::BF16, 128)})
    for (const examples::Mask mask : {examples::Mask::None, examples::Mask::Causal})
      for (const std::int64_t length : {64, 100, 257, 400})
        add(fmt::format("attention by rows {} {} {} {}", to_string(dtype), width, length,
                        mask == examples::Mask::Causal ? "causal" : ""),
            examples::attention(dtype, width, {128, 64, examples::Scores::Rows}, mask),
            Arguments()
                .view(dtype, {2, length, width})
                .view(dtype, {2, length, width})
                .view(dtype, {2, length, width})
                .view(dtype, {2, length, width}),
            {tile::cdiv(length, 128), 2, 1}, dtype == DType::F16 ? 4e-3 : 4e-2);
  for (const std::int64_t stride : {1, 2}) {
    for (const std::int64_t channels : {64, 40, 3}) {
      const tile::Extents out = {3, 9, 10, 72};
      const examples::ConvTiles tiles = examples::conv_tiles(out, 64, 64, 32);
      add(fmt::format("conv f16 stride {} channels {}", stride, channels),
          examples::conv(DType::F16, {3, 3, stride, 1}, tiles, examples::AfterConv::BiasRelu),
          Arguments()
              .view(DType::F16, {3, 9, stride, 10, stride, channels})
              .view(DType::F16, {9, channels, 72})
              .view(DType::F16, {72})
              .view(DType::F16, out),
          {examples::conv_programs(out, tiles), 1, 1}, 2e-2);
    }
  }
  for (const std::int64_t n : {1, 1000, 4097})
    add(fmt::format("histogram {}", n), examples::histogram(256),
        Arguments()
            .pointer(DType::I32, n)
            .pointer(DType::I32, 100)
            .integer(DType::I64, n)
            .integer(DType::I64, 100),
        {tile::cdiv(n, 256), 1, 1}, 0);
  for (const std::int64_t n : {1, 1000, 4097})
    add(fmt::format("dropout {}", n), examples::dropout(DType::F32, 256),
        Arguments()
            .pointer(DType::F32, n)
            .pointer(DType::F32, n)
            .integer(DType::I64, n)
            .number(DType::F32, 0.3)
            .integer(DType::I64, 42),
        {tile::cdiv(n, 256), 1, 1}, 1e-6);
  return all;
}

/// A kernel on the GPU, and its arguments there.
struct OnGpu {
  PtxKernel ptx;
  runtime::cuda::Function function;
  std::vector<runtime::cuda::Memory> memory;
  std::vector<std::uint64_t> words;
};

Expected<OnGpu> put(const runtime::cuda::Device& device, const Kernel& kernel,
                    const std::vector<Argument>& arguments, bool upload,
                    codegen::PtxOptions options = {}) {
  OnGpu on;
  options.loops = true;
  TESSERA_TRY(on.ptx, codegen::ptx_of(kernel, options));
  TESSERA_TRY(on.function, device.load({on.ptx.text, on.ptx.entry, on.ptx.threads,
                                        on.ptx.shared_bytes, on.ptx.programs, on.ptx.loops}));
  std::vector<Argument> there = arguments;
  for (Argument& argument : there) {
    if (argument.type.is_number()) continue;
    TESSERA_TRY(runtime::cuda::Memory memory, device.allocate(argument.bytes));
    if (upload)
      TESSERA_TRY_DONE(memory.write({argument.data, static_cast<std::size_t>(argument.bytes)}));
    argument.data = reinterpret_cast<std::byte*>(memory.address());
    on.memory.push_back(std::move(memory));
  }
  on.words = tile::words_of(there);
  return on;
}

/// Empty where the memories agree; else the first difference.
std::string difference(const Argument& argument, const std::vector<std::byte>& expected,
                       const std::vector<std::byte>& found, double tolerance) {
  const DType dtype = argument.type.dtype;
  const std::int64_t count = argument.bytes / byte_width(dtype);
  const Tensor want{dtype, {count}, Bytes::copy(expected)}, got{dtype, {count}, Bytes::copy(found)};
  for (std::int64_t i = 0; i < count; ++i) {
    if (!is_float(dtype)) {
      if (integer_at(want, i) != integer_at(got, i))
        return fmt::format("at {}: {} expected, {} found", i, integer_at(want, i),
                           integer_at(got, i));
      continue;
    }
    const double x = number_at(want, i), y = number_at(got, i);
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    if (!(std::fabs(x - y) <= tolerance * std::max(1.0, std::fabs(x))))
      return fmt::format("at {}: {} expected, {} found", i, x, y);
  }
  return {};
}

Expected<std::string> check(const runtime::cuda::Device& device, Case& c) {
  TESSERA_TRY(const Kernel kernel, c.kernel);
  c.arguments.point_to_memory();
  TESSERA_TRY(const OnGpu on, put(device, kernel, c.arguments.list, true));
  TESSERA_TRY_DONE(on.function.launch({c.grid, on.words}));
  TESSERA_TRY_DONE(device.wait());
  TESSERA_TRY_DONE(tile::interpret(kernel, c.arguments.list, c.grid));
  std::size_t next = 0;
  for (const Argument& argument : c.arguments.list) {
    if (argument.type.is_number()) continue;
    std::vector<std::byte> found(static_cast<std::size_t>(argument.bytes));
    TESSERA_TRY_DONE(on.memory[next].read(found));
    const std::string differs = difference(argument, c.arguments.memory[next], found, c.tolerance);
    if (!differs.empty()) return fmt::format("argument {} {}", next, differs);
    ++next;
  }
  return std::string();
}

/// The median of launches, in milliseconds, each of several in a row: the gap before the first is
/// not the kernel's.
Expected<double> median_ms(const runtime::cuda::Device& device, int rounds,
                           const std::function<Expected<Done>()>& launch) {
  constexpr int kInARow = 5;
  for (int i = 0; i < 3; ++i) TESSERA_TRY_DONE(launch());
  std::vector<double> times;
  for (int i = 0; i < rounds; ++i) {
    TESSERA_TRY(auto before, device.event());
    TESSERA_TRY(auto after, device.event());
    TESSERA_TRY_DONE(before.record());
    for (int j = 0; j < kInARow; ++j) TESSERA_TRY_DONE(launch());
    TESSERA_TRY_DONE(after.record());
    TESSERA_TRY(const double ms, after.since(before));
    times.push_back(ms / kInARow);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

/// Random numbers over all of a memory, from a piece that is written again and again.
Expected<Done> randomize(runtime::cuda::Memory& memory, DType dtype, std::uint64_t seed) {
  Arguments piece;
  piece.rng = Rng(seed);
  const std::int64_t count =
      std::min<std::int64_t>(memory.bytes() / byte_width(dtype), (1 << 20) + 7);
  piece.fill(dtype, count);
  const std::vector<std::byte>& bytes = piece.memory.front();
  for (std::int64_t at = 0; at < memory.bytes(); at += static_cast<std::int64_t>(bytes.size())) {
    const auto size = std::min(static_cast<std::int64_t>(bytes.size()), memory.bytes() - at);
    TESSERA_TRY_DONE(memory.write({bytes.data(), static_cast<std::size_t>(size)}, at));
  }
  return Done{};
}

Expected<std::string> time_one(const runtime::cuda::Device& device, const Bench& bench) {
  TESSERA_TRY(const Kernel kernel, bench.kernel);
  const auto start = std::chrono::steady_clock::now();
  TESSERA_TRY(OnGpu on, put(device, kernel, bench.arguments, false, bench.options));
  const std::chrono::duration<double, std::milli> compile =
      std::chrono::steady_clock::now() - start;
  std::size_t next = 0;
  for (const Argument& argument : bench.arguments) {
    if (argument.type.is_number()) continue;
    TESSERA_TRY_DONE(randomize(on.memory[next], argument.type.dtype, next + 1));
    ++next;
  }
  TESSERA_TRY(const double ms, median_ms(device, 20, [&] {
                return on.function.launch({bench.grid, on.words});
              }));
  const double rate = bench.amount / (ms * 1e-3) / (bench.unit[0] == 'G' ? 1e9 : 1e12);
  fmt::print(
      "{:<44} {:>9.4f} ms {:>8.1f} {:<8} {:>4} threads {:>4} registers {:>5} local {:>7} shared "
      "{:>7.1f} ms to compile\n",
      bench.name, ms, rate, bench.unit, on.ptx.threads, on.function.registers(),
      on.function.local_bytes(), on.ptx.shared_bytes, compile.count());
  return fmt::format(
      R"({{"name": "{}", "ms": {:.6f}, "rate": {:.3f}, "unit": "{}", "registers": {}, "local": {}, "compile_ms": {:.1f}}})",
      bench.name, ms, rate, bench.unit, on.function.registers(), on.function.local_bytes(),
      compile.count());
}

Expected<std::string> time_driver_copy(const runtime::cuda::Device& device) {
  const std::int64_t bytes = std::int64_t{1} << 30;
  TESSERA_TRY(runtime::cuda::Memory from, device.allocate(bytes));
  TESSERA_TRY(runtime::cuda::Memory to, device.allocate(bytes));
  TESSERA_TRY_DONE(randomize(from, DType::F32, 1));
  TESSERA_TRY(const double ms, median_ms(device, 20, [&] { return device.copy(to, from); }));
  const double rate = 2.0 * static_cast<double>(bytes) / (ms * 1e-3) / 1e9;
  fmt::print("{:<44} {:>9.4f} ms {:>8.1f} GB/s\n", "copy by the driver 2^30 bytes", ms, rate);
  return fmt::format(
      R"({{"name": "copy by the driver", "ms": {:.6f}, "rate": {:.3f}, "unit": "GB/s"}})", ms,
      rate);
}

/// What a launch costs the program that asks for it, in microseconds: the median of many.
Expected<std::string> time_launch(const runtime::cuda::Device& device) {
  TESSERA_TRY(const Kernel kernel, examples::vector_add(DType::F32, 1024));
  const std::int64_t n = 1024;
  const auto p = Argument::pointer(DType::F32, nullptr, n * 4);
  TESSERA_TRY(const OnGpu on,
              put(device, kernel, {p, p, p, Argument::integer(DType::I64, n)}, false));
  std::vector<double> times;
  for (int i = 0; i < 2000; ++i) {
    const auto before = std::chrono::steady_clock::now();
    TESSERA_TRY_DONE(on.function.launch({{1, 1, 1}, on.words}));
    const std::chrono::duration<double, std::micro> spent =
        std::chrono::steady_clock::now() - before;
    times.push_back(spent.count());
    if (i % 100 == 99) TESSERA_TRY_DONE(device.wait());
  }
  std::sort(times.begin(), times.end());
  const double us = times[times.size() / 2];
  fmt::print("{:<44} {:>9.3f} us\n", "launch", us);
  return fmt::format(R"({{"name": "launch", "ms": {:.6f}, "rate": {:.3f}, "unit": "us"}})",
                     us / 1e3, us);
}

int write_ptx(const std::string& folder, const std::string& only) {
  const auto write = [&](std::string name, const Expected<Kernel>& kernel,
                         const codegen::PtxOptions& options) {
    if (name.find(only) == std::string::npos) return;
    for (char& c : name)
      if (c == ' ' || c == '>' || c == '^') c = '_';
    if (!kernel) return fmt::print(stderr, "{}: {}\n", name, to_string(kernel.error()));
    codegen::PtxOptions looping = options;
    looping.loops = true;
    const auto ptx = codegen::ptx_of(*kernel, looping);
    if (!ptx) return fmt::print(stderr, "{}: {}\n", name, to_string(ptx.error()));
    std::ofstream(folder + "/" + name + ".ptx") << ptx->text;
    fmt::print("{:<50} {:>4} threads {:>7} shared\n", name, ptx->threads, ptx->shared_bytes);
  };
  for (const Case& c : cases()) write(c.name, c.kernel, {});
  for (const Bench& b : benches()) write("bench " + b.name, b.kernel, b.options);
  return 0;
}

int run(const std::vector<std::string>& arguments) {
  std::string only, json, ptx;
  bool checks = true, times = true;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const auto value = [&] { return i + 1 < arguments.size() ? arguments[++i] : std::string(); };
    if (arguments[i] == "--only") {
      only = value();
    } else if (arguments[i] == "--json") {
      json = value();
    } else if (arguments[i] == "--ptx") {
      ptx = value();
    } else if (arguments[i] == "--no-check") {
      checks = false;
    } else if (arguments[i] == "--no-time") {
      times = false;
    } else {
      fmt::print(stderr, "gpu_check: {} is not an option\n", arguments[i]);
      return 2;
    }
  }
  if (!ptx.empty()) return write_ptx(ptx, only);
  const auto device = runtime::cuda::Device::open();
  if (!device) {
    fmt::print(stderr, "{}\n", to_string(device.error()));
    return 3;
  }
  fmt::print("{}, {} multiprocessors, compute capability {}\n", device->name(),
             device->multiprocessors(), device->compute());
  const auto wanted = [&](const std::string& name) { return name.find(only) != std::string::npos; };
  int failures = 0, passed = 0;
  if (checks) {
    for (Case& c : cases()) {
      if (!wanted(c.name)) continue;
      const auto result = check(*device, c);
      const bool same = result && result->empty();
      (same ? passed : failures) += 1;
      if (!same)
        fmt::print("FAILED {}: {}\n", c.name, result ? *result : to_string(result.error()));
      std::fflush(stdout);
    }
    fmt::print("checked against the interpreter: {} agree, {} do not\n", passed, failures);
  }
  if (times) {
    std::ofstream lines(json.empty() ? "/dev/null" : json);
    const auto note = [&](const std::string& name, const Expected<std::string>& line) {
      if (line) {
        lines << *line << '\n' << std::flush;
      } else {
        ++failures;
        fmt::print("FAILED {}: {}\n", name, to_string(line.error()));
      }
      std::fflush(stdout);
    };
    if (wanted("launch")) note("launch", time_launch(*device));
    if (wanted("copy")) note("copy by the driver", time_driver_copy(*device));
    for (const Bench& bench : benches())
      if (wanted(bench.name)) note(bench.name, time_one(*device, bench));
  }
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) {
  return tessera::run({argv + 1, argv + argc});
}
