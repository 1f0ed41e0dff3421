#include "tessera/superopt/generate/checkpoint.h"

#include <sstream>

#include "tessera/support/file.h"
#include "tessera/support/hash.h"

namespace tessera::superopt {
namespace {

constexpr std::string_view kHeader = "tessera generate 2";
constexpr std::string_view kVerdicts = "pru=d", kForms = "gda";

std::uint64_t checksum(std::string_view text) {
  Hasher hasher;
  hasher.add_text(text);
  return hasher.value();
}

/// `key verdict form guard | guard back`
std::string line_of(std::uint64_t candidate, const Decision& decision) {
  std::string text = fmt::format(
      "{:016x} {}{} {}", candidate, kVerdicts[static_cast<std::size_t>(decision.verdict)],
      kForms[static_cast<std::size_t>(decision.form)], to_text(decision.forth));
  if (decision.back) text += " | " + to_text(*decision.back);
  return text;
}

std::optional<Guard> parse_guard(const std::string& text) {
  Guard guard;
  Lexer lexer(text);
  while (lexer.peek().kind != Token::Kind::End) {
    auto condition = parse_condition(lexer);
    if (!condition) return std::nullopt;
    guard.push_back(*std::move(condition));
    if (lexer.peek().kind != Token::Kind::End && !lexer.accept(",")) return std::nullopt;
  }
  return guard;
}

std::optional<std::pair<std::uint64_t, Decision>> parse_line(const std::string& line) {
  const std::size_t end = line.rfind(" #");
  if (end == std::string::npos || line.size() != end + 18 || end < 20) return std::nullopt;
  const std::string text = line.substr(0, end);
  if (line.substr(end + 2) != fmt::format("{:016x}", checksum(text))) return std::nullopt;
  const std::size_t verdict = kVerdicts.find(text[17]), form = kForms.find(text[18]);
  if (verdict == std::string::npos || form == std::string::npos) return std::nullopt;
  Decision decision{static_cast<Decision::Verdict>(verdict), static_cast<Form>(form), {}, {}};
  const std::size_t bar = text.find(" | ");
  const std::size_t length = bar == std::string::npos ? bar : bar - 20;
  const auto forth = parse_guard(text.substr(20, length));
  if (!forth) return std::nullopt;
  decision.forth = *forth;
  if (bar != std::string::npos) {
    decision.back = parse_guard(text.substr(bar + 3));
    if (!decision.back) return std::nullopt;
  }
  return std::pair(std::stoull(text.substr(0, 16), nullptr, 16), std::move(decision));
}

}  // namespace

Expected<std::unique_ptr<Checkpoint>> Checkpoint::open(const std::filesystem::path& path,
                                                       std::uint64_t run, bool resume) {
  auto made = std::make_unique<Checkpoint>();
  const std::string header = fmt::format("{} {:016x}\n", kHeader, run);
  std::string kept = header;
  const auto damaged = [&](std::string message) {
    return Diagnostic{.id = "generate-checkpoint",
                      .where = {.file = path.string()},
                      .message = std::move(message),
                      .help = "remove the file, or run without --resume"};
  };
  if (std::error_code error; resume && std::filesystem::exists(path, error)) {
    TESSERA_TRY(const std::string text, read_text(path));
    if (!text.starts_with(kHeader)) return damaged("this is not a checkpoint file");
    if (!text.starts_with(header)) return damaged("the progress is of another set or size");
    std::size_t at = header.size();
    for (std::size_t number = 2; at < text.size(); ++number) {
      const std::size_t end = text.find('\n', at);
      if (end == std::string::npos) break;  // the line that was being written
      const auto entry = parse_line(text.substr(at, end - at));
      if (!entry) return damaged(fmt::format("line {} is damaged", number));
      made->known_.insert(*entry);
      at = end + 1;
    }
    kept = text.substr(0, at);
  }
  TESSERA_TRY_DONE(write_file(path, [&](std::ostream& out) { out << kept; }));
  made->file_.open(path, std::ios::app);
  if (!made->file_) return damaged("it cannot be written");
  return made;
}

std::optional<Decision> Checkpoint::find(std::uint64_t candidate) const {
  const auto it = known_.find(candidate);
  return it == known_.end() ? std::nullopt : std::optional(it->second);
}

void Checkpoint::add(std::uint64_t candidate, const Decision& decision) {
  const std::string text = line_of(candidate, decision);
  const std::lock_guard lock(mutex_);
  file_ << fmt::format("{} #{:016x}\n", text, checksum(text)) << std::flush;
}

}  // namespace tessera::superopt
