// gpu_check: runs kernels on an NVIDIA GPU, compares them with the tile interpreter, then times
// them.
//
//   gpu_check [--only NAME] [--no-check] [--no-time] [--json FILE]
//   gpu_check --ptx FOLDER       writes the PTX of every kernel; needs no GPU
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

#include "examples/attention.h"
#include "examples/dropout.h"
#include "examples/histogram.h"
#include "examples/layer_norm.h"
#include "examples/matmul.h"
#include "examples/softmax.h"
#include "examples/vector_add.h"
#include "tessera/codegen/ptx/ptx.h"
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
                    const std::vector<Argument>& arguments, bool upload) {
  OnGpu on;
  TESSERA_TRY(on.ptx, codegen::ptx_of(kernel));
  TESSERA_TRY(on.function, device.load({on.ptx.text, on.ptx.entry, on.ptx.threads,
                                        on.ptx.shared_bytes, on.ptx.programs}));
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

/// The median of launches, in milliseconds.
Expected<double> median_ms(const runtime::cuda::Device& device, int rounds,
                           const std::function<Expected<Done>()>& launch) {
  for (int i = 0; i < 3; ++i) TESSERA_TRY_DONE(launch());
  std::vector<double> times;
  for (int i = 0; i < rounds; ++i) {
    TESSERA_TRY(auto before, device.event());
    TESSERA_TRY(auto after, device.event());
    TESSERA_TRY_DONE(before.record());
    TESSERA_TRY_DONE(launch());
    TESSERA_TRY_DONE(after.record());
    TESSERA_TRY(const double ms, after.since(before));
    times.push_back(ms);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

struct Bench {
  std::string name;
  Expected<Kernel> kernel;
  std::vector<Argument> arguments;
  tile::Grid grid;
  double amount;     // bytes, or operations
  const char* unit;  // of amount per second: GB/s or TFLOP/s
};

Expected<Kernel> copy_kernel(std::int64_t block) {
  return tile::kernel("copy",
                      {tile::view("x", DType::F32, {tile::kDynamic}),
                       tile::view("out", DType::F32, {tile::kDynamic})},
                      [&](const tile::View& x, const tile::View& out) {
                        const tile::Val at = tile::program_id(0) * block;
                        out.store({at}, x.load({at}, {block}));
                      });
}

std::vector<Bench> benches() {
  std::vector<Bench> all;
  const auto view = [](DType dtype, tile::Extents shape) {
    return Argument::view(dtype, nullptr, std::move(shape));
  };
  const std::int64_t n = std::int64_t{1} << 28;
  for (const std::int64_t block : {1024, 2048, 4096, 8192}) {
    const auto p = Argument::pointer(DType::F32, nullptr, n * 4);
    all.push_back({fmt::format("vector_add f32 2^28 block {}", block),
                   examples::vector_add(DType::F32, block),
                   {p, p, p, Argument::integer(DType::I64, n)},
                   {n / block, 1, 1},
                   12.0 * static_cast<double>(n),
                   "GB/s"});
    all.push_back({fmt::format("copy f32 2^28 block {}", block),
                   copy_kernel(block),
                   {view(DType::F32, {n}), view(DType::F32, {n})},
                   {n / block, 1, 1},
                   8.0 * static_cast<double>(n),
                   "GB/s"});
  }
  const std::int64_t elements = std::int64_t{1} << 27;
  for (std::int64_t columns = 256; columns <= 32768; columns *= 2) {
    const std::int64_t rows = elements / columns;
    const Argument all_rows = view(DType::F16, {rows, columns}), row = view(DType::F16, {columns});
    all.push_back({fmt::format("softmax f16 {}", columns),
                   examples::softmax(DType::F16, columns),
                   {all_rows, all_rows},
                   {rows, 1, 1},
                   4.0 * static_cast<double>(elements),
                   "GB/s"});
    all.push_back({fmt::format("layer_norm f16 {}", columns),
                   examples::layer_norm(DType::F16, columns),
                   {all_rows, row, row, all_rows, Argument::number(DType::F32, 1e-5)},
                   {rows, 1, 1},
                   4.0 * static_cast<double>(elements),
                   "GB/s"});
  }
  struct Product {
    std::int64_t m, n, k;
  };
  for (const Product& p : {Product{2048, 2048, 2048}, Product{4096, 4096, 4096},
                           Product{8192, 8192, 8192}, Product{8192, 8192, 512}}) {
    for (const examples::MatmulTiles& tiles :
         {examples::MatmulTiles{128, 256, 64, 8}, examples::MatmulTiles{128, 128, 64, 8}}) {
      const auto add = [&](const char* what, Expected<Kernel> kernel, bool bias) {
        std::vector<Argument> arguments = {view(DType::BF16, {p.m, p.k}),
                                           view(DType::BF16, {p.k, p.n})};
        if (bias) arguments.push_back(view(DType::BF16, {p.n}));
        arguments.push_back(view(DType::BF16, {p.m, p.n}));
        all.push_back({fmt::format("{} bf16 {}x{}x{} tiles {}x{}x{}", what, p.m, p.n, p.k, tiles.m,
                                   tiles.n, tiles.k),
                       std::move(kernel),
                       std::move(arguments),
                       {examples::matmul_programs(p.m, p.n, tiles), 1, 1},
                       2.0 * static_cast<double>(p.m * p.n * p.k),
                       "TFLOP/s"});
      };
      add("matmul", examples::matmul(DType::BF16, DType::BF16, tiles), false);
      add("matmul_gelu", examples::matmul_bias(DType::BF16, tiles, examples::Activation::Gelu),
          true);
    }
  }
  const std::int64_t heads = 64, length = 4096, width = 64;
  for (const auto& [queries, keys] : {std::pair(64, 64), std::pair(128, 64)}) {
    const Argument qkv = view(DType::F16, {heads, length, width});
    all.push_back({fmt::format("attention f16 64 heads 4096x64 tiles {}x{}", queries, keys),
                   examples::attention(DType::F16, width, {queries, keys}, examples::Mask::None),
                   {qkv, qkv, qkv, qkv},
                   {tile::cdiv(length, queries), heads, 1},
                   4.0 * static_cast<double>(heads * length * length * width),
                   "TFLOP/s"});
  }
  return all;
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
  TESSERA_TRY(OnGpu on, put(device, kernel, bench.arguments, false));
  const std::chrono::duration<double, std::milli> compile =
      std::chrono::steady_clock::now() - start;
  std::size_t next = 0;
  for (const Argument& argument : bench.arguments) {
    if (argument.type.is_number()) continue;
    TESSERA_TRY_DONE(randomize(on.memory[next], argument.type.dtype, next + 1));
    ++next;
  }
  TESSERA_TRY(const double ms, median_ms(device, 50, [&] {
                return on.function.launch({bench.grid, on.words});
              }));
  const double rate = bench.amount / (ms * 1e-3) / (bench.unit[0] == 'G' ? 1e9 : 1e12);
  fmt::print(
      "{:<44} {:>9.4f} ms {:>8.1f} {:<8} {:>4} threads {:>4} registers {:>5} local {:>7} shared "
      "{:>7.1f} ms to compile\n",
      bench.name, ms, rate, bench.unit, on.ptx.threads, on.function.registers(),
      on.function.local_bytes(), on.ptx.shared_bytes, compile.count());
  return fmt::format(
      R"({{"name": "{}", "ms": {:.6f}, "rate": {:.3f}, "unit": "{}", "registers": {}, "local": {}}})",
      bench.name, ms, rate, bench.unit, on.function.registers(), on.function.local_bytes());
}

Expected<std::string> time_driver_copy(const runtime::cuda::Device& device) {
  const std::int64_t bytes = std::int64_t{1} << 30;
  TESSERA_TRY(runtime::cuda::Memory from, device.allocate(bytes));
  TESSERA_TRY(runtime::cuda::Memory to, device.allocate(bytes));
  TESSERA_TRY_DONE(randomize(from, DType::F32, 1));
  TESSERA_TRY(const double ms, median_ms(device, 50, [&] { return device.copy(to, from); }));
  const double rate = 2.0 * static_cast<double>(bytes) / (ms * 1e-3) / 1e9;
  fmt::print("{:<44} {:>9.4f} ms {:>8.1f} GB/s\n", "copy by the driver 2^30 bytes", ms, rate);
  return fmt::format(
      R"({{"name": "copy by the driver", "ms": {:.6f}, "rate": {:.3f}, "unit": "GB/s"}})", ms,
      rate);
}

int write_ptx(const std::string& folder) {
  const auto write = [&](std::string name, const Expected<Kernel>& kernel) {
    for (char& c : name)
      if (c == ' ' || c == '>' || c == '^') c = '_';
    if (!kernel) return fmt::print(stderr, "{}: {}\n", name, to_string(kernel.error()));
    const auto ptx = codegen::ptx_of(*kernel);
    if (!ptx) return fmt::print(stderr, "{}: {}\n", name, to_string(ptx.error()));
    std::ofstream(folder + "/" + name + ".ptx") << ptx->text;
    fmt::print("{:<50} {:>4} threads {:>7} shared\n", name, ptx->threads, ptx->shared_bytes);
  };
  for (const Case& c : cases()) write(c.name, c.kernel);
  for (const Bench& b : benches()) write("bench " + b.name, b.kernel);
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
  if (!ptx.empty()) return write_ptx(ptx);
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
