#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>

#include "tessera/machine/cpus.h"
#include "tessera/machine/features.h"
#include "tessera/machine/machine.h"

#if defined(__x86_64__)
#include <cpuid.h>

#include <cstring>
#endif

namespace tessera::machine {
namespace {

namespace fs = std::filesystem;

#if defined(__x86_64__)
constexpr Architecture kHostArchitecture = Architecture::X86_64;
#else
constexpr Architecture kHostArchitecture = Architecture::AArch64;
#endif

/// The first line of a file of the system; nothing where it cannot be read, as in many containers.
/// Paths are strings here: a process without memory crashes in operator/ of libstdc++ 12's paths.
std::optional<std::string> line_of(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  return line;
}

std::optional<std::int64_t> number_in(std::string_view text, int base = 10) {
  if (base == 16 && text.starts_with("0x")) text.remove_prefix(2);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (error != std::errc{}) return std::nullopt;
  return number;
}

std::optional<std::int64_t> number_of(const std::string& path) {
  const auto line = line_of(path);
  return line ? number_in(*line) : std::nullopt;
}

/// `0-3,8`, as the system writes sets of CPUs.
std::vector<int> cpu_list(const std::string& text) {
  std::vector<int> cpus;
  std::istringstream ranges(text);
  for (std::string range; std::getline(ranges, range, ',');) {
    const std::size_t dash = range.find('-');
    const auto first = number_in(range);
    const auto last = dash == std::string::npos ? first : number_in(range.substr(dash + 1));
    if (!first || !last || *first < 0 || *last >= CPU_SETSIZE) return {};
    for (std::int64_t cpu = *first; cpu <= *last; ++cpu) cpus.push_back(static_cast<int>(cpu));
  }
  return cpus;
}

/// The hardware threads on which this process may run.
std::vector<int> allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
      if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  if (cpus.empty())  // more CPUs than a cpu_set_t holds
    for (int cpu = 0; cpu < std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)); ++cpu) cpus.push_back(cpu);
  return cpus;
}

std::string folder_of(int cpu) {
  return fmt::format("/sys/devices/system/cpu/cpu{}", cpu);
}

/// Sets of CPUs as a file of each says, such as which share a core, of those that hold an allowed
/// CPU. A CPU whose file cannot be read is a set of its own.
std::vector<std::vector<int>> sets_of(const std::vector<int>& allowed, const char* file) {
  std::vector<std::vector<int>> sets;
  std::set<int> seen;
  for (const int cpu : allowed) {
    if (seen.contains(cpu)) continue;
    const auto line = line_of(folder_of(cpu) + "/" + file);
    std::vector<int> set = line ? cpu_list(*line) : std::vector<int>{};
    if (std::ranges::find(set, cpu) == set.end()) set = {cpu};
    seen.insert(set.begin(), set.end());
    sets.push_back(std::move(set));
  }
  return sets;
}

/// The allowed hardware threads by core.
std::vector<std::vector<int>> cores_of(const std::vector<int>& allowed) {
  auto cores = sets_of(allowed, "topology/thread_siblings_list");
  for (std::vector<int>& core : cores)
    std::erase_if(core, [&](int cpu) { return !std::ranges::binary_search(allowed, cpu); });
  return cores;
}

/// A folder in which the system keeps the limits of a control group.
struct ControlGroup {
  std::string folder;
  bool version_1 = false;
};

/// The control groups that this process is in, and those around them.
std::vector<ControlGroup> control_groups(const std::string& controller, const fs::path& root) {
  std::vector<ControlGroup> found;
  const std::string base = root.string() + "/sys/fs/cgroup";
  std::ifstream groups(root.string() + "/proc/self/cgroup");  // 0::/path or 5:cpu,cpuacct:/path
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool version_1 =
        ("," + controllers + ",").find("," + controller + ",") != std::string::npos;
    if (!controllers.empty() && !version_1) continue;
    // In a container the path may be one that only its host sees: then the root speaks.
    for (fs::path group = fs::path(line.substr(second + 1)).relative_path();;
         group = group.parent_path()) {
      found.push_back(
          {(version_1 ? base + "/" + controller : base) + "/" + group.string(), version_1});
      if (group.empty()) break;
    }
  }
  return found;
}

/// CPU time per time that the control groups of this process leave it.
std::optional<double> cpu_quota() {
  std::optional<double> least;
  const auto limit = [&](std::optional<std::int64_t> quota, std::optional<std::int64_t> period) {
    if (!quota || !period || *quota <= 0 || *period <= 0) return;
    const double cpus = static_cast<double>(*quota) / static_cast<double>(*period);
    least = std::min(least.value_or(cpus), cpus);
  };
  for (const auto& [folder, version_1] : control_groups("cpu", "/")) {
    if (version_1) {
      limit(number_of(folder + "/cpu.cfs_quota_us"), number_of(folder + "/cpu.cfs_period_us"));
    } else if (const auto max = line_of(folder + "/cpu.max")) {
      const auto parts = split_words(*max);  // `max 100000` or `200000 100000`
      if (parts.size() == 2) limit(number_in(parts[0]), number_in(parts[1]));
    }
  }
  return least;
}

/// Bytes of `48K`, `32768K`, `2M`.
std::optional<std::int64_t> size_of(const std::string& path) {
  const auto line = line_of(path);
  const auto number = line ? number_in(*line) : std::nullopt;
  if (!number || *number <= 0 || *number > (1 << 30)) return std::nullopt;
  return *number << (line->back() == 'K' ? 10 : line->back() == 'M' ? 20 : 0);
}

void set_caches(Machine& machine, const std::vector<int>& allowed) {
  const auto set = [](std::int64_t& size, std::int64_t found) {
    if (found > 0) size = found;
  };
  set(machine.l1d, sysconf(_SC_LEVEL1_DCACHE_SIZE));
  set(machine.l2, sysconf(_SC_LEVEL2_CACHE_SIZE));
  set(machine.l3, sysconf(_SC_LEVEL3_CACHE_SIZE));

  for (int index = 0; index < 8; ++index) {
    const std::string name = fmt::format("cache/index{}", index);
    const std::string folder = folder_of(allowed.front()) + "/" + name;
    const auto level = number_of(folder + "/level"), size = size_of(folder + "/size");
    if (!level || !size || line_of(folder + "/type") == "Instruction") continue;
    if (*level == 1) machine.l1d = *size;
    if (*level == 2) machine.l2 = *size;
    if (*level == 3)
      machine.l3 = *size * std::ssize(sets_of(allowed, (name + "/shared_cpu_list").c_str()));
    if (const auto line = number_of(folder + "/coherency_line_size"); line && *line >= 16)
      machine.cache_line = static_cast<int>(std::min<std::int64_t>(*line, 1024));
  }
}

#if defined(__x86_64__)
std::string host_vendor() {
  std::uint32_t eax = 0, name[3] = {};
  __get_cpuid(0, &eax, &name[0], &name[2], &name[1]);
  char text[sizeof name];
  std::memcpy(text, name, sizeof name);
  return {text, sizeof text};
}

/// The processor with the most features that are all here: a newer one of a family is tuned for as
/// the last that we know.
const Cpu* host_cpu(const std::vector<std::string>& features) {
  const std::string vendor = host_vendor();
  const Cpu* best = nullptr;
  std::size_t most = 0;
  for (const Cpu& cpu : known_cpus()) {
    if (cpu.architecture != kHostArchitecture || (!cpu.vendor.empty() && cpu.vendor != vendor))
      continue;
    const std::vector<std::string> needed = machine_of(cpu).features;
    const bool all = std::ranges::all_of(needed, [&](const std::string& name) {
      return name.starts_with("amx") || std::ranges::find(features, name) != features.end();
    });
    if (all && needed.size() >= most) best = &cpu, most = needed.size();
  }
  return best;
}
#else
const Cpu* host_cpu(const std::vector<std::string>&) {
  std::ifstream file("/proc/cpuinfo");
  std::optional<std::int64_t> implementer, part;
  for (std::string line; std::getline(file, line) && !(implementer && part);) {
    const std::size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    const auto value = number_in(std::string_view(line).substr(colon + 2), 16);
    if (line.starts_with("CPU implementer")) implementer = value;
    if (line.starts_with("CPU part")) part = value;
  }
  const auto cpus = known_cpus();
  const auto known = std::ranges::find_if(cpus, [&](const Cpu& cpu) {
    return cpu.implementer != 0 && cpu.implementer == implementer && cpu.part == part;
  });
  if (known != cpus.end()) return &*known;
  return &*std::ranges::find(cpus, "generic", &Cpu::name);
}
#endif

}  // namespace

Architecture host_architecture() {
  return kHostArchitecture;
}

Machine host() {
  const std::vector<std::string> features = features_of(kHostArchitecture, host_words());
  Machine machine = machine_of(*host_cpu(features));
  machine.features = features;
  set_vectors(machine);

  const std::vector<int> allowed = allowed_cpus();
  set_caches(machine, allowed);
  machine.siblings = cores_of(allowed);
  if (const auto quota = cpu_quota()) {
    const auto cores = static_cast<std::size_t>(std::max(1.0, *quota + 0.5));
    if (cores < machine.siblings.size()) machine.siblings.resize(cores);
  }
  machine.cores = static_cast<int>(machine.siblings.size());
  return machine;
}

std::int64_t host_memory(const fs::path& root) {
  std::int64_t least = std::int64_t{4} << 30;  // where the system says nothing
  std::ifstream file(root.string() + "/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    const auto words = split_words(line);  // `MemTotal:       24069988 kB`
    if (words.size() < 2 || words[0] != "MemTotal:") continue;
    if (const auto kib = number_in(words[1])) least = *kib * 1024;
    break;
  }
  for (const auto& [folder, version_1] : control_groups("memory", root)) {
    const auto limit = number_of(folder + (version_1 ? "/memory.limit_in_bytes" : "/memory.max"));
    if (limit && *limit > 0) least = std::min(least, *limit);
  }
  return least;
}

}  // namespace tessera::machine
