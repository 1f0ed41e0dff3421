#include "tessera/driver/golden.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "tessera/support/file.h"

namespace tessera {

Expected<Golden> read_golden(const std::filesystem::path& path) {
  TESSERA_TRY(const std::string text, read_text(path));
  try {
    const nlohmann::json json = nlohmann::json::parse(text);
    Golden golden;
    for (const auto& [name, output] : json.at("outputs").items())
      golden.outputs[name] = {.shape = output.at("shape"),
                              .mean = output.at("mean"),
                              .l2 = output.at("l2"),
                              .at = output.at("at"),
                              .values = output.at("values")};
    if (golden.outputs.empty())
      return Diagnostic{.id = "golden-malformed",
                        .where = {.file = path.string()},
                        .message = "there are no outputs to compare with",
                        .note = "a golden file holds outputs with shape, mean, l2, at and values"};
    if (json.contains("dims")) golden.dims = json.at("dims");
    return golden;
  } catch (const nlohmann::json::exception& problem) {
    return Diagnostic{.id = "golden-malformed",
                      .where = {.file = path.string()},
                      .message = problem.what(),
                      .note = "a golden file holds outputs with shape, mean, l2, at and values"};
  }
}

Distance distance(const Tensor& output, const Golden::Output& golden) {
  if (output.shape != golden.shape) return {.problem = "the shape is another"};
  if (golden.at.size() != golden.values.size())
    return {.problem = "samples and values differ in number"};
  const std::int64_t count = output.count();
  if (count > 0 && golden.at.empty()) return {.problem = "the golden file has no samples of it"};
  double sum = 0, squares = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const double y = number_at(output, i);
    sum += y;
    squares += y * y;
  }
  // Constant zero outputs have no scale of their own.
  double rms = golden.l2 / std::sqrt(static_cast<double>(std::max<std::int64_t>(count, 1)));
  if (rms == 0) rms = 1;
  const auto finite = [](double x) {
    return std::isnan(x) ? std::numeric_limits<double>::infinity() : x;
  };
  Distance result;
  for (std::size_t i = 0; i < golden.at.size(); ++i) {
    if (golden.at[i] < 0 || golden.at[i] >= count) return {.problem = "a sample lies outside"};
    result.error = std::max(
        result.error, finite(std::fabs(number_at(output, golden.at[i]) - golden.values[i]) / rms));
  }
  result.mean_error =
      count == 0 ? 0 : finite(std::fabs(sum / static_cast<double>(count) - golden.mean) / rms);
  result.l2_error = golden.l2 == 0 ? finite(std::sqrt(squares))
                                   : finite(std::fabs(std::sqrt(squares) - golden.l2) / golden.l2);
  return result;
}

Distance distance(const Tensor& output, const Tensor& expected) {
  Golden::Output golden{.shape = expected.shape, .at = {}, .values = {}};
  double squares = 0;
  for (std::int64_t i = 0; i < expected.count(); ++i) {
    const double value = number_at(expected, i);
    golden.at.push_back(i);
    golden.values.push_back(value);
    golden.mean += value;
    squares += value * value;
  }
  golden.mean /= static_cast<double>(std::max<std::int64_t>(expected.count(), 1));
  golden.l2 = std::sqrt(squares);
  return distance(output, golden);
}

}  // namespace tessera
