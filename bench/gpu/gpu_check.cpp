// gpu_check: runs kernels on an NVIDIA GPU, compares them with the tile interpreter, then times
// others. What these left is compared with what plain code leaves; a time whose result differs is
// not written.
//
//   gpu_check [--only NAME]… [--no-check] [--no-time] [--json FILE] [--jobs N] [--cubins FOLDER]
//   gpu_check --ptx FOLDER [--only NAME]…   writes the PTX of every kernel; needs no GPU
//   gpu_check --assemble FOLDER [--only NAME]…   its machine code too, by ptxas: for --cubins
//
// NAME is a part of a name. With several jobs, kernels are compiled at the same time; how long that
// takes is measured before, of one at a time. Exits with 0: all agree; 1: some do not; 2: bad
// usage; 3: no GPU.

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "bench/gpu/benches.h"
#include "bench/gpu/cases.h"
#include "bench/gpu/on_gpu.h"
#include "bench/gpu/result.h"
#include "bench/gpu/timing.h"
#include "tessera/tile/fingerprint.h"
#include "tessera/tile/interp.h"
#include "tests/codegen/first_difference.h"

namespace tessera {
namespace {

using runtime::cuda::Device;
using tile::Argument;
using tile::Kernel;

struct Options {
  std::vector<std::string> only;
  std::string json, ptx, cubins;
  bool checks = true, times = true, assemble = false;
  int jobs = 1;

  bool wants(const std::string& name) const {
    const auto is_in = [&](const std::string& part) {
      return name.find(part) != std::string::npos;
    };
    return only.empty() || std::any_of(only.begin(), only.end(), is_in);
  }
  Wants wants_it() const {
    return [this](const std::string& name) { return wants(name); };
  }
};

/// Kernels on the GPU, each compiled once, several at a time.
class Kernels {
 public:
  Kernels(const Device& device, const Options& options) : device_(&device), options_(&options) {}

  void want(const Expected<Kernel>& kernel, const codegen::PtxOptions& options) {
    if (kernel) wanted_.try_emplace(key(*kernel, options), Wanted{*kernel, options, {}});
  }
  void load_all() {
    std::vector<Wanted*> list;
    for (auto& [key, wanted] : wanted_)
      if (!wanted.loaded) list.push_back(&wanted);
    std::atomic<std::size_t> next = 0;
    const auto work = [&] {
      const Expected<Done> used = device_->use();
      for (std::size_t i = next++; i < list.size(); i = next++)
        list[i]->loaded = used ? load(*device_, list[i]->kernel, list[i]->options, options_->cubins)
                               : Expected<Loaded>(used.error());
    };
    std::vector<std::thread> threads;
    for (int i = 1; i < options_->jobs; ++i) threads.emplace_back(work);
    work();
    for (std::thread& thread : threads) thread.join();
  }
  const Expected<Loaded>& get(const Kernel& kernel, const codegen::PtxOptions& options) const {
    return *wanted_.at(key(kernel, options)).loaded;
  }
  /// Those of a bench's steps, with options made of theirs.
  template <class OptionsOf>
  Expected<std::vector<const Loaded*>> get(const Bench& bench, const OptionsOf& options_of) const {
    std::vector<const Loaded*> loaded;
    for (const Step& step : bench.steps) {
      TESSERA_TRY(const Kernel kernel, step.kernel);
      const Expected<Loaded>& one = get(kernel, options_of(step.options));
      if (!one) return one.error();
      loaded.push_back(&*one);
    }
    return loaded;
  }

 private:
  struct Wanted {
    Kernel kernel;
    codegen::PtxOptions options;
    std::optional<Expected<Loaded>> loaded;
  };
  static std::string key(const Kernel& kernel, const codegen::PtxOptions& options) {
    return fmt::format("{} {}", tile::fingerprint(kernel), codegen::key_of(options));
  }
  const Device* device_;
  const Options* options_;
  std::map<std::string, Wanted> wanted_;
};

codegen::PtxOptions options_of(const Case& c) {
  return c.is_plain ? plain(c.options) : launched(c.options);
}

Expected<std::string> check(const Device& device, const Kernels& kernels, const Case& c) {
  TESSERA_TRY(const Kernel kernel, c.kernel);
  std::vector<std::vector<std::byte>> memory;
  const std::vector<Argument> arguments = c.arguments.copy(memory);
  const Expected<Loaded>& loaded = kernels.get(kernel, options_of(c));
  if (!loaded) return loaded.error();
  TESSERA_TRY(const There there, put(device, arguments, true));
  TESSERA_TRY_DONE(loaded->function.launch({c.grid, there.words}));
  TESSERA_TRY_DONE(device.wait());
  TESSERA_TRY_DONE(tile::interpret(kernel, arguments, c.grid));
  std::size_t next = 0;
  for (const Argument& argument : arguments) {
    if (argument.type.is_number()) continue;
    std::vector<std::byte> found(static_cast<std::size_t>(argument.bytes));
    TESSERA_TRY_DONE(there.memory[next].read(found));
    const auto bytes = static_cast<std::size_t>(argument.bytes);
    const std::string differs =
        codegen::first_difference({.dtype = argument.type.dtype,
                                   .expected = std::span(memory[next]).first(bytes),
                                   .found = found},
                                  c.tolerance);
    if (!differs.empty()) return fmt::format("argument {} {}", next, differs);
    ++next;
  }
  return std::string();
}

int write_ptx(const Options& wanted) {
  const auto write = [&](std::string name, const Expected<Kernel>& kernel,
                         const codegen::PtxOptions& options) {
    for (char& c : name)
      if (c == ' ' || c == '>' || c == '^' || c == ',') c = '_';
    if (!kernel) return fmt::print(stderr, "{}: {}\n", name, to_string(kernel.error()));
    const auto ptx = codegen::ptx_of(*kernel, options);
    if (!ptx) return fmt::print(stderr, "{}: {}\n", name, to_string(ptx.error()));
    const std::string file = wanted.ptx + "/" + name + ".ptx";
    std::ofstream(file) << ptx->text;
    if (wanted.assemble) {
      const std::string command = fmt::format("ptxas -arch=sm_90a '{}' -o '{}/{}'", file,
                                              wanted.ptx, cubin_name(ptx->text));
      if (std::system(command.c_str()) != 0) fmt::print(stderr, "{}: not assembled\n", name);
    }
    fmt::print("{:<50} {:>4} threads {:>7} shared {:>2} programs{}\n", name, ptx->threads,
               ptx->shared_bytes, ptx->programs, ptx->persistent ? ", persistent blocks" : "");
  };
  for (const Case& c : cases())
    if (wanted.wants(c.name)) write(c.name, c.kernel, options_of(c));
  std::string before;
  for (const Bench& b : benches(wanted.wants_it())) {
    for (std::size_t i = 0; i < b.steps.size(); ++i) {
      const std::string which = i == 0 ? "" : fmt::format(" {}", i);
      write(fmt::format("bench {}{}", b.name, which), b.steps[i].kernel,
            launched(b.steps[i].options));
      if (b.computes != before)
        write(fmt::format("plain {}{}", b.computes, which), b.steps[i].kernel,
              plain(b.steps[i].options));
    }
    before = b.computes;
  }
  return 0;
}

int check_all(const Device& device, const Options& options) {
  Kernels kernels(device, options);
  std::vector<Case> list = cases();
  std::erase_if(list, [&](const Case& c) { return !options.wants(c.name); });
  for (const Case& c : list) kernels.want(c.kernel, options_of(c));
  kernels.load_all();
  int failures = 0;
  for (const Case& c : list) {
    const auto result = check(device, kernels, c);
    if (result && result->empty()) continue;
    ++failures;
    fmt::print("FAILED {}: {}\n", c.name, result ? *result : to_string(result.error()));
    std::fflush(stdout);
  }
  fmt::print("checked against the interpreter: {} agree, {} do not\n",
             list.size() - static_cast<std::size_t>(failures), failures);
  return failures;
}

/// Of those that compute the same, which are neighbours.
bool is_first(const std::vector<Bench>& list, std::size_t i) {
  return i == 0 || list[i].computes != list[i - 1].computes;
}

/// Where times go: a line of JSON each.
class Notes {
 public:
  explicit Notes(const std::string& file) : lines_(file.empty() ? "/dev/null" : file) {}
  void operator()(const std::string& name, const Expected<std::string>& line) {
    if (line) {
      lines_ << *line << '\n' << std::flush;
    } else {
      ++failures_;
      fmt::print("FAILED {}: {}\n", name, to_string(line.error()));
    }
    std::fflush(stdout);
  }
  int failures() const { return failures_; }

 private:
  std::ofstream lines_;
  int failures_ = 0;
};

/// Before anything else is compiled: alone on the computer, and with nothing made ready.
void time_compiles(const Device& device, const Options& options, Notes& note) {
  namespace examples = tile::examples;
  const auto time = [&](const std::string& name, const Matmul& matmul) {
    if (options.wants(name)) note(name, time_compile(device, name, matmul));
  };
  constexpr DType kType = DType::BF16;
  time("compile matmul", [](const auto& tiles) { return examples::matmul(kType, kType, tiles); });
  time("compile matmul_gelu", [](const auto& tiles) {
    return examples::matmul_bias(kType, tiles, examples::Activation::Gelu);
  });
}

void time_all(const Device& device, const Options& options, Notes& note) {
  if (options.wants("launch")) note("launch", time_launch(device, {}));
  if (options.wants("launch with maps"))
    note("launch with maps", time_launch(device, {.maps = true}));
  if (options.wants("copy")) note("copy by the driver", time_driver_copy(device));
  Kernels kernels(device, options);
  const std::vector<Bench> list = benches(options.wants_it());
  Sets sets;
  std::vector<Room> of;  // what the sets are for
  std::string computed;  // what the reference is of
  Result reference;
  constexpr std::size_t kAtOnce = 64;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (i % kAtOnce == 0) {
      for (std::size_t j = i; j < std::min(i + kAtOnce, list.size()); ++j)
        for (const Step& step : list[j].steps) {
          kernels.want(step.kernel, launched(step.options));
          if (is_first(list, j)) kernels.want(step.kernel, plain(step.options));
        }
      kernels.load_all();
    }
    const Bench& bench = list[i];
    const auto timed = [&]() -> Expected<std::string> {
      TESSERA_TRY(const auto loaded, kernels.get(bench, launched));
      if (bench.rooms != of) {
        of.clear();
        sets = {};
        TESSERA_TRY(sets, sets_of(device, bench.rooms));
        of = bench.rooms;
      }
      if (is_first(list, i)) {
        TESSERA_TRY(const auto simple, kernels.get(bench, plain));
        TESSERA_TRY(reference, reference_of(device, bench, simple, sets));
        computed = bench.computes;
      }
      if (computed != bench.computes)
        return Diagnostic{.id = "gpu-check-reference",
                          .message = "there is nothing to compare with"};
      TESSERA_TRY_DONE(spoil(bench, sets));
      TESSERA_TRY(const std::string line, time_one(device, bench, loaded, sets));
      TESSERA_TRY(const Result result, result_of(bench, sets));
      const std::string differs = difference(reference, result);
      if (!differs.empty())
        return Diagnostic{.id = "gpu-check-result",
                          .message = "what was timed is wrong: " + differs};
      return line;
    };
    note(bench.name, timed());
  }
}

int run(const std::vector<std::string>& arguments) {
  Options options;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const auto value = [&] { return i + 1 < arguments.size() ? arguments[++i] : std::string(); };
    if (arguments[i] == "--only") {
      options.only.push_back(value());
    } else if (arguments[i] == "--json") {
      options.json = value();
    } else if (arguments[i] == "--ptx" || arguments[i] == "--assemble") {
      options.assemble = arguments[i] == "--assemble";
      options.ptx = value();
    } else if (arguments[i] == "--cubins") {
      options.cubins = value();
    } else if (arguments[i] == "--jobs") {
      options.jobs = std::max(1, std::atoi(value().c_str()));
    } else if (arguments[i] == "--no-check") {
      options.checks = false;
    } else if (arguments[i] == "--no-time") {
      options.times = false;
    } else {
      fmt::print(stderr, "gpu_check: {} is not an option\n", arguments[i]);
      return 2;
    }
  }
  if (!options.ptx.empty()) return write_ptx(options);
  // Else the driver remembers what it compiled in an earlier run.
  setenv("CUDA_CACHE_DISABLE", "1", /*overwrite=*/1);  // NOLINT(concurrency-mt-unsafe): no threads
  const auto device = Device::open();
  if (!device) {
    fmt::print(stderr, "{}\n", to_string(device.error()));
    return 3;
  }
  fmt::print("{}, {} multiprocessors, compute capability {}\n", device->name(),
             device->multiprocessors(), device->compute());
  Notes notes(options.json);
  if (options.times) time_compiles(*device, options, notes);
  const int wrong = options.checks ? check_all(*device, options) : 0;
  if (options.times) time_all(*device, options, notes);
  return wrong + notes.failures() == 0 ? 0 : 1;
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) {
  return tessera::run({argv + 1, argv + argc});
}
