#include "tessera/engine/engine.h"

#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "tessera/ir/text.h"
#include "tessera/runtime/program_file.h"

namespace tessera::engine {
namespace {

/// Cache of parsed graphs by their text.
class Graphs {
 public:
  Expected<std::shared_ptr<const Graph>> of(const std::string& text) {
    const std::lock_guard lock(mutex_);
    auto& graph = by_text_[text];
    if (!graph) {
      TESSERA_TRY(Graph parsed, parse_graph(text, {.file = "host step"}));
      graph = std::make_shared<const Graph>(std::move(parsed));
    }
    return graph;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const Graph>> by_text_;
};

}  // namespace

runtime::Host interpreter_host(const interp::Options& options) {
  return
      [options, graphs = std::make_shared<Graphs>()](
          const std::string& text, std::span<const Datum> inputs) -> Expected<std::vector<Datum>> {
        TESSERA_TRY(const auto graph, graphs->of(text));
        if (graph->inputs().size() != inputs.size())
          return Diagnostic{.id = "program-host",
                            .message = fmt::format("{} operands of a host step", inputs.size()),
                            .note = fmt::format("its graph has {}", graph->inputs().size())};
        return interp::run(*graph, inputs, options);
      };
}

Expected<std::shared_ptr<const runtime::LoadedProgram>> open(const std::filesystem::path& file) {
  TESSERA_TRY(runtime::Program program, runtime::load(file));
  auto loaded = runtime::LoadedProgram::load(std::move(program));
  if (!loaded) return located(std::move(loaded).error(), {.file = file.string()});
  return loaded;
}

Expected<std::unique_ptr<runtime::Session>> make_session(
    std::shared_ptr<const runtime::LoadedProgram> program, runtime::SessionOptions options) {
  if (!options.host) options.host = interpreter_host({.threads = options.threads});
  return runtime::Session::create(std::move(program), options);
}

}  // namespace tessera::engine
