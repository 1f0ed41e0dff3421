#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <numeric>

#include "examples/matmul.h"
#include "examples/softmax.h"
#include "examples/vector_add.h"
#include "tessera/codegen/ptx/ptx.h"
#include "tessera/runtime/cuda/device.h"
#include "tests/codegen/both_ways.h"
#include "tests/codegen/launch_lines.h"
#include "tests/runtime/copying_program.h"
#include "tests/tile/random_kernel.h"

// What needs a GPU: what emulated threads cannot tell.

namespace tessera::codegen {
namespace {

namespace examples = tile::examples;
using runtime::cuda::Device;
using runtime::cuda::Memory;

/// Each with a block for each program, and with all that who launches may allow.
TEST(Driver, SaysThatItIsTooOld) {
  EXPECT_TRUE(runtime::cuda::check_version(12030));
  const auto old = runtime::cuda::check_version(12020);
  ASSERT_FALSE(old);
  EXPECT_EQ(to_string(old.error()),
            "error[cuda-driver]: the driver is that of CUDA 12.2\n"
            "  note: kernels are in the PTX of CUDA 12.3\n"
            "  help: install a newer driver of the GPU");
}

class Gpu : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    auto opened = Device::open();
    if (opened) {
      device.emplace(*std::move(opened));
      return;
    }
    EXPECT_EQ(opened.error().id, "cuda-missing") << to_string(opened.error());
    GTEST_SKIP() << to_string(opened.error());
  }

  /// Memory whose bytes are all alike.
  Memory filled(std::int64_t bytes, int value) {
    auto memory = device->allocate(bytes);
    EXPECT_TRUE(memory) << to_string(memory.error());
    if (!memory) return {};
    EXPECT_TRUE(memory->fill(static_cast<std::byte>(value)));
    return *std::move(memory);
  }

  void launch(const Expected<tile::Kernel>& kernel, std::vector<tile::Argument> arguments,
              const tile::Grid& grid) {
    ASSERT_TRUE(kernel) << to_string(kernel.error());
    const PtxTarget target = device->compute() == 90 ? PtxTarget::Sm90a : PtxTarget::Sm80;
    const auto compiled =
        ptx_of(*kernel, {.target = target, .persistent = GetParam(), .maps = GetParam()});
    ASSERT_TRUE(compiled) << to_string(compiled.error());
    const auto function =
        device->load({compiled->text, compiled->entry, compiled->threads, compiled->shared_bytes,
                      compiled->programs, compiled->persistent, compiled->maps});
    ASSERT_TRUE(function) << to_string(function.error());
    const auto launched = function->launch({grid, tile::words_of(arguments)});
    ASSERT_TRUE(launched) << to_string(launched.error());
  }

  std::optional<Device> device;
};

std::byte* at(const Memory& memory, std::int64_t bytes = 0) {
  return reinterpret_cast<std::byte*>(memory.address() + static_cast<std::uint64_t>(bytes));
}

TEST_P(Gpu, RunsAKernelWhereThereIsOne) {
  const std::int64_t n = 1000;
  std::vector<float> x(n), sum(n);
  std::iota(x.begin(), x.end(), 0.0F);
  Memory memory = filled(n * 4, 0);
  ASSERT_TRUE(memory.write(std::as_bytes(std::span(x))));
  const auto all = tile::Argument::pointer(DType::F32, at(memory), n * 4);
  launch(examples::vector_add(DType::F32, 256),
         {all, all, all, tile::Argument::integer(DType::I64, n)}, {tile::cdiv(n, 256), 1, 1});
  ASSERT_TRUE(memory.read(std::as_writable_bytes(std::span(sum))));
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_EQ(sum[i], 2 * x[i]);
}

TEST_P(Gpu, AddsMoreElementsThanFitInto31Bits) {
  const std::int64_t n = (std::int64_t{1} << 31) + 4099;
  if (device->memory_bytes() < 4 * n) GTEST_SKIP() << "too little memory: " << 4 * n << " bytes";
  const Memory a = filled(n, 1), b = filled(n, 2), sum = filled(n, 0);
  const auto pointer = [&](const Memory& memory) {
    return tile::Argument::pointer(DType::I8, at(memory), n);
  };
  launch(examples::vector_add(DType::I8, 4096),
         {pointer(a), pointer(b), pointer(sum), tile::Argument::integer(DType::I64, n)},
         {tile::cdiv(n, 4096), 1, 1});
  std::vector<std::byte> part(1 << 20);
  for (const std::int64_t from : {std::int64_t{0}, n / 2, n - (1 << 20)}) {
    ASSERT_TRUE(sum.read(part, from));
    for (const std::byte byte : part) ASSERT_EQ(byte, std::byte{3}) << "from " << from;
  }
}

TEST_P(Gpu, ReadsRowsBeyond2To31Elements) {
  const std::int64_t rows = (1 << 20) + 3, columns = 2056, row_bytes = columns * 2;
  if (device->memory_bytes() < 3 * rows * row_bytes) GTEST_SKIP() << "too little memory";
  Memory in = filled(rows * row_bytes, 0);
  const Memory out = filled(rows * row_bytes, 0xFF);
  const auto view = [&](const Memory& memory) {
    return tile::Argument::view(DType::F16, at(memory), {rows, columns});
  };
  launch(examples::softmax(DType::F16, columns), {view(in), view(out)}, {rows, 1, 1});
  std::vector<std::uint16_t> row(static_cast<std::size_t>(columns));
  for (const std::int64_t r : {std::int64_t{0}, rows - 1}) {
    ASSERT_TRUE(out.read(std::as_writable_bytes(std::span(row)), r * row_bytes));
    for (const std::uint16_t bits : row)
      ASSERT_NEAR(to_float(Half{bits}), 1.0 / static_cast<double>(columns), 1e-6) << "row " << r;
  }
}

TEST_P(Gpu, TakesMemoryAgainThatWasGivenBack) {
  const std::int64_t most = device->memory_bytes() * 3 / 4;
  for (int i = 0; i < 100; ++i) {
    const auto memory = device->allocate(most);
    ASSERT_TRUE(memory) << to_string(memory.error());
  }
}

TEST_P(Gpu, SaysThatMemoryIsTooSmall) {
  const auto memory = device->allocate(std::int64_t{1} << 50);
  ASSERT_FALSE(memory);
  EXPECT_EQ(memory.error().id, "cuda-memory") << to_string(memory.error());
}

// Views that begin at any element, and rows at any distance.
TEST_P(Gpu, MultipliesViewsThatAreNotAligned) {
  const std::int64_t m = 130, n = 66, k = 100;
  for (const std::int64_t apart : {0, 1, 3, 8}) {
    for (const std::int64_t first : {0, 1, 4}) {
      SCOPED_TRACE(::testing::Message() << "rows " << apart << " apart, from " << first);
      const TestArguments arguments = TestArguments(3)
                                          .view(DType::F16, {m, k}, {k + apart, 1})
                                          .view(DType::F16, {k, n}, {n + apart, 1})
                                          .view(DType::F32, {m, n}, {n + apart, 1});
      std::vector<std::vector<std::byte>> expected;
      const auto on_computer = arguments.copy(expected);
      const auto kernel = examples::matmul(DType::F16, DType::F32, {64, 64, 32});
      ASSERT_TRUE(tile::interpret(*kernel, on_computer, {6, 1, 1}));
      std::vector<Memory> memory;
      std::vector<tile::Argument> on_gpu = on_computer;
      for (std::size_t i = 0; i < on_gpu.size(); ++i) {
        const std::int64_t offset = first * byte_width(on_gpu[i].type.dtype);
        memory.push_back(
            filled(static_cast<std::int64_t>(arguments.memory()[i].size()) + offset, 0));
        ASSERT_TRUE(memory.back().write(arguments.memory()[i], offset));
        on_gpu[i].data = at(memory.back(), offset);
      }
      launch(kernel, on_gpu, {6, 1, 1});
      std::vector<float> want(static_cast<std::size_t>(m * (n + apart))), found(want.size());
      std::memcpy(want.data(), expected[2].data(), want.size() * 4);
      ASSERT_TRUE(memory[2].read(std::as_writable_bytes(std::span(found)), first * 4));
      for (std::size_t i = 0; i < want.size(); ++i)
        ASSERT_NEAR(want[i], found[i], 1e-3 * std::max(1.0F, std::abs(want[i]))) << "at " << i;
    }
  }
}

// Each paragraph of the folder of kernels, wherever that lies on the computer with the GPU.
TEST_P(Gpu, RunsKernelsAsTheInterpreterDoes) {
  const char* named = std::getenv("TESSERA_TILE_KERNELS");
  const std::filesystem::path folder =
      named != nullptr ? named : TESSERA_SOURCE_DIR "/tests/codegen/kernels";
  ASSERT_TRUE(std::filesystem::exists(folder)) << folder;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    for (const std::string& paragraph : launch_line::paragraphs(file.path().string())) {
      if (paragraph.find("// not on a GPU") != std::string::npos) continue;
      const auto kernel = tile::parse_kernel(paragraph);
      ASSERT_TRUE(kernel) << to_string(kernel.error()) << paragraph;
      for (const std::string& text : launch_line::split(paragraph, "\n")) {
        if (text.rfind("// launch ", 0) != 0) continue;
        SCOPED_TRACE(kernel->name + " " + text);
        const LaunchLine line = launch_line::parse(text.substr(10), *kernel);
        std::vector<std::vector<std::byte>> expected, found;
        ASSERT_TRUE(tile::interpret(*kernel, line.place(expected), line.grid));
        std::vector<tile::Argument> arguments = line.place(found);
        std::vector<Memory> memory;
        for (const auto& bytes : found) {
          memory.push_back(filled(static_cast<std::int64_t>(bytes.size()), 0));
          ASSERT_TRUE(memory.back().write(bytes));
        }
        for (std::size_t i = 0; i < arguments.size(); ++i)
          if (!arguments[i].type.is_number())
            arguments[i].data =
                at(memory[line.buffer[i]], static_cast<std::int64_t>(line.offset[i]));
        launch(kernel, arguments, line.grid);
        for (std::size_t i = 0; i < found.size(); ++i) {
          const auto read = memory[i].read(found[i]);
          ASSERT_TRUE(read) << to_string(read.error());
        }
        EXPECT_EQ(launch_line::difference(line, expected, found), "");
      }
    }
  }
}

// Arguments in all kinds of host memory; over a driver without a GPU in tests/fake_gpu.
TEST_P(Gpu, CopiesArgumentsInHostMemory) {
  namespace made = runtime::testing;
  const std::vector<std::int64_t> sizes = {4,    64 << 10,      (40 << 20) + 52, 0, (64 << 10) + 4,
                                           1000, (1 << 20) + 12};
  const auto program = runtime::LoadedProgram::load(made::copying_program(sizes));
  ASSERT_TRUE(program) << to_string(program.error());
  const auto session = runtime::Session::create(*program, {.threads = GetParam() ? 8 : 1});
  ASSERT_TRUE(session) << to_string(session.error());
  std::vector<std::vector<Datum>> kept;
  for (unsigned seed = 0; seed < 6; ++seed) {
    const auto outputs = (*session)->run(made::tensors_of(made::inputs_of(sizes, seed), seed));
    ASSERT_TRUE(outputs) << to_string(outputs.error());
    kept.push_back(*outputs);
  }
  for (unsigned seed = 0; seed < 6; ++seed)
    EXPECT_TRUE(made::are_reversed(made::inputs_of(sizes, seed), kept[seed])) << seed;
  for (const bool is_pinned : {false, true}) {
    const auto inputs = made::inputs_of(sizes, 9);
    std::vector<std::shared_ptr<std::byte>> memory;
    std::vector<const std::byte*> from;
    std::vector<std::byte*> to;
    const auto allocate = [&](std::size_t bytes) {
      const auto buffer = std::make_shared<Buffer>(bytes);
      memory.push_back(is_pinned ? (*session)->host_memory(bytes)
                                 : std::shared_ptr<std::byte>(buffer, buffer->data()));
      return memory.back().get();
    };
    for (const auto& input : inputs) {
      std::byte* const copy = allocate(input.size());
      std::ranges::copy(input, copy);
      from.push_back(copy);
    }
    for (std::size_t i = inputs.size(); i-- > 0;) to.push_back(allocate(inputs[i].size()));
    EXPECT_EQ(device->knows(from[2], inputs[2].size()), is_pinned)
        << "memory that others have pinned is staged: the driver does not tell its range";
    for (int i = 0; i < 3; ++i) {
      const auto done = (*session)->run(from, to);
      ASSERT_TRUE(done) << to_string(done.error());
      for (std::size_t o = 0; o < to.size(); ++o)
        EXPECT_TRUE(std::equal(inputs[sizes.size() - 1 - o].begin(),
                               inputs[sizes.size() - 1 - o].end(), to[o]));
    }
  }
}

/// A number in the environment, for longer runs than the tests need.
std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

TEST_P(Gpu, RunsRandomKernelsAsTheInterpreterDoes) {
  const auto first = from_environment("TESSERA_RANDOM_SEED", 20000);
  const auto count = static_cast<int>(from_environment("TESSERA_RANDOM_KERNELS", 200));
  testing::for_each_random_kernel(
      first, count, {.steps = 32}, [&](const testing::RandomKernel& random) {
        testing::Memory expected = random.memory, found = random.memory;
        const auto run = tile::interpret(random.kernel, random.arguments(expected), random.grid);
        ASSERT_TRUE(run) << to_string(run.error());
        std::vector<tile::Argument> arguments = random.arguments(found);
        std::vector<Memory> memory;
        for (const auto& bytes : found) {
          memory.push_back(filled(static_cast<std::int64_t>(bytes.size()), 0));
          ASSERT_TRUE(memory.back().write(bytes));
        }
        for (std::size_t i = 0; i < arguments.size(); ++i) {
          if (!random.buffer[i]) continue;
          const std::size_t b = *random.buffer[i];
          arguments[i].data = at(memory[b], arguments[i].data - found[b].data());
        }
        launch(random.kernel, arguments, random.grid);
        for (std::size_t i = 0; i < found.size(); ++i) ASSERT_TRUE(memory[i].read(found[i]));
        EXPECT_EQ(testing::difference(random, expected, found, 0), "");
      });
}

INSTANTIATE_TEST_SUITE_P(, Gpu, ::testing::Bool());

}  // namespace
}  // namespace tessera::codegen
