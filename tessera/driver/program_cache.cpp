#include "tessera/driver/program_cache.h"

#include <fmt/format.h>

#include "tessera/codegen/llvm/object.h"
#include "tessera/ir/text.h"
#include "tessera/runtime/program_file.h"
#include "tessera/support/digest.h"

namespace tessera {
namespace {

/// Lines `name value`. Text is preceded by its length, so that no two lists have the same lines.
class KeyWriter {
 public:
  void number(std::string_view name, std::int64_t value) {
    text_ += fmt::format("{} {}\n", name, value);
  }
  void text(std::string_view name, std::string_view value) {
    text_ += fmt::format("{} {} {}\n", name, value.size(), value);
  }
  void texts(std::string_view name, const auto& values) {
    number(name, static_cast<std::int64_t>(values.size()));
    for (const std::string& value : values) text(name, value);
  }
  void numbers(std::string_view name, const auto& values) {
    text_ += fmt::format("{} {} {}\n", name, values.size(), fmt::join(values, " "));
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

// Structures are taken apart by structured bindings, which name every field: one that is added
// does not compile until it is here.

void add(KeyWriter& key, const machine::Machine& machine) {
  const auto& [architecture, cpu, cores, siblings, l1d, l2, l3, cache_line, vector_bytes,
               vector_registers, features, gpu] = machine;
  key.text("architecture", to_string(architecture));
  key.text("cpu", cpu);
  key.number("cores", cores);
  for (const std::vector<int>& threads : siblings) key.numbers("core", threads);
  key.numbers("caches", std::array{l1d, l2, l3, std::int64_t{cache_line}});
  key.numbers("vectors", std::array{vector_bytes, vector_registers});
  key.texts("features", features);
  if (gpu) key.text("gpu", gpu->architecture);
}

void add(KeyWriter& key, const passes::Options& options) {
  const auto& [exact, disabled, disabled_rules, most_folded_bytes, validate, observe] = options;
  key.number("exact", static_cast<std::int64_t>(exact));
  key.texts("disabled", disabled);
  key.texts("disabled_rules", disabled_rules);
  key.number("most_folded_bytes", most_folded_bytes);
}

void add(KeyWriter& key, const program::CompileOptions& options) {
  const auto& [machine, threads, passes, contraction_dtype, tf32, cache, memory_limit, schedules,
               progress, stop] = options;
  add(key, machine);
  key.number("threads", threads);
  add(key, passes);
  key.text("contraction_dtype", to_string(contraction_dtype));
  key.number("tf32", static_cast<std::int64_t>(tf32));
  key.number("memory_limit", memory_limit);
  key.text("schedules", schedules ? program::to_text(*schedules) : "");
}

void add(KeyWriter& key, const CompileModelOptions& options) {
  const auto& [code, precision, max_error, search, keep_graph, store, requires_schedules,
               program_cache] = options;
  add(key, code);
  key.number("precision", static_cast<std::int64_t>(precision));
  key.text("max_error", fmt::format("{:a}", max_error));
  key.number("requires_schedules", static_cast<std::int64_t>(requires_schedules));
}

/// Calls visit(tensor) for the constants of a graph and of its subgraphs, in order.
void for_each_constant(const Graph& graph, const auto& visit) {
  for (std::uint32_t i = 0; i < graph.value_count(); ++i)
    if (const Tensor* const tensor = graph.constant(ValueId{i})) visit(*tensor);
  for (const GraphNode& node : graph.nodes())
    for (const auto& subgraph : graph.subgraphs(node)) for_each_constant(*subgraph, visit);
}

std::size_t constant_bytes(const Graph& graph) {
  std::size_t bytes = 0;
  for_each_constant(graph, [&](const Tensor& tensor) { bytes += tensor.bytes.size(); });
  return bytes;
}

void add(KeyWriter& key, const Graph& graph) {
  key.text("graph", to_text(graph, {.inline_limit = 0}));
  for_each_constant(graph, [&](const Tensor& tensor) {
    const auto* const bytes = reinterpret_cast<const char*>(tensor.bytes.data());
    key.text("constant", digest({bytes, tensor.bytes.size()}));
    if (tensor.strings) key.texts("strings", *tensor.strings);
  });
}

/// Whether a compilation has no input but those of its key, and no output but its program.
bool is_cacheable(const CompileModelOptions& options) {
  return !options.search && !options.keep_graph && !options.code.passes.validate &&
         !options.code.passes.observe && !options.code.machine.is_gpu();
}

}  // namespace

std::optional<std::string> program_key(const Model& model, const InputShapes& shapes,
                                       const CompileModelOptions& options) {
  if (!is_cacheable(options)) return std::nullopt;
  if (constant_bytes(model.graph) >= runtime::ObjectCache::kMostEntryBytes) return std::nullopt;
  KeyWriter key;
  key.text("compiler", codegen::generator_version());
  add(key, options);
  for (const auto& shape : shapes) {
    if (shape)
      key.numbers("shape", *shape);
    else
      key.text("shape", "as declared");
  }
  key.texts("outputs", model.output_names);
  add(key, model.graph);
  return key.take();
}

std::optional<ProgramCache> ProgramCache::open(const std::filesystem::path& folder) {
  auto files = runtime::ObjectCache::open_unless_empty(folder);
  if (!files || !*files) return std::nullopt;
  return ProgramCache(**std::move(files));
}

std::optional<runtime::Program> ProgramCache::find(const std::string& key) const {
  const std::optional<Bytes> file = files_.find_bytes(key);
  if (!file) return std::nullopt;
  auto program = runtime::parse_program(*file, files_.folder().string());
  if (!program) return std::nullopt;
  return *std::move(program);
}

void ProgramCache::store(const std::string& key, const runtime::Program& program) const {
  const auto file = runtime::file_bytes(program);
  if (!file) return;  // a program that no file can hold
  files_.store(key, file->view());
  files_.trim(kLimits);
}

}  // namespace tessera
