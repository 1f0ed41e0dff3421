#include "tessera/codegen/llvm/object.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <llvm/AsmParser/Parser.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/SourceMgr.h>

#include <cmath>
#include <thread>

namespace tessera::codegen {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// A module read from LLVM's text form.
struct Parsed {
  explicit Parsed(const std::string& text) {
    llvm::SMDiagnostic problem;
    module = llvm::parseAssemblyString(text, problem, context);
    EXPECT_NE(module, nullptr) << problem.getMessage().str();
  }
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module;
};

ObjectBytes object_from(const std::string& text) {
  Parsed parsed(text);
  auto object = object_of(*parsed.module, machine::host());
  EXPECT_TRUE(object.has_value());
  return *std::move(object);
}

template <class Function>
Function* function_of(const LoadedObject& image, const std::string& name) {
  return reinterpret_cast<Function*>(image.address(name));
}

constexpr const char* kTwice = "define i32 @twice(i32 %x) { %y = add i32 %x, %x\n ret i32 %y }";

// y[i] = max(a * x[i] + y[i], 0) on vectors of four floats.
constexpr const char* kSaxpy = R"(
define i32 @saxpy(float %a, ptr noalias %x, ptr noalias %y, i64 %n) {
entry:
  %s0 = insertelement <4 x float> poison, float %a, i64 0
  %splat = shufflevector <4 x float> %s0, <4 x float> poison, <4 x i32> zeroinitializer
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %px = getelementptr float, ptr %x, i64 %i
  %py = getelementptr float, ptr %y, i64 %i
  %vx = load <4 x float>, ptr %px, align 4
  %vy = load <4 x float>, ptr %py, align 4
  %r = call <4 x float> @llvm.fma.v4f32(<4 x float> %splat, <4 x float> %vx, <4 x float> %vy)
  %m = call <4 x float> @llvm.maxnum.v4f32(<4 x float> %r, <4 x float> zeroinitializer)
  store <4 x float> %m, ptr %py, align 4
  %next = add i64 %i, 4
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret i32 0
}
declare <4 x float> @llvm.fma.v4f32(<4 x float>, <4 x float>, <4 x float>)
declare <4 x float> @llvm.maxnum.v4f32(<4 x float>, <4 x float>)
)";

TEST(Object, RunsOnThisComputer) {
  const auto image = LoadedObject::load(object_from(kSaxpy));
  ASSERT_TRUE(image.has_value());
  std::vector<float> x(64), y(64, 1.0f);
  for (int i = 0; i < 64; ++i) x[i] = static_cast<float>(i - 32);
  const auto saxpy = function_of<int(float, const float*, float*, std::int64_t)>(**image, "saxpy");
  EXPECT_EQ(saxpy(2.0f, x.data(), y.data(), 64), 0);
  for (int i = 0; i < 64; ++i) EXPECT_EQ(y[i], std::max(2.0f * x[i] + 1.0f, 0.0f)) << i;
}

TEST(Object, IsTheSameEveryTime) {
  EXPECT_EQ(object_from(kSaxpy), object_from(kSaxpy));
}

TEST(Object, CallsTheProcessForMemoryAndMath) {
  const auto image = LoadedObject::load(object_from(R"(
define double @use(ptr %to, ptr %from, i64 %n, double %x) {
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %n, i1 false)
  %y = call double @cbrt(double %x)
  ret double %y
}
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare double @cbrt(double)
)"));
  ASSERT_TRUE(image.has_value());
  const std::string from(100, 'a');
  std::string to(100, 'b');
  const auto use = function_of<double(char*, const char*, std::int64_t, double)>(**image, "use");
  const volatile double x = 27.0;  // else the compiler computes the root, and rounds it better
  EXPECT_EQ(use(to.data(), from.data(), 100, x), std::cbrt(x));
  EXPECT_EQ(to, from);
}

TEST(Object, ObjectsWithTheSameNamesLiveSideBySide) {
  const auto twice = LoadedObject::load(object_from(kTwice));
  auto thrice = LoadedObject::load(
      object_from("define i32 @twice(i32 %x) { %y = mul i32 %x, 3\n ret i32 %y }"));
  ASSERT_TRUE(twice.has_value());
  ASSERT_TRUE(thrice.has_value());
  EXPECT_EQ(function_of<int(int)>(**twice, "twice")(7), 14);
  EXPECT_EQ(function_of<int(int)>(**thrice, "twice")(7), 21);
  *thrice = nullptr;
  EXPECT_EQ(function_of<int(int)>(**twice, "twice")(8), 16);
}

TEST(Object, ThreadsCompileAndLoadAtTheSameTime) {
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 5; ++i) {
        const auto image = LoadedObject::load(object_from(kTwice));
        if (image && function_of<int(int)>(**image, "twice")(i) == 2 * i) ++right;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 20);
}

TEST(Object, BytesThatAreNoObjectAreDiagnosed) {
  const std::string text = "no object code at all, but long enough to be looked at";
  const auto image = LoadedObject::load(std::as_bytes(std::span(text)));
  ASSERT_FALSE(image.has_value());
  EXPECT_EQ(image.error().id, "object-unloadable");
}

TEST(Object, ACutObjectIsDiagnosed) {
  const ObjectBytes whole = object_from(kSaxpy);
  for (const std::size_t size : {std::size_t{0}, std::size_t{40}, whole.size() / 2}) {
    const auto image = LoadedObject::load(std::span(whole).first(size));
    ASSERT_FALSE(image.has_value()) << size;
    EXPECT_EQ(image.error().id, "object-unloadable");
  }
}

TEST(Object, AMissingFunctionIsDiagnosed) {
  const auto image = LoadedObject::load(
      object_from("define void @f() { call void @no_such_function_anywhere()\n ret void }\n"
                  "declare void @no_such_function_anywhere()"));
  ASSERT_FALSE(image.has_value());
  EXPECT_THAT(image.error().message, HasSubstr("no_such_function_anywhere"));
}

TEST(Object, ABrokenModuleIsAnErrorOfOurs) {
  Parsed parsed("define i32 @f(i32 %x) { ret i32 %x }");
  llvm::Function* function = parsed.module->getFunction("f");
  function->getEntryBlock().getTerminator()->eraseFromParent();
  EXPECT_THROW((void)object_of(*parsed.module, machine::host()), InternalError);
}

std::string assembly_for(const std::string& machine, const std::string& text) {
  Parsed parsed(text);
  auto assembly = assembly_of(*parsed.module, *machine::named(machine));
  EXPECT_TRUE(assembly.has_value());
  return *std::move(assembly);
}

/// The sum of two vectors of so many floats.
std::string sum_of(int floats) {
  const std::string type = "<" + std::to_string(floats) + " x float>";
  return "define void @f(ptr %x, ptr %y) { %a = load " + type + ", ptr %x, align 4\n %b = load " +
         type + ", ptr %y, align 4\n %c = fadd " + type + " %a, %b\n store " + type +
         " %c, ptr %x, align 4\n ret void }";
}

TEST(Object, AssemblyIsOfTheMachineThatIsAskedFor) {
  EXPECT_THAT(assembly_for("neoverse-v1", sum_of(4)), HasSubstr("fadd\tv"));
  EXPECT_THAT(assembly_for("haswell", sum_of(8)), HasSubstr("%ymm"));
  for (const char* wide : {"skylake-avx512", "icelake-server", "sapphirerapids", "znver4"})
    EXPECT_THAT(assembly_for(wide, sum_of(16)), HasSubstr("%zmm")) << wide;
}

TEST(Object, LlvmKnowsEveryNameOfAProcessorAndAFeature) {
  ::testing::internal::CaptureStderr();  // where LLVM says that it does not know one
  for (const std::string& name : machine::known_names()) assembly_for(name, sum_of(4));
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST(Object, WhatAMachineLacksIsNotUsed) {
  machine::Machine machine = *machine::named("neoverse-v2");
  std::erase(machine.features, "bf16");
  // LLVM takes a Neoverse-V2 to have SVE; ours has not.
  Parsed parsed(
      "define <4 x bfloat> @f(<4 x float> %x) { %y = fptrunc <4 x float> %x to <4 x bfloat>\n"
      " ret <4 x bfloat> %y }\n"
      "define void @g(ptr %x) { %a = load <16 x float>, ptr %x, align 4\n"
      " %b = fdiv <16 x float> %a, %a\n store <16 x float> %b, ptr %x, align 4\n ret void }");
  const auto assembly = assembly_of(*parsed.module, machine);
  ASSERT_TRUE(assembly.has_value());
  EXPECT_THAT(*assembly, Not(HasSubstr("bfcvt")));
  EXPECT_THAT(*assembly, Not(HasSubstr("z0.s")));
}

TEST(Object, TheVersionNamesLlvmAndTheBuild) {
  EXPECT_THAT(generator_version(),
              ::testing::MatchesRegex("tessera [0-9.]+ llvm 19\\.[0-9.]+ [0-9a-f]+"));
  EXPECT_EQ(generator_version(), generator_version());
}

}  // namespace
}  // namespace tessera::codegen
