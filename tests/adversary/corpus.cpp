#include "tests/adversary/corpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "tessera/interp/interp.h"
#include "tessera/ir/text.h"
#include "tessera/rules/text.h"
#include "tessera/support/file.h"

namespace tessera::testing {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> sorted_files(const fs::path& folder) {
  std::vector<fs::path> files(fs::directory_iterator(folder), fs::directory_iterator{});
  std::ranges::sort(files);
  return files;
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

bool says_something(const std::string& line) {
  return !line.empty() && !line.starts_with('#');
}

/// Without the spaces before it.
std::string trimmed(const std::string& line) {
  return line.substr(std::min(line.find_first_not_of(' '), line.size()));
}

/// The values of expressions without inputs.
Expected<std::vector<Tensor>> tensors_of(const std::string& expressions) {
  TESSERA_TRY(const Graph graph, parse_graph("graph() { return " + expressions + " }"));
  TESSERA_TRY(const std::vector<Datum> values, interp::run(graph, {}, {}));
  std::vector<Tensor> tensors;
  for (const Datum& value : values) tensors.push_back(value.tensor());
  return tensors;
}

Expected<Done> add_witnesses(const fs::path& file, std::vector<Entry>& entries) {
  TESSERA_TRY(const std::string text, read_text(file));
  for (const std::string& line : lines_of(text)) {
    if (!says_something(line)) continue;
    const std::size_t colon = std::min(line.find(':'), line.size());
    const std::string name = line.substr(0, colon);
    const auto entry = std::ranges::find(entries, name, &Entry::name);
    if (entry == entries.end() || colon == line.size())
      return Diagnostic{.id = "corpus-witness",
                        .where = {.file = file.string()},
                        .message = fmt::format("'{}' is no entry", name)};
    TESSERA_TRY(entry->witness, tensors_of(line.substr(colon + 1)));
  }
  return Done{};
}

}  // namespace

Expected<std::vector<Entry>> load_corpus(const fs::path& folder) {
  std::vector<Entry> entries;
  constexpr std::string_view kFirst = ".a.onnx";
  for (const fs::path& truth : sorted_files(folder)) {
    if (!fs::is_directory(truth)) continue;
    for (const fs::path& file : sorted_files(truth)) {
      const std::string name = file.filename().string();
      if (file.extension() == ".rules") {
        TESSERA_TRY(const std::vector<rules::Rule> rules, rules::load_rules(file));
        for (const rules::Rule& rule : rules)
          entries.push_back({rule.name, truth.filename().string(), rule});
      } else if (name.ends_with(kFirst)) {
        const std::string stem = name.substr(0, name.size() - kFirst.size());
        entries.push_back({stem, truth.filename().string(),
                           ModelPair{file, file.parent_path() / (stem + ".b.onnx")}});
      }
    }
  }
  std::set<std::string> names;
  for (const Entry& entry : entries)
    if (!names.insert(entry.name).second)
      return Diagnostic{.id = "corpus-name-twice",
                        .message = fmt::format("there are two entries '{}'", entry.name)};
  TESSERA_TRY_DONE(add_witnesses(folder / "witnesses.txt", entries));
  return entries;
}

Expected<std::map<std::string, std::string>> load_known_defects(const fs::path& file) {
  TESSERA_TRY(const std::string text, read_text(file));
  std::map<std::string, std::string> known;
  std::string reason;
  for (const std::string& line : lines_of(text)) {
    if (!says_something(line)) continue;
    if (line.ends_with(':'))
      reason = line.substr(0, line.size() - 1);
    else
      known.emplace(trimmed(line), reason);
  }
  return known;
}

Expected<Done> prune_known_defects(const fs::path& file, const std::set<std::string>& names) {
  TESSERA_TRY(const std::string text, read_text(file));
  return write_file(file, [&](std::ostream& out) {
    for (const std::string& line : lines_of(text))
      if (!names.contains(trimmed(line))) out << line << '\n';
  });
}

}  // namespace tessera::testing
