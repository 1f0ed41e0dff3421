#include "tessera/codegen/image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <llvm/AsmParser/Parser.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/SourceMgr.h>
#include <sys/mman.h>

#include <filesystem>

#include "examples/attention.h"
#include "examples/histogram.h"
#include "examples/layer_norm.h"
#include "examples/matmul.h"
#include "examples/softmax.h"
#include "examples/vector_add.h"
#include "tessera/codegen/llvm/link.h"
#include "tests/codegen/both_ways.h"
#include "tests/codegen/launch_lines.h"

namespace tessera::codegen {
namespace {

using ::testing::HasSubstr;
using namespace tile::examples;

/// An image as a program maps it: read and execute, and nothing else.
class Mapped {
 public:
  explicit Mapped(const Image& image) : size_(image.code.size()) {
    at_ = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    std::memcpy(at_, image.code.data(), size_);
    mprotect(at_, size_, PROT_READ | PROT_EXEC);
    __builtin___clear_cache(static_cast<char*>(at_), static_cast<char*>(at_) + size_);
  }
  ~Mapped() { munmap(at_, size_); }
  Mapped(const Mapped&) = delete;

  int run(const Image::Entry& entry, const std::vector<tile::Argument>& arguments,
          const tile::Grid& grid) const {
    using Function = int(const std::uint64_t*, std::int64_t, std::int64_t, std::byte*);
    std::vector<std::uint64_t> words(grid.begin(), grid.end());
    const std::vector<std::uint64_t> rest = tile::words_of(arguments);
    words.insert(words.end(), rest.begin(), rest.end());
    Buffer scratch(static_cast<std::size_t>(entry.scratch_bytes) + 128);
    auto* aligned = scratch.data() + (-reinterpret_cast<std::uintptr_t>(scratch.data()) & 127);
    auto* function = reinterpret_cast<Function*>(static_cast<std::byte*>(at_) + entry.offset);
    return function(words.data(), 0, grid[0] * grid[1] * grid[2], aligned);
  }

 private:
  std::size_t size_;
  void* at_;
};

tile::Kernel table_of_sines(const char* name) {
  return parsed(fmt::format(R"(kernel {}(x: view f32[?], out: view f32[?]) {{
    at = mul(pid(), 128)
    a: f32[128] = vload(x, at)
    vstore(out, at, add(sin(mul(a, 1e6)), exp(a)))
  }})",
                            name));
}

struct ImageCase {
  tile::Kernel kernel;
  TestArguments arguments;
  tile::Grid grid;
};

std::vector<ImageCase> cases() {
  std::vector<ImageCase> cases;
  const auto add = [&](Expected<tile::Kernel> kernel, const TestArguments& arguments,
                       const tile::Grid& grid) {
    ASSERT_TRUE(kernel) << to_string(kernel.error());
    cases.push_back({*std::move(kernel), arguments, grid});
  };
  using enum DType;
  add(vector_add(F32, 64),
      TestArguments(1).pointer(F32, 99).pointer(F32, 99).pointer(F32, 99).integer(I64, 99),
      {2, 1, 1});
  add(softmax(F32, 77), TestArguments(2).view(F32, {3, 77}).view(F32, {3, 77}), {3, 1, 1});
  add(matmul(F32, F32, {32, 32, 32}),
      TestArguments(3).view(F32, {50, 70}).view(F32, {70, 45}).view(F32, {50, 45}), {4, 1, 1});
  add(matmul(BF16, F32, {64, 64, 64}),
      TestArguments(4).view(BF16, {50, 70}).view(BF16, {70, 45}).view(F32, {50, 45}), {1, 1, 1});
  add(table_of_sines("sines"), TestArguments(5).view(F32, {300}).view(F32, {300}), {3, 1, 1});
  add(matmul(F32, F32, {512, 512, 64}),
      TestArguments(6).view(F32, {9, 70}).view(F32, {70, 45}).view(F32, {9, 45}), {1, 1, 1});
  return cases;
}

std::vector<tile::Kernel> kernels_of(const std::vector<ImageCase>& cases) {
  std::vector<tile::Kernel> kernels;
  for (const ImageCase& one : cases) kernels.push_back(one.kernel);
  return kernels;
}

machine::Machine named(const std::string& name) {
  return *machine::named(name);
}

TEST(Image, RunsWhereverItIsMapped) {
  const auto all = cases();
  const auto image = build_image(kernels_of(all), machine::host(), {.threads = 2});
  ASSERT_TRUE(image) << to_string(image.error());
  const Mapped here(*image), there(*image);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto compiled = compile(all[i].kernel);
    ASSERT_TRUE(compiled) << to_string(compiled.error());
    EXPECT_EQ(image->entries[i].scratch_bytes, (*compiled)->scratch_bytes());
    std::vector<std::vector<std::byte>> expected, once, again;
    ASSERT_TRUE((*compiled)->launch(all[i].arguments.copy(expected), all[i].grid));
    EXPECT_EQ(here.run(image->entries[i], all[i].arguments.copy(once), all[i].grid), 0);
    EXPECT_EQ(there.run(image->entries[i], all[i].arguments.copy(again), all[i].grid), 0);
    EXPECT_EQ(once, expected) << all[i].kernel.name;
    EXPECT_EQ(again, expected) << all[i].kernel.name;
  }
}

TEST(Image, HasEqualKernelsOnce) {
  const std::vector<tile::Kernel> kernels = {table_of_sines("a"), *softmax(DType::F32, 16),
                                             table_of_sines("b")};
  std::vector<std::size_t> progress;
  const auto image = build_image(kernels, machine::host(),
                                 {.progress = [&](std::size_t done) { progress.push_back(done); }});
  ASSERT_TRUE(image);
  EXPECT_EQ(image->entries[0].offset, image->entries[2].offset);
  EXPECT_NE(image->entries[0].offset, image->entries[1].offset);
  EXPECT_EQ(progress, (std::vector<std::size_t>{2, 3}));
}

TEST(Image, IsTheSameForAnyNumberOfThreadsAndFromTheCache) {
  const auto kernels = kernels_of(cases());
  const auto folder = std::filesystem::temp_directory_path() /
                      fmt::format("tessera-image-test-{}", static_cast<int>(getpid()));
  const auto one = build_image(kernels, machine::host(), {.kernel = {.cache = folder}});
  const auto three = build_image(kernels, machine::host(), {.threads = 3});
  const auto cached =
      build_image(kernels, machine::host(), {.kernel = {.cache = folder}, .threads = 2});
  std::filesystem::remove_all(folder);
  ASSERT_TRUE(one && three && cached);
  EXPECT_EQ(one->from_cache, 0);
  EXPECT_EQ(cached->from_cache, std::ssize(kernels));
  EXPECT_TRUE(std::ranges::equal(one->code.view(), three->code.view()));
  EXPECT_TRUE(std::ranges::equal(one->code.view(), cached->code.view()));
}

TEST(Image, IsBuiltForOtherMachines) {
  const auto kernels = kernels_of(cases());
  for (const char* name : {"neoverse-v1", "haswell", "sapphirerapids"}) {
    const auto image = build_image(kernels, named(name), {.threads = 2});
    ASSERT_TRUE(image) << name << ": " << to_string(image.error());
    ASSERT_EQ(image->entries.size(), kernels.size());
    for (const Image::Entry& entry : image->entries) {
      EXPECT_EQ(entry.offset % 64, 0);
      EXPECT_LT(entry.offset, std::ssize(image->code.view()));
      EXPECT_GE(entry.scratch_bytes, 0);
    }
  }
}

TEST(Image, OfNoKernelsIsEmpty) {
  const auto image = build_image({}, machine::host(), {.threads = 4});
  ASSERT_TRUE(image);
  EXPECT_EQ(image->code.size(), 0u);
}

TEST(Image, IsNotBuiltOnceItIsStopped) {
  const std::atomic<bool> stop = true;
  const auto image = build_image(kernels_of(cases()), machine::host(), {.stop = &stop});
  ASSERT_FALSE(image);
  EXPECT_EQ(image.error().id, "stopped");
}

TEST(Image, NamesTheFirstKernelThatCannotBeCompiled) {
  const auto large = [](const char* name) {
    std::string text = fmt::format("kernel {}(x: view f64[?], out: view f64[?]) {{\n", name);
    text += "v0: f64[67108864] = vload(x, 0)\n";
    for (int i = 0; i < 9; ++i) text += fmt::format("v{1} = scan(v{0}) {{fn = add}}\n", i, i + 1);
    for (int i = 0; i < 9; ++i) text += fmt::format("vstore(out, {0}, v{0})\n", i);
    return parsed(text + "}");
  };
  const std::vector<tile::Kernel> kernels = {*softmax(DType::F32, 16), large("first"),
                                             large("second")};
  for (int i = 0; i < 5; ++i) {
    const auto image = build_image(kernels, machine::host(), {.threads = 3});
    ASSERT_FALSE(image);
    EXPECT_EQ(to_string(image.error()).substr(0, 5), "first");
  }
}

// --- The linker

ObjectBytes kernel_object(const std::string& body, const machine::Machine& machine) {
  llvm::LLVMContext context;
  llvm::SMDiagnostic problem;
  const auto module = llvm::parseAssemblyString("@tessera_scratch_bytes = constant i64 77\n" + body,
                                                problem, context);
  EXPECT_NE(module, nullptr) << problem.getMessage().str();
  auto object = object_of(*module, machine);
  EXPECT_TRUE(object.has_value());
  return *std::move(object);
}

std::string why_not(const std::string& body) {
  std::string reasons;
  for (const char* name : {"neoverse-v1", "haswell"}) {
    const machine::Machine machine = named(name);
    const std::vector<ObjectBytes> objects = {kernel_object(body, machine)};
    const auto image = link(objects, machine.architecture);
    EXPECT_FALSE(image);
    if (!image) reasons += to_string(image.error());
  }
  return reasons;
}

TEST(Link, RefusesWhatIsNotInTheObject) {
  const std::string reason = why_not(R"(
declare double @cbrt(double)
define double @tessera_kernel(double %x) { %y = call double @cbrt(double %x)
 %z = fadd double %y, 1.0
 ret double %z })");
  EXPECT_THAT(reason, HasSubstr("cbrt is not defined"));
}

TEST(Link, RefusesMemoryToWriteTo) {
  EXPECT_THAT(why_not(R"(
@count = global i32 3
define i32 @tessera_kernel() { ret i32 0 })"),
              HasSubstr(".data is neither code nor constants"));
  EXPECT_THAT(why_not(R"(
@count = global i32 0
define i32 @tessera_kernel() { ret i32 0 })"),
              HasSubstr(".bss is neither code nor constants"));
}

TEST(Link, RefusesAddressesThatAreFixedWhenItIsLoaded) {
  EXPECT_THAT(why_not(R"(
@where = constant ptr @tessera_kernel
define i32 @tessera_kernel() { ret i32 0 })"),
              HasSubstr(".data.rel.ro is neither code nor constants"));
  EXPECT_THAT(why_not(R"(
@table = constant i32 3
define ptr @tessera_kernel() { ret ptr @table })"),
              HasSubstr("GOT"));
}

TEST(Link, RefusesObjectsWithoutAnEntryOrOfAnotherMachine) {
  EXPECT_THAT(why_not("define i32 @other() { ret i32 0 }"), HasSubstr("has no tessera_kernel"));
  const std::vector<ObjectBytes> objects = {
      kernel_object("define i32 @tessera_kernel() { ret i32 0 }", named("haswell"))};
  EXPECT_FALSE(link(objects, machine::Architecture::AArch64));
  EXPECT_TRUE(link(objects, machine::Architecture::X86_64));
}

TEST(Link, FollowsCallsTablesAndBranchesByTable) {
  const machine::Machine host = machine::host();
  const std::vector<ObjectBytes> objects(2, kernel_object(R"(
@table = private constant [4 x i32] [i32 10, i32 20, i32 30, i32 40]
define internal i32 @pick(i64 %i) noinline {
  %at = getelementptr i32, ptr @table, i64 %i
  %x = load i32, ptr %at
  ret i32 %x
}
define i32 @tessera_kernel(ptr %words, i64 %first, i64 %last, ptr %scratch) {
  switch i64 %last, label %other [ i64 0, label %a
    i64 1, label %b
    i64 2, label %c
    i64 3, label %d
    i64 4, label %e ]
a: %x = call i32 @pick(i64 %first)
   ret i32 %x
b: ret i32 111
c: %y = call i32 @pick(i64 %last)
   ret i32 %y
d: ret i32 333
e: %z = call i32 @pick(i64 1)
   ret i32 %z
other: ret i32 -1
})",
                                                          host));
  const auto image = link(objects, host.architecture);
  ASSERT_TRUE(image) << to_string(image.error());
  const Mapped mapped(*image);
  for (const Image::Entry& entry : image->entries) {
    EXPECT_EQ(entry.scratch_bytes, 77);
    const std::vector<int> expected = {10, 111, 30, 333, 20, -1};
    for (int i = 0; i < 6; ++i)
      EXPECT_EQ(mapped.run(entry, {}, {i, 1, 1}), expected[static_cast<std::size_t>(i)]);
  }
}

TEST(Link, RefusesDamagedObjects) {
  const machine::Machine host = machine::host();
  const ObjectBytes whole = kernel_object("define i32 @tessera_kernel() { ret i32 0 }", host);
  for (std::size_t size = 0; size < whole.size(); size += 16) {
    const std::vector<ObjectBytes> cut = {ObjectBytes(whole.begin(), whole.begin() + size)};
    EXPECT_FALSE(link(cut, host.architecture)) << size;
  }
}

/// All kernels that the tests of kernels run, of every type.
TEST(SlowImage, NeedsNothingFromOutsideOnAnyMachine) {
  for (const char* name : {"neoverse-n1", "neoverse-v1", "haswell", "sapphirerapids"}) {
    for (const char* file : {"control", "libraries", "numbers", "shapes"}) {
      for (const std::string& text : launch_line::paragraphs(
               fmt::format("{}/tests/codegen/kernels/{}.tile", TESSERA_SOURCE_DIR, file))) {
        const auto image = build_image(std::vector{parsed(text)}, named(name));
        EXPECT_TRUE(image) << name << ": " << to_string(image.error()) << text;
      }
    }
  }
}

}  // namespace
}  // namespace tessera::codegen
