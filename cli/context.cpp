#include "cli/context.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <mutex>
#include <nlohmann/json.hpp>

#include "tessera/interp/interp.h"
#include "tessera/machine/machine.h"
#include "tessera/runtime/object_cache.h"

namespace tessera::cli {
namespace {

Diagnostic bad_quantity(const std::string& text, const std::string& examples) {
  return {.id = "cli-quantity",
          .message = fmt::format("'{}' is not a quantity", text),
          .note = "for example " + examples};
}

/// Number with a unit.
struct Quantity {
  double number;
  std::string unit;
};
std::optional<Quantity> split(const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || !(number > 0) || !std::isfinite(number)) return std::nullopt;
  std::string unit(end);
  for (char& c : unit) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return Quantity{number, unit};
}

std::filesystem::path user_cache() {
  const auto folder = [](const char* variable) -> std::filesystem::path {
    const char* const value = std::getenv(variable);
    return value == nullptr ? "" : value;
  };
  if (const auto cache = folder("XDG_CACHE_HOME"); cache.is_absolute()) return cache / "tessera";
  if (const auto home = folder("HOME"); home.is_absolute()) return home / ".cache" / "tessera";
  return {};
}

/// Limits private memory: allocation beyond it fails, which main reports. Mapped files do not
/// count. Sanitizers reserve more address space than any limit.
void limit_memory([[maybe_unused]] std::int64_t bytes) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  constexpr std::int64_t for_ourselves = std::int64_t{256} << 20;
  const auto limit = static_cast<rlim_t>(bytes + for_ourselves);
  const rlimit limits{limit, limit};
  setrlimit(RLIMIT_DATA, &limits);
#endif
}

}  // namespace

Expected<std::int64_t> parse_bytes(const std::string& text) {
  const auto quantity = split(text);
  if (!quantity) return bad_quantity(text, "1536, 512MB or 2GiB");
  const struct {
    const char* unit;
    double factor;
  } units[] = {{"", 1},         {"b", 1},      {"k", 0x1p10},   {"kb", 1e3},    {"kib", 0x1p10},
               {"m", 0x1p20},   {"mb", 1e6},   {"mib", 0x1p20}, {"g", 0x1p30},  {"gb", 1e9},
               {"gib", 0x1p30}, {"t", 0x1p40}, {"tb", 1e12},    {"tib", 0x1p40}};
  for (const auto& [unit, factor] : units)
    if (quantity->unit == unit && quantity->number * factor < 0x1p60)
      return static_cast<std::int64_t>(quantity->number * factor);
  return bad_quantity(text, "1536, 512MB or 2GiB");
}

Expected<double> parse_seconds(const std::string& text) {
  const auto quantity = split(text);
  if (!quantity) return bad_quantity(text, "90, 90s, 2m or 1h");
  const struct {
    const char* unit;
    double factor;
  } units[] = {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"m", 60}, {"min", 60}, {"h", 3600}};
  for (const auto& [unit, factor] : units)
    if (quantity->unit == unit && quantity->number * factor < 1e9) return quantity->number * factor;
  return bad_quantity(text, "90, 90s, 2m or 1h");
}

/// Handles Ctrl-C: the first requests an orderly stop, so that no file is left half written; a
/// second one ends the process.
void Context::listen() {
  sigset_t awaited;
  sigemptyset(&awaited);
  sigaddset(&awaited, SIGINT);
  sigaddset(&awaited, SIGUSR1);                   // the work is done
  pthread_sigmask(SIG_BLOCK, &awaited, nullptr);  // in the threads to come, too
  listener_ = std::make_unique<std::jthread>([this, awaited](const std::stop_token& token) {
    const std::stop_callback wake(token, [self = pthread_self()] { pthread_kill(self, SIGUSR1); });
    for (int signal = 0; !token.stop_requested() && sigwait(&awaited, &signal) == 0;) {
      if (signal != SIGINT) continue;
      if (interrupted_.exchange(true)) std::_Exit(kInterrupted);
      stop = true;
    }
  });
}

Expected<Done> Context::start(Limits memory) {
  if (memory == Limits::Program) listen();
  if (!memory_limit_text.empty()) {
    TESSERA_TRY(const std::int64_t bytes, parse_bytes(memory_limit_text));
    memory_limit = bytes;
    if (memory == Limits::Process) limit_memory(bytes);
  }
  if (!time_limit_text.empty()) {
    TESSERA_TRY(const double seconds, parse_seconds(time_limit_text));
    watchdog_ = std::make_unique<std::jthread>([this, seconds](const std::stop_token& token) {
      std::mutex mutex;
      std::condition_variable_any sleeper;
      std::unique_lock lock(mutex);
      const auto wait = [&](double duration) {
        sleeper.wait_for(lock, token, std::chrono::duration<double>(duration),
                         [] { return false; });
      };
      wait(seconds);
      if (token.stop_requested()) return;
      stop = true;
      wait(1);  // long work looks at `stop`; whatever does not is ended here
      if (token.stop_requested()) return;
      if (!at_time_limit) print(out_of_time({}));
      const int code = at_time_limit ? at_time_limit() : kLimit;
      std::fflush(stdout);
      std::_Exit(code);
    });
  }
  return Done{};
}

std::int64_t Context::run_memory() const {
  return memory_limit.value_or(machine::host_memory() / 4 * 3);
}

const std::filesystem::path& Context::default_cache() const {
  if (default_cache_) return *default_cache_;
  default_cache_ = user_cache();
  std::string problem = "neither XDG_CACHE_HOME nor HOME is an absolute path";
  if (!default_cache_->empty()) {
    const auto cache = runtime::ObjectCache::open(*default_cache_);
    if (cache) return *default_cache_ = cache->folder();
    problem = fmt::format("{}: {}", default_cache_->string(), cache.error().message);
    default_cache_->clear();
  }
  print_error(fmt::format("warning: object code is not cached: {}\n", problem));
  return *default_cache_;
}

std::int64_t Context::max_iterations() const {
  return time_limit_text.empty() ? interp::Options{}.max_iterations
                                 : std::numeric_limits<std::int64_t>::max();
}

void Context::fail(const Diagnostic& diagnostic) {
  if (diagnostic.id == "stopped" && interrupted_) {
    exit_code = kInterrupted;
    return print({.id = "interrupted", .where = diagnostic.where, .message = diagnostic.message});
  }
  const bool time = diagnostic.id == "stopped" && stop;
  print(time ? out_of_time(diagnostic.where) : diagnostic);
  const bool limit = time || diagnostic.id == "memory-limit" || diagnostic.id == "loop-limit";
  const bool usage = diagnostic.id.starts_with("cli-");
  exit_code = limit ? kLimit : usage ? kUsage : kBadInput;
}

Diagnostic Context::out_of_time(const Diagnostic::Where& where) const {
  return {.id = "time-limit",
          .where = where,
          .message = fmt::format("the time limit of {} is reached", time_limit_text),
          .help = "allow more with --time-limit"};
}

void Context::print(const Diagnostic& shown) const {
  if (json) {
    const nlohmann::json object = {{"error",
                                    {{"id", shown.id},
                                     {"file", shown.where.file},
                                     {"item", shown.where.item},
                                     {"message", shown.message},
                                     {"note", shown.note},
                                     {"help", shown.help}}}};
    fmt::print("{}\n", object.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  }
  print_error(to_string(shown) + "\n");
}

void print_error(const std::string& text) {
  std::fputs(text.c_str(), stderr);
}

void add_common(CLI::App& command, Context& context) {
  command.add_flag("--json", context.json, "print one JSON object");
  command.add_flag("-q,--quiet", context.quiet, "do not show a progress line");
  command.add_option(
      "--memory-limit", context.memory_limit_text,
      "memory limit, for example 512MB or 2GiB; by default, inputs and results of a run may use "
      "3/4 of the computer's memory");
  command.add_option("--time-limit", context.time_limit_text, "time limit, for example 90s or 5m");
}

ProgressLine::ProgressLine(const Context& context)
    : on_(!context.json && !context.quiet && isatty(STDERR_FILENO) != 0),
      start_(std::chrono::steady_clock::now()),
      last_(start_) {}

void ProgressLine::show(std::size_t done, std::size_t all, std::string_view what) {
  const auto now = std::chrono::steady_clock::now();
  using namespace std::chrono_literals;
  if (!on_ || now - start_ < 500ms || now - last_ < 100ms) return;
  last_ = now;
  shown_ = true;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const double left =
      done == 0 ? 0 : seconds / static_cast<double>(done) * static_cast<double>(all - done);
  print_error(fmt::format("\r\033[K{}/{} {}  {:.0f} s, about {:.0f} s left", done, all, what,
                          seconds, left));
}

void StageProgress::operator()(std::string_view stage, std::size_t done, std::size_t all) {
  if (!line_ || stage_ != stage) line_.emplace(context_);
  stage_ = stage;
  line_->show(done, all, stage);
}

void ProgressLine::clear() {
  if (shown_) print_error("\r\033[K");
  shown_ = false;
}

}  // namespace tessera::cli
