#include "tessera/driver/prove.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/context.h"
#include "cli/json.h"
#include "cli/report.h"
#include "tessera/driver/event_records.h"
#include "tessera/driver/model_certificate.h"
#include "tessera/ir/text.h"
#include "tessera/prove/picture.h"
#include "tessera/support/file.h"
#include "tessera/support/stopwatch.h"

namespace tessera::cli {
namespace {

struct ProveOptions {
  std::string source, target, picture, save, certificate;
  ReportFlags report;
  std::int64_t seed = 1;
  int threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
};

constexpr const char* kTimeLimit = "120s";

std::string graph_text(const Graph& graph) {
  return to_text(graph, {.inline_limit = 16});
}

nlohmann::json described(const prove::Divergence& divergence) {
  const auto place = [](const prove::Divergence::Place& place) {
    return nlohmann::json{{"node", place.node},
                          {"value", place.value},
                          {"operator", place.op},
                          {"subgraph", graph_text(place.subgraph)}};
  };
  nlohmann::json object = {{"what", prove::to_string(divergence)},
                           {"changes", divergence.changes},
                           {"source", place(divergence.source)},
                           {"target", place(divergence.target)}};
  if (const auto& weight = divergence.weight)
    object["weight"] = {{"source", weight->source},
                        {"target", weight->target},
                        {"position", weight->position},
                        {"source_element", weight->source_element},
                        {"target_element", weight->target_element},
                        {"differing", weight->differing},
                        {"elements", weight->elements}};
  return object;
}

/// Report as JSON; the readable form is derived from it.
nlohmann::json described(const prove::SweepResult& result, double seconds) {
  nlohmann::json object = verdict_json(result.verdict);
  object["seconds"] = seconds;
  object["values"] = result.values;
  object["congruent"] = result.congruent;
  object["proved_pairs"] = result.proved;
  if (const auto* refuted = std::get_if<prove::Refuted>(&result.verdict))
    object["counterexample"]["output"] = result.output_names[refuted->output];
  if (result.divergence && std::holds_alternative<prove::Refuted>(result.verdict))
    object["divergence"] = described(*result.divergence);
  if (result.unrelated && std::holds_alternative<prove::Unknown>(result.verdict))
    object["unrelated"] = {{"source", graph_text(result.unrelated->source)},
                           {"target", graph_text(result.unrelated->target)}};
  return object;
}

void print(const nlohmann::json& object) {
  const std::string verdict = object["verdict"];
  fmt::print("{}{} in {:.1f} s: {} values, {} equal by congruence, {} by proofs of their own\n",
             verdict, verdict == "proved" ? " over the reals" : "", object["seconds"].get<double>(),
             object["values"].get<std::size_t>(), object["congruent"].get<std::size_t>(),
             object["proved_pairs"].get<std::size_t>());
  if (object.contains("assumptions"))
    for (const nlohmann::json& assumption : object["assumptions"])
      fmt::print("assuming that {}\n", assumption["text"].get<std::string>());
  if (object.contains("counterexample")) {
    const nlohmann::json& shown = object["counterexample"];
    fmt::print("output {} at [{}]: {}\n", shown["output"].get<std::string>(),
               fmt::join(shown["position"].get<std::vector<std::int64_t>>(), ", "),
               shown["what"].get<std::string>());
    if (shown.contains("files"))
      for (const std::string file : shown["files"]) fmt::print("input {}\n", file);
  }
  if (object.contains("divergence")) {
    const nlohmann::json& divergence = object["divergence"];
    fmt::print("{}\n{}{}", divergence["what"].get<std::string>(),
               divergence["source"]["subgraph"].get<std::string>(),
               divergence["target"]["subgraph"].get<std::string>());
  }
  if (object.contains("why")) fmt::print("{}\n", object["why"].get<std::string>());
  if (object.contains("unrelated"))
    fmt::print("the smallest pair of subgraphs that is not related:\n{}{}",
               object["unrelated"]["source"].get<std::string>(),
               object["unrelated"]["target"].get<std::string>());
}

void show(const nlohmann::json& object, const Context& context) {
  if (context.json)
    print_json(object);
  else
    print(object);
}

Expected<Done> prove_files(const ProveOptions& options, Context& context) {
  if (context.time_limit_text.empty()) context.time_limit_text = kTimeLimit;
  const Stopwatch watch;
  // Without a proof in time, the verdict is unknown.
  const auto out_of_time = [&] {
    prove::SweepResult result;
    result.verdict =
        prove::Unknown{fmt::format("the time limit of {} is reached", context.time_limit_text)};
    return result;
  };
  context.at_time_limit = [&context, watch, out_of_time] {
    show(described(out_of_time(), watch.seconds()), context);
    return kUnknown;
  };
  TESSERA_TRY_DONE(context.start());
  ProgressLine line(context);
  const prove::SweepOptions how{
      .seed = static_cast<std::uint64_t>(options.seed),
      .threads = options.threads,
      .memory_limit = context.memory_limit.value_or(std::int64_t{1} << 30),
      .stop = &context.stop,
      .progress = [&](const prove::SweepProgress& progress) {
        line.show(progress.done, progress.all, progress.what);
      }};
  auto proved =
      options.certificate.empty()
          ? prove_models(options.source, options.target, how)
          : prove_models_with_certificate(options.source, options.target, how, options.certificate);
  const double seconds = watch.seconds();
  context.end_time_limit();
  line.clear();
  if (!proved && proved.error().id == "stopped") proved = out_of_time();
  TESSERA_TRY(const prove::SweepResult result, std::move(proved));

  nlohmann::json object = described(result, seconds);
  if (!options.save.empty() && std::holds_alternative<prove::Refuted>(result.verdict)) {
    const auto paths = save_counterexample(result, options.save);
    if (!paths) {  // which does not take the verdict back
      show(object, context);
      return paths.error();
    }
    for (const auto& path : *paths) object["counterexample"]["files"].push_back(path.string());
  }
  if (!options.picture.empty() && result.unrelated) {
    TESSERA_TRY_DONE(write_file(options.picture, [&](std::ostream& out) {
      out << prove::picture(result.unrelated->source, result.unrelated->target);
    }));
    object["picture"] = options.picture;
  }
  if (options.report.is_asked()) {
    report::EventLog log("prove");
    add_proof(
        log,
        {.source = options.source, .target = options.target, .result = result, .seconds = seconds});
    TESSERA_TRY_DONE(write_report(log, options.report));
  }
  show(object, context);
  if (std::holds_alternative<prove::Refuted>(result.verdict)) context.exit_code = kNegativeResult;
  if (std::holds_alternative<prove::Unknown>(result.verdict)) context.exit_code = kUnknown;
  return Done{};
}

}  // namespace

void add_prove(CLI::App& app, Context& context) {
  CLI::App* command =
      app.add_subcommand("prove", "proves or refutes that two models compute the same function");
  auto options = std::make_shared<ProveOptions>();
  command->add_option("source", options->source, "ONNX file, or graph in text form")->required();
  command->add_option("target", options->target, "model to compare with, in either format")
      ->required();
  command->add_option(
      "--picture", options->picture,
      "file for a drawing (Graphviz) of the subgraphs that could not be proved equal");
  command->add_option("--save-input", options->save,
                      "folder for the inputs of a counterexample, as .npy");
  command->add_option(
      "--certificate", options->certificate,
      "file for the proof certificate, which `tessera rules check-certificate` checks");
  command->add_option("--seed", options->seed, "seed of the random inputs")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_option("--threads", options->threads, "number of threads of the interpreter")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  add_report_flags(*command, options->report);
  add_common(*command, context);
  command->footer(
      "Example:\n"
      "  tessera prove model.onnx optimized.onnx --time-limit 60s --save-input why/\n"
      "\n"
      "Inputs and outputs are paired by name, or by position where the names differ. \"Proved\" "
      "is\n"
      "over the real numbers; assumptions are printed. \"Refuted\" comes with an input on "
      "which\n"
      "the outputs differ by more than 1e-4 of their root mean square, and by more than 30 times\n"
      "what single precision changes.\n"
      "It names the first value that differs, with its two subgraphs.\n"
      "Without --time-limit, the search for a proof ends after " +
      std::string(kTimeLimit) +
      "; without a result by then\n"
      "the verdict is unknown.\n"
      "Exit codes: 0 proved, 1 refuted, 5 unknown, 2 wrong usage, 3 bad input, 4 a limit.");
  command->callback([options, &context] {
    if (auto done = prove_files(*options, context); !done) context.fail(done.error());
  });
}

}  // namespace tessera::cli
