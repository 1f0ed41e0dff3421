#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include "tessera/support/parallel.h"
#include "tests/adversary/judgement.h"
#include "tests/support/flags.h"

namespace tessera::testing {
namespace {

constexpr std::string_view kUsage =
    R"(Asks the prover about pairs of graphs whose truth is known.

usage: tessera_adversary [--corpus FOLDER] [--known FILE] [--only TEXT] [--jobs N] [--show] [--prune]

  --corpus FOLDER  TRUTH/*.rules and TRUTH/NAME.a.onnx, NAME.b.onnx (tests/adversary/corpus)
  --known FILE     entries that fail because of known defects, with reasons
  --only TEXT      entries whose name contains this
  --jobs N         threads (2)
  --show           prints every verdict
  --prune          takes entries that pass off the list of known defects

Exit code 1: a false entry is proved, a verdict depends on the order of its arguments, too few true
entries are proved or false ones refuted, or an entry that is listed as a defect passes.
)";

/// Least parts of the entries, of those that are not listed as known defects.
constexpr double kLeastRefuted = 0.97, kLeastProved = 0.95;

struct Options {
  std::string corpus = TESSERA_SOURCE_DIR "/tests/adversary/corpus";
  std::string known = TESSERA_SOURCE_DIR "/tests/adversary/known_defects.txt";
  std::string only;
  int jobs = 2;
  bool show = false, prune = false;
};

struct Tally {
  int entries = 0, proved = 0, refuted = 0, unknown = 0, listed = 0, decided = 0;
};

/// The verdict of all views, `unknown` where they differ.
std::string verdict_of(const std::vector<View>& views) {
  for (const View& view : views)
    if (view.verdict != views.front().verdict) return "unknown";
  return views.front().verdict;
}

void print_views(const Entry& entry, const std::vector<View>& views, bool decided) {
  fmt::print("{} {} {}:", decided ? "pass" : "fail", entry.truth, entry.name);
  for (const View& view : views)
    fmt::print(" {} {} ({:.2f} s) {};", view.way, view.verdict, view.seconds,
               view.why.substr(0, 200));
  fmt::print("\n");
}

void print_table(const std::map<std::string, Tally>& tallies) {
  fmt::print("{:<12} {:>7} {:>7} {:>7} {:>7} {:>7}\n", "truth", "entries", "proved", "refuted",
             "unknown", "listed");
  for (const auto& [truth, tally] : tallies)
    fmt::print("{:<12} {:>7} {:>7} {:>7} {:>7} {:>7}\n", truth, tally.entries, tally.proved,
               tally.refuted, tally.unknown, tally.listed);
}

/// Whether enough of the entries that are not listed are decided.
bool is_enough(const std::map<std::string, Tally>& tallies, const std::string& truth,
               double least) {
  const auto found = tallies.find(truth);
  if (found == tallies.end()) return true;
  const Tally& tally = found->second;
  const int all = tally.entries - tally.listed;
  if (tally.decided >= least * all) return true;
  fmt::print("FAILED: {} of {} entries of {} are decided, fewer than {:.0f} %\n", tally.decided,
             all, truth, 100 * least);
  return false;
}

Expected<bool> run(const Options& options) {
  TESSERA_TRY(std::vector<Entry> entries, load_corpus(options.corpus));
  TESSERA_TRY(const auto known, load_known_defects(options.known));
  for (const auto& [name, reason] : known)
    if (std::ranges::find(entries, name, &Entry::name) == entries.end())
      return Diagnostic{.id = "corpus-known-defect",
                        .where = {.file = options.known},
                        .message = fmt::format("'{}' is no entry", name)};
  std::erase_if(entries, [&](const Entry& entry) {
    return entry.name.find(options.only) == std::string::npos;
  });
  TESSERA_TRY(const auto all, in_parallel<Judgement>(entries.size(),
                                                     [&](std::size_t i) -> Expected<Judgement> {
                                                       return judged(entries[i]);
                                                     },
                                                     {.threads = options.jobs}));
  bool good = true;
  std::map<std::string, Tally> tallies;
  std::set<std::string> passing;  // of those that are listed
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const Entry& entry = entries[i];
    Tally& tally = tallies[entry.truth];
    const std::string verdict = verdict_of(all[i].views);
    const bool decided = is_decided(entry, all[i]);
    if (options.show) print_views(entry, all[i].views, decided);
    ++tally.entries;
    ++(verdict == "proved" ? tally.proved : verdict == "refuted" ? tally.refuted : tally.unknown);
    if (known.contains(entry.name)) {
      ++tally.listed;
      if (!decided) continue;
      passing.insert(entry.name);
      if (options.prune) continue;
      good = false;
      fmt::print("FAILED: {} passes, though it is listed as a defect: {}\n", entry.name,
                 known.at(entry.name));
      continue;
    }
    if (decided) ++tally.decided;
    for (const std::string& fault : faults(entry, all[i])) {
      good = false;
      fmt::print("FAILED: {} ({}): {}\n", entry.name, entry.truth, fault);
    }
  }
  if (options.prune) TESSERA_TRY_DONE(prune_known_defects(options.known, passing));
  print_table(tallies);
  const bool refuted = is_enough(tallies, "reals", kLeastRefuted);
  const bool proved = is_enough(tallies, "true", kLeastProved);
  return good && refuted && proved;
}

}  // namespace
}  // namespace tessera::testing

int main(int argc, char** argv) {
  tessera::testing::Options options;
  if (const auto code = tessera::testing::read_flags(argc, argv,
                                                     {{"--show", &options.show},
                                                      {"--prune", &options.prune},
                                                      {"--corpus", &options.corpus},
                                                      {"--known", &options.known},
                                                      {"--only", &options.only},
                                                      {"--jobs", &options.jobs}},
                                                     tessera::testing::kUsage))
    return *code;
  const auto good = tessera::testing::run(options);
  if (!good) return fmt::print(stderr, "{}\n", tessera::to_string(good.error())), 2;
  return *good ? 0 : 1;
}
