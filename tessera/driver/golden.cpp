#include "tessera/driver/golden.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tessera/support/file.h"
#include "tessera/support/rng.h"

namespace tessera {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Diagnostic malformed(const std::filesystem::path& path, std::string message) {
  return {.id = "golden-malformed",
          .where = {.file = path.string()},
          .message = std::move(message),
          .note = "a golden file holds outputs with shape, mean, l2, at and values"};
}

/// JSON has no NaN and no infinities; they are written as text.
nlohmann::json number_json(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

double number_of(const nlohmann::json& json) {
  if (!json.is_string()) return json.get<double>();
  const std::string text = json;
  return text == "inf" ? kInfinity : text == "-inf" ? -kInfinity : std::nan("");
}

Golden::Output output_of(const nlohmann::json& json) {
  Golden::Output output{.shape = json.at("shape"), .at = {}, .values = {}};
  if (json.contains("text")) {
    json.at("text").get_to(output.text);
    return output;
  }
  output.mean = json.at("mean");
  output.l2 = json.at("l2");
  output.not_finite = json.value("not_finite", std::int64_t{0});
  json.at("at").get_to(output.at);
  for (const nlohmann::json& value : json.at("values")) output.values.push_back(number_of(value));
  return output;
}

nlohmann::json output_json(const Golden::Output& output) {
  if (!output.text.empty()) return {{"shape", output.shape}, {"text", output.text}};
  nlohmann::json values = nlohmann::json::array();
  for (const double value : output.values) values.push_back(number_json(value));
  nlohmann::json json = {{"shape", output.shape},
                         {"mean", output.mean},
                         {"l2", output.l2},
                         {"at", output.at},
                         {"values", std::move(values)}};
  if (output.not_finite > 0) json["not_finite"] = output.not_finite;
  return json;
}

/// Relative difference |a - b| / scale; equal infinities and NaNs have difference 0.
double apart(double a, double b, double scale) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  const double difference = std::fabs(a - b) / scale;
  return std::isnan(difference) ? kInfinity : difference;
}

}  // namespace

Expected<Golden> read_golden(const std::filesystem::path& path) {
  TESSERA_TRY(const std::string text, read_text(path));
  try {
    const nlohmann::json json = nlohmann::json::parse(text);
    Golden golden;
    for (const auto& [name, output] : json.at("outputs").items())
      golden.outputs[name] = output_of(output);
    if (golden.outputs.empty()) return malformed(path, "there are no outputs to compare with");
    if (json.contains("dims")) json.at("dims").get_to(golden.dims);
    golden.producer = json.value("producer", std::string());
    golden.inputs = json.value("inputs", std::string());
    return golden;
  } catch (const nlohmann::json::exception& problem) {
    return malformed(path, problem.what());
  }
}

Expected<Done> write_golden(const Golden& golden, const std::filesystem::path& path) {
  nlohmann::json json = {{"producer", golden.producer},
                         {"inputs", golden.inputs},
                         {"dims", golden.dims},
                         {"outputs", nlohmann::json::object()}};
  for (const auto& [name, output] : golden.outputs) json["outputs"][name] = output_json(output);
  return write_file(path, [&](std::ostream& out) {
    out << json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
  });
}

Golden::Output golden_of(const Tensor& tensor, std::int64_t most_samples) {
  Golden::Output golden{.shape = tensor.shape, .at = {}, .values = {}};
  if (tensor.dtype == DType::String) {
    golden.text = *tensor.strings;
    return golden;
  }
  const std::int64_t count = tensor.count(), samples = std::min(count, most_samples);
  double sum = 0, squares = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const double value = number_at(tensor, i);
    if (!std::isfinite(value)) {
      ++golden.not_finite;
      continue;
    }
    sum += value;
    squares += value * value;
  }
  golden.mean = sum / static_cast<double>(std::max<std::int64_t>(count, 1));
  golden.l2 = std::sqrt(squares);
  // Stratified sampling: a regular stride would hit the same channel again and again.
  Rng rng(0);
  for (std::int64_t i = 0; i < samples; ++i) {
    const std::int64_t width = count / samples, rest = count % samples;
    const std::int64_t first = i * width + std::min(i, rest);
    const auto size = static_cast<std::uint64_t>(width + (i < rest ? 1 : 0));
    golden.at.push_back(first + static_cast<std::int64_t>(rng.below(size)));
    golden.values.push_back(number_at(tensor, golden.at.back()));
  }
  return golden;
}

Distance distance(const Tensor& output, const Golden::Output& golden) {
  if (output.shape != golden.shape) return {.problem = "the shape is another"};
  const std::int64_t count = output.count();
  if (output.dtype == DType::String || !golden.text.empty()) {
    if (output.dtype != DType::String || golden.text.empty() != (count == 0))
      return {.problem = "one of them is text"};
    return {.problem = *output.strings == golden.text ? "" : "the text is another"};
  }
  if (golden.at.size() != golden.values.size())
    return {.problem = "samples and values differ in number"};
  if (count > 0 && golden.at.empty()) return {.problem = "the golden file has no samples of it"};
  // Constant zero outputs have no scale of their own.
  double rms = golden.l2 / std::sqrt(static_cast<double>(std::max<std::int64_t>(count, 1)));
  if (rms == 0) rms = 1;
  const Golden::Output found = golden_of(output, 0);
  Distance result{.mean_error = apart(found.mean, golden.mean, rms),
                  .l2_error = apart(found.l2, golden.l2, golden.l2 == 0 ? 1 : golden.l2)};
  if (found.not_finite != golden.not_finite) result.error = kInfinity;
  for (std::size_t i = 0; i < golden.at.size(); ++i) {
    if (golden.at[i] < 0 || golden.at[i] >= count) return {.problem = "a sample lies outside"};
    result.error =
        std::max(result.error, apart(number_at(output, golden.at[i]), golden.values[i], rms));
  }
  return result;
}

Distance distance(const Tensor& output, const Tensor& expected) {
  return distance(output, golden_of(expected));
}

}  // namespace tessera
