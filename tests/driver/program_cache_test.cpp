#include "tessera/driver/program_cache.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>

#include "tessera/codegen/llvm/object.h"
#include "tessera/driver/native_model.h"
#include "tessera/interp/interp.h"
#include "tests/support/evaluate.h"
#include "tests/support/graph_check.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

Model parsed_model(const std::string& text) {
  Model model{.graph = testing::parsed(text.c_str()), .output_names = {}};
  for (const ValueId output : model.graph.outputs())
    model.output_names.push_back(model.graph.name(output));
  return model;
}

const std::string kText =
    "graph(x: f32[4, 3]) { w = const f32[3, 2] [1.0, 2.0, 3.0, 4.0, 5.0, 0.0]"
    "  a = matmul(x, w)  y = softmax(a) {axis=1}  return y }";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

CompileModelOptions options() {
  CompileModelOptions options;
  options.code.machine = *machine::named("haswell");
  return options;
}

std::string key_of(const Model& model, const CompileModelOptions& options,
                   const InputShapes& shapes = {{{4, 3}}}) {
  const auto key = program_key(model, shapes, options);
  EXPECT_TRUE(key.has_value());
  return key.value_or("");
}

TEST(ProgramKey, IsTheSameForTheSameCompilation) {
  EXPECT_EQ(key_of(parsed_model(kText), options()), key_of(parsed_model(kText), options()));
}

TEST(ProgramKey, NamesTheBuildOfTheCompiler) {
  EXPECT_NE(key_of(parsed_model(kText), options()).find(codegen::generator_version()),
            std::string::npos);
}

TEST(ProgramKey, ChangesWithEveryPartOfTheModel) {
  std::map<std::string, std::string> keys = {{key_of(parsed_model(kText), options()), "nothing"}};
  const auto expect_new = [&](const std::string& what, std::string key) {
    const auto [at, added] = keys.emplace(std::move(key), what);
    EXPECT_TRUE(added) << what << " has the key of " << at->second;
  };
  const std::vector<std::pair<std::string, std::string>> edits = {
      {"5.0, 0.0", "5.0, -0.0"},      {"5.0, 0.0", "0.0, 5.0"},       {"4.0", "4.0000005"},
      {"f32[4, 3]", "f32[n, 3]"},     {"axis=1", "axis=0"},           {"softmax", "log_softmax"},
      {"return y", "return a"},       {"matmul(x, w)", "gemm(x, w)"}, {"a = ", "b = neg(x) a = "},
      {"{axis=1}", "{axis=1} @node"},
  };
  for (const auto& [from, to] : edits)
    expect_new(from + " to " + to, key_of(parsed_model(replaced(kText, from, to)), options()));
  expect_new("f64", key_of(parsed_model(replaced(replaced(kText, "f32", "f64"), "f32", "f64")),
                           options()));
  Model renamed = parsed_model(kText);
  renamed.output_names = {"answer"};
  expect_new("the name of an output", key_of(renamed, options()));
  expect_new("a shape", key_of(parsed_model(kText), options(), {{{5, 3}}}));
  expect_new("no shape", key_of(parsed_model(kText), options(), {std::nullopt}));
}

TEST(ProgramKey, ChangesWithAConstantOfASubgraph) {
  const std::string text =
      "graph(c: bool[], x: f32[2]) { y = if_else(c, x) {"
      " then(a) { k = const f32[2] [1.0, 2.0]  r = add(a, k)  return r }"
      " else(a) { r = neg(a)  return r } }  return y }";
  EXPECT_NE(key_of(parsed_model(text), options()),
            key_of(parsed_model(replaced(text, "2.0]", "2.5]")), options()));
}

TEST(ProgramKey, ChangesWithEveryOption) {
  const std::vector<std::pair<std::string, std::function<void(CompileModelOptions&)>>> changes = {
      {"nothing", [](auto&) {}},
      {"threads", [](auto& o) { o.code.threads = 2; }},
      {"exact", [](auto& o) { o.code.passes.exact = true; }},
      {"a pass", [](auto& o) { o.code.passes.disabled = {"cse"}; }},
      {"another pass", [](auto& o) { o.code.passes.disabled = {"algebra"}; }},
      {"two passes",
       [](auto& o) {
         o.code.passes.disabled = {"cse", "algebra"};
       }},
      {"a rule", [](auto& o) { o.code.passes.disabled_rules = {"cse"}; }},
      {"folding", [](auto& o) { o.code.passes.most_folded_bytes = 7; }},
      {"products", [](auto& o) { o.code.contraction_dtype = DType::BF16; }},
      {"tf32", [](auto& o) { o.code.tf32 = true; }},
      {"memory", [](auto& o) { o.code.memory_limit = 1 << 20; }},
      {"precision", [](auto& o) { o.precision = Precision::Bf16; }},
      {"auto", [](auto& o) { o.precision = Precision::Auto; }},
      {"error", [](auto& o) { o.max_error = std::nextafter(1e-2, 1); }},
      {"cpu", [](auto& o) { o.code.machine = *machine::named("sapphirerapids"); }},
      {"cores", [](auto& o) { o.code.machine.cores += 1; }},
      {"siblings", [](auto& o) { o.code.machine.siblings.push_back({7}); }},
      {"L1", [](auto& o) { o.code.machine.l1d += 1; }},
      {"L2", [](auto& o) { o.code.machine.l2 += 1; }},
      {"L3", [](auto& o) { o.code.machine.l3 += 1; }},
      {"lines", [](auto& o) { o.code.machine.cache_line = 128; }},
      {"vectors", [](auto& o) { o.code.machine.vector_bytes = 8; }},
      {"registers", [](auto& o) { o.code.machine.vector_registers = 8; }},
      {"features", [](auto& o) { o.code.machine.features.pop_back(); }},
      {"schedules",
       [](auto& o) {
         auto book = std::make_shared<program::ScheduleBook>();
         book->entries["0123"] = {};
         o.code.schedules = book;
       }},
  };
  std::map<std::string, std::string> keys;
  for (const auto& [what, change] : changes) {
    CompileModelOptions changed = options();
    change(changed);
    const auto [at, added] = keys.emplace(key_of(parsed_model(kText), changed), what);
    EXPECT_TRUE(added) << what << " has the key of " << at->second;
  }
}

TEST(ProgramKey, IsMissingWhereAProgramDependsOnMore) {
  const auto has_key = [](const std::function<void(CompileModelOptions&)>& change) {
    CompileModelOptions changed = options();
    change(changed);
    return program_key(parsed_model(kText), {{{4, 3}}}, changed).has_value();
  };
  EXPECT_TRUE(has_key([](auto&) {}));
  EXPECT_FALSE(has_key([](auto& o) { o.search.emplace(); }));
  EXPECT_FALSE(has_key([](auto& o) { o.keep_graph = true; }));
  EXPECT_FALSE(has_key([](auto& o) { o.code.passes.validate = true; }));
  EXPECT_FALSE(has_key([](auto& o) { o.code.passes.observe = [](const auto&, const auto&) {}; }));
  EXPECT_FALSE(has_key([](auto& o) { o.code.machine = machine::cuda(); }));
}

class CachedPrograms : public ::testing::Test {
 protected:
  CachedPrograms() {
    std::string name = (fs::temp_directory_path() / "tessera-programs-XXXXXX").string();
    base_ = mkdtemp(name.data());
    options_.program_cache = base_ / "programs";
  }
  ~CachedPrograms() override { fs::remove_all(base_); }

  struct Ran {
    bool was_compiled = false;
    std::vector<Datum> outputs = {};
  };
  Ran run(const Model& model) const {
    NativeModel native(model, options_, {});
    const auto outputs = native.run(inputs_);
    EXPECT_TRUE(outputs) << to_string(outputs.error());
    const auto expected = interp::run(model.graph, inputs_, {});
    testing::expect_near((*outputs)[0].tensor(), (*expected)[0].tensor(), 1e-5);
    return {native.programs().front()->compiled.has_value(), *outputs};
  }
  std::vector<fs::path> entries() const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(options_.program_cache))
      files.push_back(entry.path());
    return files;
  }

  fs::path base_;
  CompileModelOptions options_;
  std::vector<Datum> inputs_ = {testing::random_f32({4, 3}, 1)};
};

TEST_F(CachedPrograms, ASecondModelReadsTheProgramOfTheFirst) {
  const Ran first = run(parsed_model(kText)), second = run(parsed_model(kText));
  EXPECT_TRUE(first.was_compiled);
  EXPECT_FALSE(second.was_compiled);
  const auto bits = [](const Ran& ran) {
    const auto view = ran.outputs[0].tensor().bytes.view();
    return std::vector(view.begin(), view.end());
  };
  EXPECT_EQ(bits(first), bits(second));
}

TEST_F(CachedPrograms, AModelOfOtherWeightsIsCompiled) {
  run(parsed_model(kText));
  EXPECT_TRUE(run(parsed_model(replaced(kText, "1.0, 2.0", "2.0, 1.0"))).was_compiled);
  EXPECT_FALSE(run(parsed_model(kText)).was_compiled);
  EXPECT_EQ(entries().size(), 2u);
}

TEST_F(CachedPrograms, ADamagedProgramIsCompiledAgain) {
  run(parsed_model(kText));
  const fs::path entry = entries().at(0);
  const auto size = fs::file_size(entry);
  for (const std::uintmax_t at : {size / 3, size / 2, size - 9}) {
    {
      std::fstream file(entry, std::ios::in | std::ios::out | std::ios::binary);
      file.seekg(static_cast<std::streamoff>(at));
      const int byte = file.get();
      file.seekp(static_cast<std::streamoff>(at));
      file.put(static_cast<char>(byte ^ 1));
    }
    EXPECT_TRUE(run(parsed_model(kText)).was_compiled) << at;
    EXPECT_FALSE(run(parsed_model(kText)).was_compiled) << at;
  }
}

TEST_F(CachedPrograms, AFolderThatOthersMayWriteToIsNotUsed) {
  fs::create_directory(options_.program_cache);
  fs::permissions(options_.program_cache, fs::perms::all);
  EXPECT_TRUE(run(parsed_model(kText)).was_compiled);
  EXPECT_TRUE(run(parsed_model(kText)).was_compiled);
  EXPECT_TRUE(entries().empty());
}

}  // namespace
}  // namespace tessera
