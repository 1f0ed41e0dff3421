#include "tessera/cost/store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <sstream>
#include <system_error>
#include <utility>

#include "tessera/codegen/llvm/object.h"
#include "tessera/support/hash.h"

namespace tessera::cost {
namespace {

namespace fs = std::filesystem;

constexpr int kApplication = 0x54534b4d;  // what SQLite files of this kind call themselves
constexpr int kVersion = 1;
constexpr int kPatienceMs = 20'000;  // others write for some milliseconds

constexpr const char* kSchema = R"(
CREATE TABLE target (
  name TEXT PRIMARY KEY, version TEXT NOT NULL,
  architecture TEXT NOT NULL, cpu TEXT NOT NULL, features TEXT NOT NULL,
  cores INTEGER NOT NULL, l1d INTEGER NOT NULL, l2 INTEGER NOT NULL, l3 INTEGER NOT NULL,
  cache_line INTEGER NOT NULL, vector_bytes INTEGER NOT NULL, vector_registers INTEGER NOT NULL,
  threads INTEGER NOT NULL,
  flops_per_second REAL NOT NULL, bytes_per_second REAL NOT NULL, seconds_per_launch REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE measurement (
  target TEXT NOT NULL REFERENCES target(name), key TEXT NOT NULL, code TEXT NOT NULL,
  what TEXT NOT NULL, strategy TEXT NOT NULL,
  operations REAL NOT NULL, bytes REAL NOT NULL, launches REAL NOT NULL,
  seconds REAL NOT NULL, best REAL NOT NULL, samples INTEGER NOT NULL, "when" INTEGER NOT NULL,
  PRIMARY KEY (target, key)
) WITHOUT ROWID;
)";

/// Added to stores that were made before there were schedules, too.
constexpr const char* kScheduleTable = R"(
CREATE TABLE IF NOT EXISTS schedule (
  target TEXT NOT NULL REFERENCES target(name), key TEXT NOT NULL, schedule TEXT NOT NULL,
  seconds REAL NOT NULL, ratio REAL NOT NULL, low REAL NOT NULL, high REAL NOT NULL,
  samples INTEGER NOT NULL, chosen INTEGER NOT NULL, "when" INTEGER NOT NULL,
  features TEXT NOT NULL,
  PRIMARY KEY (target, key, schedule)
) WITHOUT ROWID;
)";

Diagnostic failure(sqlite3* base, const std::string& file) {
  const std::string said = base == nullptr ? "out of memory" : sqlite3_errmsg(base);
  const Diagnostic::Where where{.file = file};
  switch (base == nullptr ? SQLITE_NOMEM : sqlite3_errcode(base)) {
    case SQLITE_NOTADB:
      return {.id = "store-foreign",
              .where = where,
              .message = "this is not a store of measurements",
              .help = "choose another file; a missing file is created"};
    case SQLITE_CORRUPT:
      return {
          .id = "store-damaged",
          .where = where,
          .message = fmt::format("the store of measurements is damaged: {}", said),
          .help = "move the file away: a new one is made, and fills again as kernels are timed"};
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return {.id = "store-busy",
              .where = where,
              .message = fmt::format("another process holds the store for more than {} s",
                                     kPatienceMs / 1000)};
    default:
      return {.id = "store-unusable",
              .where = where,
              .message = fmt::format("the store of measurements cannot be used: {}", said),
              .help = "choose a file that you own, in a writable folder"};
  }
}

Diagnostic damaged(const std::string& file, const std::string& what) {
  return {.id = "store-damaged",
          .where = {.file = file},
          .message = fmt::format("the store of measurements is damaged: {}", what),
          .help = "move the file away: a new one is made, and fills again as kernels are timed"};
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(std::move(word));
  return words;
}

bool is_time(double seconds) {
  return std::isfinite(seconds) && seconds > 0;
}
bool is_amount(double x) {
  return std::isfinite(x) && x >= 0;
}

/// Creates folders with access for the owner only.
void make_folders(const fs::path& folder) {
  std::error_code error;
  if (folder.empty() || fs::exists(folder, error)) return;
  make_folders(folder.parent_path());
  ::mkdir(folder.c_str(), 0700);
}

}  // namespace

/// Prepared statement and its result rows.
class Statement {
 public:
  Statement(sqlite3* base, std::string file) : base_(base), file_(std::move(file)) {}
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Expected<Done> prepare(const std::string& sql) {
    return check(sqlite3_prepare_v2(base_, sql.c_str(), -1, &statement_, nullptr));
  }

  void bind(const std::string& text) {
    sqlite3_bind_text(statement_, ++bound_, text.data(), static_cast<int>(text.size()),
                      SQLITE_TRANSIENT);
  }
  void bind(double number) { sqlite3_bind_double(statement_, ++bound_, number); }
  void bind(std::int64_t number) { sqlite3_bind_int64(statement_, ++bound_, number); }
  void bind(int number) { bind(std::int64_t{number}); }

  /// Whether there is one more row.
  Expected<bool> step() {
    const int result = sqlite3_step(statement_);
    column_ = 0;
    if (result == SQLITE_ROW) return true;
    if (result == SQLITE_DONE) return false;
    return failure(base_, file_);
  }
  template <class... Values>
  Expected<Done> run(const Values&... values) {
    sqlite3_reset(statement_);
    bound_ = 0;
    (bind(values), ...);
    TESSERA_TRY_DONE(step());
    sqlite3_reset(statement_);
    return Done{};
  }

  std::string text() {
    const int column = column_++;
    const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
    return bytes == nullptr
               ? std::string()
               : std::string(bytes,
                             static_cast<std::size_t>(sqlite3_column_bytes(statement_, column)));
  }
  double real() { return sqlite3_column_double(statement_, column_++); }
  std::int64_t integer() { return sqlite3_column_int64(statement_, column_++); }
  int small() { return static_cast<int>(integer()); }

 private:
  Expected<Done> check(int result) const {
    if (result == SQLITE_OK) return Done{};
    return failure(base_, file_);
  }

  sqlite3* base_;
  std::string file_;
  sqlite3_stmt* statement_ = nullptr;
  int bound_ = 0, column_ = 0;
};

class Store::File {
 public:
  explicit File(std::string name) : name_(std::move(name)) {}
  ~File() { sqlite3_close(base_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  Expected<Done> open() {
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    if (sqlite3_open_v2(name_.empty() ? ":memory:" : name_.c_str(), &base_, flags, nullptr) !=
        SQLITE_OK)
      return failure(base_, name_);
    sqlite3_busy_timeout(base_, kPatienceMs);
    // Defensive mode: no code from an untrusted database file runs.
    sqlite3_db_config(base_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    sqlite3_db_config(base_, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
    TESSERA_TRY(std::int64_t application, number("PRAGMA application_id"));
    if (application == 0) {
      TESSERA_TRY(const std::int64_t tables, number("SELECT count(*) FROM sqlite_schema"));
      if (tables == 0) TESSERA_TRY_DONE(make());
      // Checked again: another process may have created it in between.
      TESSERA_TRY(application, number("PRAGMA application_id"));
    }
    if (application != kApplication)
      return Diagnostic{.id = "store-foreign",
                        .where = {.file = name_},
                        .message = "this is not a store of measurements",
                        .note = "it is an SQLite file of something else",
                        .help = "choose another file; a missing file is created"};
    TESSERA_TRY(const std::int64_t version, number("PRAGMA user_version"));
    if (version != kVersion)
      return Diagnostic{.id = "store-version",
                        .where = {.file = name_},
                        .message = fmt::format("the store of measurements has version {}", version),
                        .note = fmt::format("this tessera reads version {}", kVersion),
                        .help = "choose another file, or the tessera that made it"};
    TESSERA_TRY_DONE(verify());
    return add_schedules();
  }

  Expected<Done> run(const char* sql) {
    if (sqlite3_exec(base_, sql, nullptr, nullptr, nullptr) == SQLITE_OK) return Done{};
    return failure(base_, name_);
  }

  /// Runs `change` in a transaction.
  template <class Change>
  Expected<Done> transact(const Change& change) {
    TESSERA_TRY_DONE(run("BEGIN IMMEDIATE"));
    Expected<Done> done = change();
    if (done) done = run("COMMIT");
    if (!done) sqlite3_exec(base_, "ROLLBACK", nullptr, nullptr, nullptr);
    return done;
  }

  sqlite3* base() const { return base_; }
  const std::string& name() const { return name_; }

 private:
  Expected<std::int64_t> number(const char* sql) {
    Statement statement(base_, name_);
    TESSERA_TRY_DONE(statement.prepare(sql));
    TESSERA_TRY(const bool some, statement.step());
    return some ? statement.integer() : 0;
  }

  /// Ends its statement: with a lock for reading, a transaction that writes would not wait for
  /// another process but be refused at once.
  Expected<Done> verify() {
    Statement check(base_, name_);
    TESSERA_TRY_DONE(check.prepare("PRAGMA quick_check(1)"));
    TESSERA_TRY(const bool said, check.step());
    if (const std::string verdict = said ? check.text() : "no answer"; verdict != "ok")
      return damaged(name_, verdict);
    return Done{};
  }

  /// The table of schedules, which stores of earlier releases do not have.
  Expected<Done> add_schedules() {
    const auto has_table = [&] {
      return number("SELECT count(*) FROM sqlite_schema WHERE name = 'schedule'");
    };
    TESSERA_TRY(const std::int64_t there, has_table());
    if (there > 0) return Done{};
    return transact([&]() -> Expected<Done> {
      // Another process may have been first.
      TESSERA_TRY(const std::int64_t tables, has_table());
      return tables > 0 ? Expected<Done>(Done{}) : run(kScheduleTable);
    });
  }

  Expected<Done> make() {
    return transact([&]() -> Expected<Done> {
      // Another process may have been first.
      TESSERA_TRY(const std::int64_t tables, number("SELECT count(*) FROM sqlite_schema"));
      if (tables > 0) return Done{};
      TESSERA_TRY_DONE(run(kSchema));
      TESSERA_TRY_DONE(run(fmt::format("PRAGMA application_id = {}", kApplication).c_str()));
      return run(fmt::format("PRAGMA user_version = {}", kVersion).c_str());
    });
  }

  std::string name_;
  sqlite3* base_ = nullptr;
};

Target target_of(const machine::Machine& machine, int threads) {
  Target target{.version = codegen::release_version(), .machine = machine, .threads = threads};
  if (machine.is_gpu()) {  // whose speed the number of threads of the computer says nothing of
    target.threads = 1;
    Hasher hasher;
    hasher.add_text(target.version);
    target.name =
        fmt::format("{}-{}sm-{:08x}", machine.gpu->architecture, machine.gpu->multiprocessors,
                    static_cast<std::uint32_t>(hasher.value() >> 32));
    return target;
  }
  target.machine.siblings.clear();  // where threads are put is the system's affair
  target.machine.cores = threads;
  Hasher hasher;
  hasher.add_text(target.version);
  hasher.add_text(machine::llvm_features(machine));
  for (const std::int64_t size :
       {machine.l1d, machine.l2, machine.l3, std::int64_t{machine.cache_line},
        std::int64_t{machine.vector_bytes}, std::int64_t{machine.vector_registers}})
    hasher.add(static_cast<std::uint64_t>(size));
  target.name = fmt::format("{}-{}t-{:08x}", machine.cpu.empty() ? "cpu" : machine.cpu, threads,
                            static_cast<std::uint32_t>(hasher.value() >> 32));
  return target;
}

Store::Store(std::unique_ptr<File> file) : file_(std::move(file)) {}
Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;
Store::~Store() = default;

Expected<Store> Store::open(const fs::path& file) {
  if (!file.empty()) {
    make_folders(file.parent_path());
    // Creates the file with restricted permissions, which SQLite would not. Errors are reported by
    // SQLite below.
    if (const int made = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600); made >= 0)
      ::close(made);
  }
  auto opened = std::make_unique<File>(file.string());
  TESSERA_TRY_DONE(opened->open());
  return Store(std::move(opened));
}

Expected<Store> Store::open_existing(const fs::path& file) {
  std::error_code error;
  if (!fs::exists(file, error))
    return Diagnostic{.id = "store-missing",
                      .where = {.file = file.string()},
                      .message = "there is no store of measurements",
                      .help = "name one that a search or `tessera costs MODEL` created"};
  return open(file);
}

Expected<std::vector<Target>> Store::targets() const {
  Statement statement(file_->base(), file_->name());
  TESSERA_TRY_DONE(statement.prepare(
      "SELECT name, version, architecture, cpu, features, cores, l1d, l2, l3, cache_line, "
      "vector_bytes, vector_registers, threads, flops_per_second, bytes_per_second, "
      "seconds_per_launch FROM target ORDER BY name"));
  std::vector<Target> targets;
  while (true) {
    TESSERA_TRY(const bool more, statement.step());
    if (!more) return targets;
    Target& target = targets.emplace_back();
    machine::Machine& machine = target.machine;
    target.name = statement.text();
    target.version = statement.text();
    const std::string architecture = statement.text();
    machine.architecture = architecture == to_string(machine::Architecture::X86_64)
                               ? machine::Architecture::X86_64
                               : machine::Architecture::AArch64;
    machine.cpu = statement.text();
    machine.features = words_of(statement.text());
    machine.cores = statement.small();
    machine.l1d = statement.integer();
    machine.l2 = statement.integer();
    machine.l3 = statement.integer();
    machine.cache_line = statement.small();
    machine.vector_bytes = statement.small();
    machine.vector_registers = statement.small();
    target.threads = statement.small();
    target.flops_per_second = statement.real();
    target.bytes_per_second = statement.real();
    target.seconds_per_launch = statement.real();
    const auto is_size = [](std::int64_t x) { return x >= 1 && x <= std::int64_t{1} << 40; };
    const bool sane = is_size(machine.cores) && is_size(machine.l1d) && is_size(machine.l2) &&
                      is_size(machine.l3) && is_size(machine.cache_line) &&
                      machine.vector_bytes >= 8 && machine.vector_bytes <= 1024 &&
                      machine.vector_registers >= 8 && machine.vector_registers <= 1024 &&
                      is_size(target.threads) && target.threads <= 1024 &&
                      is_amount(target.flops_per_second) && is_amount(target.bytes_per_second) &&
                      is_amount(target.seconds_per_launch);
    if (!sane) return damaged(file_->name(), fmt::format("target {} makes no sense", target.name));
  }
}

Expected<std::optional<Target>> Store::find(const std::string& target) const {
  TESSERA_TRY(const std::vector<Target> all, targets());
  for (const Target& one : all)
    if (one.name == target) return std::optional(one);
  return std::optional<Target>{};
}

Expected<Done> Store::put(const Target& target) {
  const machine::Machine& machine = target.machine;
  return file_->transact([&]() -> Expected<Done> {
    Statement statement(file_->base(), file_->name());
    TESSERA_TRY_DONE(statement.prepare(
        "INSERT OR REPLACE INTO target VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"));
    return statement.run(
        target.name, target.version, std::string(machine::to_string(machine.architecture)),
        machine.cpu, fmt::format("{}", fmt::join(machine.features, " ")), machine.cores,
        machine.l1d, machine.l2, machine.l3, machine.cache_line, machine.vector_bytes,
        machine.vector_registers, target.threads, target.flops_per_second, target.bytes_per_second,
        target.seconds_per_launch);
  });
}

Expected<std::vector<Measurement>> Store::measurements(const std::string& target) const {
  Statement statement(file_->base(), file_->name());
  TESSERA_TRY_DONE(
      statement.prepare("SELECT key, code, what, strategy, operations, bytes, launches, seconds, "
                        "best, samples, \"when\" "
                        "FROM measurement WHERE target = ? ORDER BY key"));
  statement.bind(target);
  std::vector<Measurement> all;
  while (true) {
    TESSERA_TRY(const bool more, statement.step());
    if (!more) return all;
    Measurement& one = all.emplace_back();
    one.key = statement.text();
    one.code = statement.text();
    one.what = statement.text();
    one.strategy = statement.text();
    one.operations = statement.real();
    one.bytes = statement.real();
    one.launches = statement.real();
    one.seconds = statement.real();
    one.best = statement.real();
    one.samples = statement.integer();
    one.when = statement.integer();
    if (!is_time(one.seconds) || !is_time(one.best) || !is_amount(one.operations) ||
        !is_amount(one.bytes) || !is_amount(one.launches))
      return damaged(file_->name(), fmt::format("the measurement of {} makes no sense", one.key));
  }
}

Expected<Done> Store::put(const std::string& target, std::span<const Measurement> measurements) {
  return file_->transact([&]() -> Expected<Done> {
    Statement statement(file_->base(), file_->name());
    TESSERA_TRY_DONE(
        statement.prepare("INSERT OR REPLACE INTO measurement VALUES (?,?,?,?,?,?,?,?,?,?,?,?)"));
    for (const Measurement& one : measurements)
      TESSERA_TRY_DONE(statement.run(target, one.key, one.code, one.what, one.strategy,
                                     one.operations, one.bytes, one.launches, one.seconds, one.best,
                                     one.samples, one.when));
    return Done{};
  });
}

Expected<std::vector<ScheduleMeasurement>> Store::schedules(const std::string& target,
                                                            bool chosen) const {
  Statement statement(file_->base(), file_->name());
  TESSERA_TRY_DONE(statement.prepare(
      "SELECT key, schedule, seconds, ratio, low, high, samples, chosen, \"when\", features "
      "FROM schedule WHERE target = ? AND chosen >= ? ORDER BY key, schedule"));
  statement.bind(target);
  statement.bind(chosen ? 1 : 0);
  std::vector<ScheduleMeasurement> all;
  while (true) {
    TESSERA_TRY(const bool more, statement.step());
    if (!more) return all;
    ScheduleMeasurement& one = all.emplace_back();
    one.key = statement.text();
    one.schedule = statement.text();
    one.seconds = statement.real();
    one.ratio = statement.real();
    one.low = statement.real();
    one.high = statement.real();
    one.samples = statement.integer();
    one.chosen = statement.integer() != 0;
    one.when = statement.integer();
    one.features = statement.text();
    if (!is_amount(one.seconds) || !is_amount(one.ratio) || !is_amount(one.low) ||
        !is_amount(one.high))
      return damaged(file_->name(), fmt::format("the schedule of {} makes no sense", one.key));
  }
}

Expected<Done> Store::put(const std::string& target,
                          std::span<const ScheduleMeasurement> measurements) {
  return file_->transact([&]() -> Expected<Done> {
    Statement statement(file_->base(), file_->name());
    TESSERA_TRY_DONE(
        statement.prepare("INSERT OR REPLACE INTO schedule VALUES (?,?,?,?,?,?,?,?,?,?,?)"));
    for (const ScheduleMeasurement& one : measurements)
      TESSERA_TRY_DONE(statement.run(target, one.key, one.schedule, one.seconds, one.ratio, one.low,
                                     one.high, one.samples, one.chosen ? 1 : 0, one.when,
                                     one.features));
    return Done{};
  });
}

Expected<Done> Store::choose(const std::string& target, const std::string& key,
                             const std::string& schedule) {
  return file_->transact([&]() -> Expected<Done> {
    Statement statement(file_->base(), file_->name());
    TESSERA_TRY_DONE(statement.prepare(
        "UPDATE schedule SET chosen = (schedule = ?) WHERE target = ? AND key = ?"));
    return statement.run(schedule, target, key);
  });
}

}  // namespace tessera::cost
