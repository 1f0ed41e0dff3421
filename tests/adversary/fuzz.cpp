#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>

#include "tessera/ir/rebuild.h"
#include "tessera/passes/dce.h"
#include "tessera/rules/shipped.h"
#include "tessera/rules/text.h"
#include "tessera/support/stopwatch.h"
#include "tests/adversary/evaluation.h"
#include "tests/adversary/judgement.h"
#include "tests/programs/random_program.h"
#include "tests/support/flags.h"
#include "tests/support/graph_edit.h"

namespace tessera::testing {
namespace {

constexpr std::string_view kUsage =
    R"(Looks for false pairs of graphs that the prover takes for equal: a rule of the corpus or of those
that come with Tessera, or a random program and itself, with one side edited at random.

usage: tessera_fuzz_proofs [--seed N] [--count N] [--seconds N] [--jobs N] [--save FOLDER] [--show]

  --seed N       the first pair; the same number is the same pair (1)
  --count N      so many pairs (1000)
  --seconds N    as many as fit into this time instead
  --jobs N       processes (2)
  --save FOLDER  where pairs that are proved though they differ are written, as rules
  --show         prints every pair

Exit code 1: a pair is proved though the interpreter computes different outputs, a counterexample
shows no difference, or the prover crashed, or took more than two minutes or 6 GiB.

example: tessera_fuzz_proofs --seed 4711 --count 1 --show
)";

constexpr int kSecondsPerPair = 120;  // of processor time
constexpr rlim_t kMostMemory = rlim_t{6} << 30;

struct Options {
  std::uint64_t seed = 1, count = 1000;
  double seconds = 0;
  int jobs = 2;
  std::string save;
  bool show = false;
};

/// Counts of a worker, in memory that all processes share.
struct Tally {
  std::uint64_t at = 0;  // the pair that is looked at
  std::uint64_t made = 0, proved = 0, refuted = 0, unknown = 0, failed = 0;
  std::uint64_t missed = 0;    // of the unknown: the interpreter computes different outputs
  std::uint64_t by_order = 0;  // the verdict depends on the order of the models
};

/// A pair of graphs and inputs that its source takes; none where any will do.
struct Pair {
  rules::Rule rule;
  std::vector<Tensor> inputs = {};
  std::string edit = {};
};

std::optional<std::vector<Tensor>> tensors_of(const std::vector<Datum>& data) {
  std::vector<Tensor> tensors;
  for (const Datum& datum : data) {
    if (!datum.is_tensor()) return std::nullopt;
    tensors.push_back(datum.tensor());
  }
  return tensors;
}

/// A true pair: a rule, or a program and itself.
std::optional<Pair> true_pair(const std::vector<rules::Rule>& rules, std::uint64_t seed, Rng& rng) {
  if (rng.below(2) == 0) return Pair{rules[rng.below(rules.size())]};
  RandomProgram program = random_program(seed, {.max_nodes = 4});
  auto inputs = tensors_of(program.inputs);
  if (!inputs || inputs->empty()) return std::nullopt;
  Pair pair{.rule = {}, .inputs = *std::move(inputs)};
  pair.rule.source = pair.rule.target = std::move(program.graph);
  return pair;
}

std::optional<Pair> edited_pair(const std::vector<rules::Rule>& rules, std::uint64_t seed) {
  Rng rng(seed);
  std::optional<Pair> pair = true_pair(rules, seed, rng);
  if (!pair) return std::nullopt;
  std::optional<EditedGraph> edited = edited_graph(pair->rule.target, rng);
  if (!edited || edited->graph.hash() == pair->rule.target.hash()) return std::nullopt;
  pair->rule.name = fmt::format("pair_{}", seed);
  pair->rule.about = fmt::format("{}", edited->edit);
  pair->rule.found.clear();
  pair->rule.both_ways = false;
  pair->rule.helps = rules::Helps::Unknown;
  pair->rule.target = std::move(edited->graph);
  return pair;
}

std::optional<std::string> difference_of(const Pair& pair) {
  const rules::Rule& rule = pair.rule;
  if (!pair.inputs.empty())
    if (auto found = difference_on(rule.source, rule.target, pair.inputs, Closeness::FiniteReals))
      return found;
  return find_difference(rule.source, rule.target,
                         {.guard = rule.guard, .tries = 40, .closeness = Closeness::FiniteReals});
}

std::size_t size_of(const Pair& pair) {
  return pair.rule.source.nodes().size() + pair.rule.target.nodes().size() +
         pair.rule.source.outputs().size();
}

/// The graph with the result of a node replaced by an operand of its type; nothing where it has
/// none.
std::optional<Graph> without_node(const Graph& graph, std::size_t place) {
  const GraphNode& gone = graph.nodes()[place];
  if (graph.outputs(gone).size() != 1) return std::nullopt;
  const auto operands = graph.inputs(gone);
  const auto same = std::ranges::find_if(operands, [&](ValueId id) {
    return id.present() && graph.type(id) == graph.type(graph.outputs(gone)[0]);
  });
  if (same == operands.end()) return std::nullopt;
  return rebuild(graph, [&](Rebuilder& out, const GraphNode& node) {
    return &node == &gone ? Rebuilder::Results{out.mapped(*same)} : out.copy(node);
  });
}

/// Pairs with one output less, without what no output needs, and without a node of both sides.
std::vector<Pair> smaller_pairs(const Pair& pair) {
  std::vector<Pair> smaller;
  const auto add = [&](Graph source, Graph target) {
    smaller.push_back(pair);
    smaller.back().rule.source = std::move(source);
    smaller.back().rule.target = std::move(target);
  };
  const Graph &source = pair.rule.source, &target = pair.rule.target;
  for (std::size_t i = 0; i < source.outputs().size(); ++i) {
    Graph a = source, b = target;
    a.set_outputs({source.outputs()[i]});
    b.set_outputs({target.outputs()[i]});
    add(std::move(a), std::move(b));
  }
  add(passes::without_dead(source), passes::without_dead(target));
  for (std::size_t i = 0; i < std::min(source.nodes().size(), target.nodes().size()); ++i) {
    auto a = without_node(source, i), b = without_node(target, i);
    if (a && b) add(*std::move(a), *std::move(b));
  }
  std::erase_if(smaller, [&](const Pair& some) { return size_of(some) >= size_of(pair); });
  return smaller;
}

/// The smallest pair found that fails as well.
Pair shrunk(Pair pair, const std::function<bool(const Pair&)>& fails) {
  while (true) {
    const std::vector<Pair> smaller = smaller_pairs(pair);
    const auto found = std::ranges::find_if(smaller, fails);
    if (found == smaller.end()) return pair;
    pair = *found;
  }
}

bool is_proved(const std::vector<View>& views) {
  return std::ranges::any_of(views, [](const View& view) { return view.verdict == "proved"; });
}

std::string summary(const std::vector<View>& views) {
  std::string text;
  for (const View& view : views)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", view.way, view.verdict);
  return text;
}

std::string reasons(const std::vector<View>& views) {
  std::string text;
  for (const View& view : views)
    text += fmt::format("{}{} {}: {}", text.empty() ? "" : "; ", view.way, view.verdict, view.why);
  return text;
}

void report(const Pair& pair, const std::string& why, const Options& options,
            const char* what = "FAILED") {
  const std::string text = fmt::format("// {}\n{}", why, rules::to_text(pair.rule));
  fmt::print("{}: {}\n{}\n", what, pair.rule.name, text);
  std::fflush(stdout);
  if (!options.save.empty()) std::ofstream(options.save + "/" + pair.rule.name + ".rules") << text;
}

void look_at(const Pair& pair, const Options& options, Tally& tally) {
  const auto views_of_pair = [](const Pair& some) {
    return views_of({some.rule.name, "reals", some.rule});
  };
  if (options.show) {
    fmt::print("{}\n", rules::to_text(pair.rule));
    std::fflush(stdout);
  }
  const std::vector<View> views = views_of_pair(pair);
  if (options.show) fmt::print("{}\n", summary(views));
  ++tally.made;
  if (views.size() == 3 && views[1].verdict != views[2].verdict) {
    ++tally.by_order;
    report(pair, summary(views), options, "depends on the order");
  }
  if (is_proved(views)) {
    ++tally.proved;
    if (!difference_of(pair)) return;
    const Pair small = shrunk(pair, [&](const Pair& some) {
      return is_proved(views_of_pair(some)) && difference_of(some);
    });
    ++tally.failed;
    report(small,
           fmt::format("{}: {}", summary(views_of_pair(small)), difference_of(small).value_or("")),
           options);
    return;
  }
  const bool refuted =
      std::ranges::any_of(views, [](const View& view) { return view.verdict == "refuted"; });
  ++(refuted ? tally.refuted : tally.unknown);
  if (!refuted)
    if (const auto difference = difference_of(pair)) {
      ++tally.missed;
      report(pair, reasons(views) + "; " + *difference, options, "not refuted");
    }
  for (const View& view : views)
    if (view.verdict == "refuted" && !view.replayed) {
      ++tally.failed;
      return report(pair, view.way + ": the counterexample shows nothing: " + view.why, options);
    }
}

/// The rules whose sides are edited, one for every number of axes.
Expected<std::vector<rules::Rule>> true_rules() {
  std::vector<rules::Rule> rules;
  TESSERA_TRY(const std::vector<rules::Rule> shipped, rules::shipped());
  for (const rules::Rule& rule : shipped)
    for (const rules::Rule& instance : rules::instances(rule)) rules.push_back(instance);
  TESSERA_TRY(const std::vector<Entry> entries,
              load_corpus(TESSERA_SOURCE_DIR "/tests/adversary/corpus"));
  for (const Entry& entry : entries)
    if (const auto* rule = std::get_if<rules::Rule>(&entry.pair);
        rule != nullptr && entry.is_true())
      rules.push_back(*rule);
  return rules;
}

class Fuzz {
 public:
  Fuzz(const Options& options, std::vector<rules::Rule> rules)
      : options_(options), rules_(std::move(rules)) {
    void* memory = mmap(nullptr, sizeof(Tally) * jobs(), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    tallies_ = static_cast<Tally*>(memory);
    for (std::size_t i = 0; i < jobs(); ++i) new (&tallies_[i]) Tally{};
  }

  /// Whether no pair failed.
  bool run() {
    for (std::size_t i = 0; i < jobs(); ++i) launch(i, options_.seed + i);
    while (!workers_.empty()) {
      int status = 0;
      const pid_t pid = wait(&status);
      const auto worker = workers_.find(pid);
      if (worker == workers_.end()) continue;
      const std::size_t index = worker->second;
      workers_.erase(worker);
      if (!WIFSIGNALED(status)) continue;
      Tally& tally = tallies_[index];
      ++tally.failed;
      fmt::print("FAILED: pair {} ended by signal {} ({})\n", tally.at, WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
      launch(index, tally.at + jobs());
    }
    Tally all;
    for (std::size_t i = 0; i < jobs(); ++i) {
      const Tally& tally = tallies_[i];
      all.made += tally.made, all.proved += tally.proved, all.refuted += tally.refuted;
      all.unknown += tally.unknown, all.failed += tally.failed, all.by_order += tally.by_order;
      all.missed += tally.missed;
    }
    fmt::print(
        "{} pairs from {}: {} proved, {} refuted, {} unknown, of which {} differ; {} by order; {} "
        "failed\n",
        all.made, options_.seed, all.proved, all.refuted, all.unknown, all.missed, all.by_order,
        all.failed);
    return all.failed == 0;
  }

 private:
  std::size_t jobs() const { return static_cast<std::size_t>(options_.jobs); }

  bool is_over(std::uint64_t seed) const {
    return options_.seconds > 0 ? watch_.seconds() > options_.seconds
                                : seed >= options_.seed + options_.count;
  }

  /// Every `jobs`-th pair from `first` on, in a process of its own.
  void launch(std::size_t index, std::uint64_t first) {
    std::fflush(stdout);
    const pid_t pid = fork();
    if (pid != 0) {
      workers_.emplace(pid, index);
      return;
    }
    const rlimit memory{.rlim_cur = kMostMemory, .rlim_max = kMostMemory};
    setrlimit(RLIMIT_AS, &memory);
    Tally& tally = tallies_[index];
    for (std::uint64_t seed = first; !is_over(seed); seed += jobs()) {
      tally.at = seed;
      const itimerval limit{.it_interval = {},
                            .it_value = {.tv_sec = kSecondsPerPair, .tv_usec = 0}};
      setitimer(ITIMER_VIRTUAL, &limit, nullptr);
      try {
        if (const std::optional<Pair> pair = edited_pair(rules_, seed))
          look_at(*pair, options_, tally);
      } catch (const std::exception& error) {
        ++tally.failed;
        fmt::print("FAILED: pair {}: internal error: {}\n", seed, error.what());
        std::fflush(stdout);
      }
    }
    std::fflush(stdout);
    std::_Exit(0);
  }

  const Options& options_;
  std::vector<rules::Rule> rules_;
  Tally* tallies_ = nullptr;
  std::map<pid_t, std::size_t> workers_;
  Stopwatch watch_;
};

}  // namespace
}  // namespace tessera::testing

int main(int argc, char** argv) {
  using namespace tessera::testing;
  Options options;
  if (const auto code = read_flags(argc, argv,
                                   {{"--show", &options.show},
                                    {"--seed", &options.seed},
                                    {"--count", &options.count},
                                    {"--seconds", &options.seconds},
                                    {"--jobs", &options.jobs},
                                    {"--save", &options.save}},
                                   kUsage))
    return *code;
  auto rules = true_rules();
  if (!rules) return fmt::print(stderr, "{}\n", tessera::to_string(rules.error())), 2;
  return Fuzz(options, *std::move(rules)).run() ? 0 : 1;
}
