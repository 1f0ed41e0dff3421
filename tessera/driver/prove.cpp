#include "tessera/driver/prove.h"

#include <fmt/format.h>

#include <set>
#include <string>

#include "tessera/driver/model.h"
#include "tessera/support/file.h"
#include "tessera/support/npy.h"

namespace tessera {

Expected<prove::SweepResult> prove_models(const std::filesystem::path& source,
                                          const std::filesystem::path& target,
                                          prove::SweepOptions options) {
  const auto load = [](const std::filesystem::path& path) -> Expected<Model> {
    auto model = load_model(path);
    if (!model) return located(std::move(model).error(), {.file = path.string()});
    return model;
  };
  TESSERA_TRY(const Model a, load(source));
  TESSERA_TRY(const Model b, load(target));
  options.names = {.source_outputs = a.output_names, .target_outputs = b.output_names};
  options.memory_limit += 2 * (a.file_bytes + b.file_bytes);
  TESSERA_TRY(prove::SweepResult result, prove::sweep(a.graph, b.graph, options));
  result.output_names = a.output_names;
  if (auto* proved = std::get_if<prove::Proved>(&result.verdict)) {
    std::set<prove::Assumption> all(proved->assumptions.begin(), proved->assumptions.end());
    for (const Model* model : {&a, &b})
      for (const std::string& input : model->info.defaulted_inputs)
        all.insert({prove::Assumption::Kind::Declared,
                    fmt::format("the input {} has the value that its file gives it", input)});
    proved->assumptions.assign(all.begin(), all.end());
  }
  return result;
}

Expected<std::vector<std::filesystem::path>> save_counterexample(
    const prove::SweepResult& result, const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> paths;
  const auto* refuted = std::get_if<prove::Refuted>(&result.verdict);
  if (refuted == nullptr) return paths;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  for (std::size_t i = 0; i < refuted->inputs.size(); ++i) {
    paths.push_back(folder / (file_name(result.input_names[i]) + ".npy"));
    TESSERA_TRY_DONE(write_npy(paths.back(), refuted->inputs[i]));
  }
  return paths;
}

}  // namespace tessera
