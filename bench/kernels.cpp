// Every kernel that has a bar, with its peers, for tools/bench-table.

#include <benchmark/benchmark.h>
#include <cblas.h>
#ifdef TESSERA_ONEDNN
#include <dnnl.h>
#endif
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "bench/peers.h"
#include "examples/attention.h"
#include "examples/layer_norm.h"
#include "examples/matmul.h"
#include "examples/softmax.h"
#include "examples/vector_add.h"
#include "tessera/codegen/compile.h"
#include "tessera/machine/peak.h"
#include "tessera/tile/cpu/panels.h"

namespace tessera::bench {
namespace {

using codegen::CompiledKernel;
using codegen::Precision;
using tile::Argument;
using tile::Grid;
namespace examples = tile::examples;

using Compiled = std::shared_ptr<const CompiledKernel>;

Compiled compiled(const Expected<tile::Kernel>& kernel, Precision precision = Precision::Exact) {
  TESSERA_CHECK(kernel.has_value(), "{}", to_string(kernel.error()));
  auto code = codegen::compile(*kernel, {.precision = precision});
  TESSERA_CHECK(code.has_value(), "{}", to_string(code.error()));
  return *code;
}

/// Memory that begins with a line of the cache, as tensors of most libraries do. Else a kernel and
/// its peers would each have the luck of their own addresses.
template <class T>
struct Aligned {
  using value_type = T;
  static constexpr std::align_val_t kLine{64};
  Aligned() = default;
  template <class U>
  explicit Aligned(const Aligned<U>& /*other*/) {}
  T* allocate(std::size_t count) {
    return static_cast<T*>(::operator new(count * sizeof(T), kLine));
  }
  void deallocate(T* memory, std::size_t /*count*/) { ::operator delete(memory, kLine); }
  bool operator==(const Aligned&) const = default;
};
template <class T>
using Buffer = std::vector<T, Aligned<T>>;

/// Numbers of either sign below 1/2, the same in every run.
template <class T>
Buffer<T> numbers(std::int64_t count) {
  Buffer<T> list(static_cast<std::size_t>(count));
  std::uint32_t state = 1;
  for (T& x : list) {
    state = state * 1664525u + 1013904223u;
    const float value = static_cast<float>(state >> 8) / 16777216.0f - 0.5f;
    if constexpr (std::is_same_v<T, BFloat16>) {
      x = to_bfloat16(value);
    } else if constexpr (std::is_integral_v<T>) {
      x = static_cast<T>(value * 200);
    } else {
      x = value;
    }
  }
  return list;
}

/// Runs a kernel on arguments that live as long as the benchmark.
struct Launch {
  Compiled code;
  std::vector<Argument> arguments;
  Grid grid = {1, 1, 1};
  std::vector<std::uint64_t> words = {};

  void check() {
    const auto done = code->launch(arguments, grid);
    TESSERA_CHECK(done.has_value(), "{}", to_string(done.error()));
    words = tile::words_of(arguments);
  }
  void run(int threads = 1) const { code->run(words, grid, threads); }
};

void add(const std::string& name, std::function<void(benchmark::State&)> body) {
  benchmark::RegisterBenchmark(name.c_str(), std::move(body))
      ->UseRealTime()
      ->Unit(benchmark::kMicrosecond);
}

struct Shape {
  std::int64_t m, n, k;
  std::string text() const { return fmt::format("{}x{}x{}", m, n, k); }
};

/// The tile of one program: as large as the second cache likes, the whole matrix where it is small.
/// Elements take `width` bytes. One row reads b once, in one stream.
examples::MatmulTiles tiles_for(const Shape& s, std::int64_t width, std::int64_t columns_by = 1) {
  const auto part = [](std::int64_t extent, std::int64_t most, std::int64_t by) {
    const std::int64_t parts = (extent + most - 1) / most;
    const std::int64_t each = (extent + parts - 1) / parts;
    return (each + by - 1) / by * by;
  };
  const bool x86 = machine::host().architecture == machine::Architecture::X86_64;
  return {part(s.m, x86 ? 1024 : 512, 1), part(s.n, 1024, columns_by),
          s.m == 1 ? s.k : part(s.k, x86 ? 1024 / width : 512, 1), 1};
}

template <class T, class R>
void matmul_benchmark(benchmark::State& state, const Shape& s, int threads) {
  auto a = numbers<T>(s.m * s.k), b = numbers<T>(s.k * s.n);
  Buffer<R> c(static_cast<std::size_t>(s.m * s.n));
  examples::MatmulTiles tiles = tiles_for(s, sizeof(T));
  if (threads > 1) tiles.m = std::min<std::int64_t>(tiles.m / 2, (s.m + threads - 1) / threads);
  const DType in = tile::dtype_of<T>(), out = tile::dtype_of<R>();
  Launch launch{compiled(examples::matmul(in, out, tiles)),
                {Argument::view(in, a.data(), {s.m, s.k}), Argument::view(in, b.data(), {s.k, s.n}),
                 Argument::view(out, c.data(), {s.m, s.n})},
                {examples::matmul_programs(s.m, s.n, tiles), 1, 1}};
  launch.check();
  for (auto _ : state) launch.run(threads);
}

void packed_benchmark(benchmark::State& state, const Shape& s) {
  const std::int64_t panel = tile::cpu::panels_for(DType::F32, s.m, machine::host()).columns;
  auto a = numbers<float>(s.m * s.k);
  const auto rows = numbers<float>(s.k * s.n);
  const auto packed = examples::packed(std::vector(rows.begin(), rows.end()), s.k, s.n, panel);
  Buffer<float> b(packed.begin(), packed.end());
  Buffer<float> c(static_cast<std::size_t>(s.m * s.n));
  const std::int64_t panels = tile::cdiv(s.n, panel);
  const examples::MatmulTiles tiles = tiles_for(s, sizeof(float), panel);
  Launch launch{compiled(examples::matmul_packed(DType::F32, tiles, panel)),
                {Argument::view(DType::F32, a.data(), {s.m, s.k}),
                 Argument::view(DType::F32, b.data(), {panels, s.k, panel}),
                 Argument::view(DType::F32, c.data(), {s.m, s.n})},
                {examples::matmul_programs(s.m, s.n, tiles), 1, 1}};
  launch.check();
  for (auto _ : state) launch.run();
}

void blas_benchmark(benchmark::State& state, const Shape& s) {
  auto a = numbers<float>(s.m * s.k), b = numbers<float>(s.k * s.n);
  Buffer<float> c(static_cast<std::size_t>(s.m * s.n));
  const auto m = static_cast<int>(s.m), n = static_cast<int>(s.n), k = static_cast<int>(s.k);
  for (auto _ : state) {
    if (m == 1) {
      cblas_sgemv(CblasRowMajor, CblasTrans, k, n, 1, b.data(), n, a.data(), 1, 0, c.data(), 1);
    } else {
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1, a.data(), k, b.data(), n,
                  0, c.data(), n);
    }
  }
}

#ifdef TESSERA_ONEDNN
void dnn_benchmark(benchmark::State& state, const Shape& s) {
  auto a = numbers<float>(s.m * s.k), b = numbers<float>(s.k * s.n);
  Buffer<float> c(static_cast<std::size_t>(s.m * s.n));
  for (auto _ : state) {
    dnnl_sgemm('N', 'N', s.m, s.n, s.k, 1, a.data(), s.k, b.data(), s.n, 0, c.data(), s.n);
  }
}
#endif

void add_peers(const Shape& s) {
  add("openblas/" + s.text(), [s](auto& state) { blas_benchmark(state, s); });
#ifdef TESSERA_ONEDNN
  add("onednn/" + s.text(), [s](auto& state) { dnn_benchmark(state, s); });
#endif
}

void add_matrices() {
  for (const std::int64_t size : {32, 64, 512, 1024, 2048}) {
    const Shape s{size, size, size};
    add("matmul/f32/" + s.text(),
        [s](auto& state) { matmul_benchmark<float, float>(state, s, 1); });
    add_peers(s);
  }
  for (const Shape s :
       {Shape{128, 768, 3072}, Shape{49, 512, 2048}, Shape{197, 768, 768}, Shape{1, 4096, 4096}}) {
    add("packed/f32/" + s.text(), [s](auto& state) { packed_benchmark(state, s); });
    add_peers(s);
  }
  const Shape s{1024, 1024, 1024};
  add("matmul/two_threads/" + s.text(),
      [s](auto& state) { matmul_benchmark<float, float>(state, s, 2); });
  add("matmul/bf16/" + s.text(),
      [s](auto& state) { matmul_benchmark<BFloat16, float>(state, s, 1); });
  add("matmul/i8/" + s.text(),
      [s](auto& state) { matmul_benchmark<std::int8_t, std::int32_t>(state, s, 1); });
}

constexpr std::int64_t kRows = 4096, kColumns = 1024;

void add_rows() {
  add("softmax/plain", [](auto& state) {
    auto x = numbers<float>(kRows * kColumns), y = x;
    for (auto _ : state) plain_softmax(x.data(), y.data(), kRows, kColumns);
  });
  for (const auto& [name, precision] :
       {std::pair{"exact", Precision::Exact}, {"fast", Precision::Fast}}) {
    add(std::string("softmax/") + name, [precision = precision](auto& state) {
      auto x = numbers<float>(kRows * kColumns), y = x;
      Launch launch{compiled(examples::softmax(DType::F32, kColumns), precision),
                    {Argument::view(DType::F32, x.data(), {kRows, kColumns}),
                     Argument::view(DType::F32, y.data(), {kRows, kColumns})},
                    {kRows, 1, 1}};
      launch.check();
      for (auto _ : state) launch.run();
    });
  }
  add("layer_norm/plain", [](auto& state) {
    auto x = numbers<float>(kRows * kColumns), y = x, w = numbers<float>(kColumns), b = w;
    for (auto _ : state)
      plain_layer_norm(x.data(), w.data(), b.data(), y.data(), kRows, kColumns, 1e-5f);
  });
  add("layer_norm/exact", [](auto& state) {
    auto x = numbers<float>(kRows * kColumns), y = x, w = numbers<float>(kColumns), b = w;
    Launch launch{compiled(examples::layer_norm(DType::F32, kColumns)),
                  {Argument::view(DType::F32, x.data(), {kRows, kColumns}),
                   Argument::view(DType::F32, w.data(), {kColumns}),
                   Argument::view(DType::F32, b.data(), {kColumns}),
                   Argument::view(DType::F32, y.data(), {kRows, kColumns}),
                   Argument::number(DType::F32, 1e-5)},
                  {kRows, 1, 1}};
    launch.check();
    for (auto _ : state) launch.run();
  });
}

void add_attention() {
  constexpr std::int64_t kHeads = 12, kWidth = 64;
  for (const std::int64_t length : {128, 512, 2048}) {
    for (const auto mask : {examples::Mask::None, examples::Mask::Causal}) {
      const bool causal = mask == examples::Mask::Causal;
      add(fmt::format("attention/{}/{}", causal ? "causal" : "full", length), [=](auto& state) {
        const std::int64_t count = kHeads * length * kWidth;
        auto q = numbers<float>(count), k = q, v = q, out = q;
        // Under a mask, what the queries' own tile has beyond the diagonal is computed for nothing.
        const examples::AttentionTiles tiles =
            causal && length <= 128 ? examples::AttentionTiles{16, 48}
                                    : examples::AttentionTiles{32, causal ? 96 : 128};
        Launch launch{
            compiled(examples::attention(DType::F32, kWidth, tiles, mask), Precision::Fast),
            {},
            {tile::cdiv(length, tiles.queries), kHeads, 1}};
        for (auto* x : {&q, &k, &v, &out}) {
          launch.arguments.push_back(
              Argument::view(DType::F32, x->data(), {kHeads, length, kWidth}));
        }
        launch.check();
        for (auto _ : state) launch.run();
        state.counters["scratch"] = static_cast<double>(launch.code->scratch_bytes());
      });
    }
  }
}

void add_compilation() {
  const auto time = [](const std::string& name, const Expected<tile::Kernel>& kernel) {
    add("compile/" + name, [kernel](auto& state) {
      for (auto _ : state) benchmark::DoNotOptimize(compiled(kernel));
    });
  };
  time("elementwise", examples::vector_add(DType::F32, 1024));
  time("matmul", examples::matmul(DType::F32, DType::F32, {512, 512, 512, 1}));
  for (const std::int64_t size : {1024, 4096, 16384, 65536}) {
    time(fmt::format("tile/{}", size), examples::softmax(DType::F32, size));
  }
  add("compile/cached", [](auto& state) {
    const auto folder =
        std::filesystem::temp_directory_path() / fmt::format("tessera_bench_{}", ::getpid());
    const auto kernel = examples::matmul(DType::F32, DType::F32, {512, 512, 512, 1});
    const codegen::Options options{.cache = folder};
    TESSERA_CHECK(codegen::compile(*kernel, options).has_value(), "no kernel");
    for (auto _ : state) {
      const auto again = codegen::compile(*kernel, options);
      TESSERA_CHECK(again.has_value() && (*again)->from_cache(), "not from the cache");
    }
    std::filesystem::remove_all(folder);
  });
  add("launch", [](auto& state) {
    auto x = numbers<float>(64), y = x, z = x;
    const Launch launch{compiled(examples::vector_add(DType::F32, 64)),
                        {tile::argument(x), tile::argument(y), tile::argument(z),
                         tile::argument(std::int64_t{64})}};
    for (auto _ : state) benchmark::DoNotOptimize(launch.code->launch(launch.arguments, {1, 1, 1}));
  });
}

void add_machine() {
  add("peak/fma", [](auto& state) {
    double operations = 0;
    for (auto _ : state) operations += machine::fma_rounds(20000);
    state.counters["flops"] = benchmark::Counter(operations, benchmark::Counter::kIsRate);
  });
  add("peak/fma_two_threads", [](auto& state) {
    constexpr std::int64_t kLong = 400000;
    double operations = 0;
    for (auto _ : state) {
      std::thread other([] { benchmark::DoNotOptimize(machine::fma_rounds(kLong)); });
      operations += 2 * machine::fma_rounds(kLong);
      other.join();
    }
    state.counters["flops"] = benchmark::Counter(operations, benchmark::Counter::kIsRate);
  });
  add("peak/memcpy", [](auto& state) {
    auto x = numbers<float>(kRows * kColumns), y = x;
    for (auto _ : state) {
      benchmark::DoNotOptimize(std::memcpy(y.data(), x.data(), x.size() * sizeof(float)));
      benchmark::ClobberMemory();
    }
  });
}

}  // namespace
}  // namespace tessera::bench

/// What peers read when they are loaded, before main: where it changes, the program begins anew.
/// OpenBLAS falls back to SSE on processors that came after it, which its best kernels run on.
static void settle_peers(char** argv) {
  const char* threads = std::getenv("OMP_NUM_THREADS");
  bool settled = threads != nullptr && std::string(threads) == "1";
  setenv("OMP_NUM_THREADS", "1", 1);
  if (tessera::machine::host().has("avx512f") && std::getenv("OPENBLAS_CORETYPE") == nullptr) {
    setenv("OPENBLAS_CORETYPE", "SkylakeX", 1);
    settled = false;
  }
  if (!settled) execv("/proc/self/exe", argv);
  openblas_set_num_threads(1);
}

int main(int argc, char** argv) {
  settle_peers(argv);
  tessera::bench::add_machine();
  tessera::bench::add_matrices();
  tessera::bench::add_rows();
  tessera::bench::add_attention();
  tessera::bench::add_compilation();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
