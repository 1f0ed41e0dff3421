#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "python/bindings/array.h"
#include "python/bindings/bind.h"
#include "python/bindings/error.h"
#include "tessera/driver/model_certificate.h"
#include "tessera/driver/prove.h"
#include "tessera/machine/machine.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace tessera::python {
namespace {

/// A flag that is set after so many seconds, unless it is destroyed before.
class Deadline {
 public:
  explicit Deadline(double seconds)
      : thread_([this, seconds](const std::stop_token& token) {
          std::unique_lock lock(mutex_);
          wake_.wait_for(lock, token, std::chrono::duration<double>(seconds), [] { return false; });
          if (!token.stop_requested()) reached = true;
        }) {}

  std::atomic<bool> reached = false;

 private:
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::jthread thread_;  // last: it uses the others
};

nb::dict described(const prove::SweepResult& result) {
  nb::dict fields;
  fields["verdict"] = std::string(prove::to_string(result.verdict));
  if (const auto* proved = std::get_if<prove::Proved>(&result.verdict)) {
    nb::list assumptions;
    for (const prove::Assumption& assumption : proved->assumptions)
      assumptions.append(
          nb::make_tuple(std::string(prove::to_string(assumption.kind)), assumption.text));
    fields["assumptions"] = assumptions;
  } else if (const auto* refuted = std::get_if<prove::Refuted>(&result.verdict)) {
    nb::dict inputs;
    for (std::size_t i = 0; i < refuted->inputs.size(); ++i)
      inputs[result.input_names[i].c_str()] = to_python(refuted->inputs[i]);
    fields["counterexample"] = inputs;
    fields["output"] = result.output_names[refuted->output];
    fields["position"] = nb::tuple(nb::cast(refuted->position));
    fields["values"] = nb::make_tuple(refuted->source, refuted->target);
    fields["why"] = result.divergence ? prove::to_string(*result.divergence) : refuted->what;
  } else {
    fields["why"] = std::get<prove::Unknown>(result.verdict).why;
  }
  return fields;
}

nb::dict prove_files(const std::filesystem::path& source, const std::filesystem::path& target,
                     double time_limit, int threads, std::uint64_t seed,
                     const std::filesystem::path& certificate) {
  prove::SweepResult result;
  {
    const nb::gil_scoped_release nogil;
    const Deadline deadline(time_limit);
    const prove::SweepOptions options{.seed = seed,
                                      .threads = threads,
                                      .memory_limit = machine::host_memory() / 4 * 3,
                                      .stop = &deadline.reached};
    auto proved = certificate.empty()
                      ? prove_models(source, target, options)
                      : prove_models_with_certificate(source, target, options, certificate);
    if (!proved && proved.error().id == "stopped")
      result.verdict = prove::Unknown{"the time limit is reached"};
    else
      result = value_or_throw(std::move(proved));
  }
  return described(result);
}

}  // namespace

void bind_proofs(nb::module_& module) {
  module.def("prove", prove_files, "source"_a, "target"_a, "time_limit"_a, "threads"_a, "seed"_a,
             "certificate"_a);
}

}  // namespace tessera::python
