#include "tests/programs/emulated_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "tessera/runtime/program_file.h"
#include "tessera/support/npy.h"
#include "tests/support/command.h"

namespace tessera::testing {

bool can_be_emulated(const Graph& graph) {
  const auto is_array = [&](ValueId id) {
    const Type& type = graph.type(id);
    return type.kind == Type::Kind::Tensor && type.dtype != DType::String &&
           npy_dtype(type.dtype) == type.dtype;
  };
  return std::ranges::all_of(graph.inputs(), is_array) &&
         std::ranges::all_of(graph.outputs(), is_array);
}

Expected<std::vector<Datum>> emulated_run(const CompiledModel& compiled,
                                          const std::vector<Datum>& inputs,
                                          const std::string& command) {
  const TemporaryFolder folder;
  TESSERA_TRY_DONE(runtime::save(compiled.program, folder.path() / "program.tsr"));
  for (std::size_t i = 0; i < inputs.size(); ++i)
    TESSERA_TRY_DONE(write_npy(folder.path() / fmt::format("input_{}.npy", i), inputs[i].tensor()));
  std::istringstream text(command);
  std::vector<std::string> words;
  for (std::string word; text >> word;) words.push_back(word);
  const std::string program = words.front();
  words.erase(words.begin());
  words.push_back(folder.path());
  const Outcome outcome = run_command(program, words, folder.path());
  if (outcome.exit_code != 0)
    return Diagnostic{.id = "emulated",
                      .message = fmt::format("exit code {}: {}", outcome.exit_code, outcome.err)};
  std::vector<Datum> outputs;
  for (const auto index : compiled.program.outputs) {
    const auto file = folder.path() / fmt::format("output_{}.npy", outputs.size());
    TESSERA_TRY(Tensor output, read_npy(file, compiled.program.values[index].dtype));
    outputs.emplace_back(std::move(output));
  }
  return outputs;
}

}  // namespace tessera::testing
