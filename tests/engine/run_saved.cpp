// Runs a saved program without the compiler: `run_saved FOLDER` reads program.tsr and input_N.npy
// in FOLDER and writes output_N.npy. Built for another architecture, it runs under an emulator what
// the compiler made for that one.
#include <cstdio>
#include <filesystem>
#include <string>

#include "tessera/engine/engine.h"
#include "tessera/support/npy.h"

namespace tessera {
namespace {

Expected<Done> run_saved(const std::filesystem::path& folder) {
  TESSERA_TRY(const auto program, engine::open(folder / "program.tsr"));
  TESSERA_TRY(const auto session, engine::make_session(program));
  std::vector<Datum> inputs;
  for (const auto index : program->program().inputs) {
    const auto file = folder / ("input_" + std::to_string(inputs.size()) + ".npy");
    TESSERA_TRY(Tensor input, read_npy(file, program->program().values[index].dtype));
    inputs.emplace_back(std::move(input));
  }
  TESSERA_TRY(const std::vector<Datum> outputs, session->run(inputs));
  for (std::size_t i = 0; i < outputs.size(); ++i)
    TESSERA_TRY_DONE(
        write_npy(folder / ("output_" + std::to_string(i) + ".npy"), outputs[i].tensor()));
  return Done{};
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const auto done = tessera::run_saved(argv[1]);
  if (done) return 0;
  std::fprintf(stderr, "%s\n", tessera::to_string(done.error()).c_str());
  return 1;
}
