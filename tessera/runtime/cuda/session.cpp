#include "tessera/runtime/cuda/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <list>
#include <map>
#include <new>
#include <optional>

#include "tessera/runtime/arguments.h"
#include "tessera/runtime/cuda/gpu_program.h"
#include "tessera/runtime/cuda/host_transfers.h"
#include "tessera/runtime/step_executor.h"

namespace tessera::runtime::cuda {
namespace {

using Home = Value::Home;

Diagnostic in_a_file() {
  return {.id = "cuda-memory",
          .message = "the program keeps a part of its memory in a file",
          .help = "compile it for a GPU without a memory limit"};
}

/// Maximum number of launches and copies in one graph; longer programs are submitted step by step.
constexpr double kMostOfAGraph = 1 << 16;

/// Number of launches and copies of the steps [first, end), with loops unrolled.
double nodes_of(const Program& program, std::size_t first, std::size_t end) {
  double nodes = 0;
  while (first < end) {
    const Step& step = program.steps[first];
    const auto* loop = std::get_if<step::Loop>(&step);
    if (loop != nullptr)
      nodes += static_cast<double>(loop->rounds) * nodes_of(program, first + 1, loop->end);
    else
      nodes += 1;
    first = loop != nullptr ? loop->end : first + 1;
  }
  return nodes;
}

class GpuSession final : public StepExecutor {
 public:
  GpuSession(std::shared_ptr<const LoadedProgram> program, const SessionOptions& options,
             std::shared_ptr<const GpuProgram> loaded)
      : StepExecutor(std::move(program), options), on_gpu_(std::move(loaded)) {}

  GpuSession(const GpuSession&) = delete;
  GpuSession& operator=(const GpuSession&) = delete;
  /// Waits for work that is still running, which writes to memory that is freed here: that of a
  /// failed run, and of a run in a stream of the caller.
  ~GpuSession() override {
    if (stream_.get() == nullptr || !device().use()) return;
    (void)stream_.wait();
    if (submitted_) (void)submitted_->wait();
  }

  /// Allocates memory for all values but weights, in one piece. Small inputs are neighbours, and so
  /// are small outputs.
  Expected<Done> prepare() {
    TESSERA_TRY_DONE(device().use());
    TESSERA_TRY(stream_, device().stream());
    std::map<std::pair<Home, std::int64_t>, std::int64_t> of_caller;  // offset of each
    std::int64_t bytes = program().arena_bytes;
    const auto add = [&](Home home, const std::vector<ValueIndex>& list, bool small) {
      bytes = (bytes + kApart - 1) / kApart * kApart;
      const std::int64_t begin = bytes;
      for (std::size_t i = 0; i < list.size(); ++i) {
        const Value& value = program().values[list[i]];
        if (value.home != home || small != is_small(value)) continue;
        of_caller.emplace(std::pair(home, static_cast<std::int64_t>(i)), bytes);
        bytes += (value.bytes + kApart - 1) / kApart * kApart;
      }
      return DeviceRange{.address = static_cast<cuda::Address>(begin),
                         .bytes = static_cast<std::size_t>(bytes - begin)};
    };
    DeviceRange in = add(Home::Input, program().inputs, true);
    DeviceRange out = add(Home::Output, program().outputs, true);
    add(Home::Input, program().inputs, false);
    add(Home::Output, program().outputs, false);
    TESSERA_TRY(own_, device().allocate(bytes));
    in.address += own_.address();
    out.address += own_.address();
    transfers_.emplace(device(), *on_gpu_->pinned, options().threads, in, out);
    for (const Value& value : program().values) {
      cuda::Address base = own_.address();
      std::int64_t offset = value.offset;
      if (value.home == Home::Weight) base = on_gpu_->weights.address();
      if (value.home == Home::Input || value.home == Home::Output)
        offset = of_caller.at({value.home, value.offset});
      memory_.push_back(base + static_cast<cuda::Address>(offset));
    }
    needs_host_ = std::ranges::any_of(program().steps, [](const Step& step) {
      return std::holds_alternative<step::Host>(step) ||
             std::holds_alternative<step::Branch>(step) || std::holds_alternative<step::Jump>(step);
    });
    is_graph_ = !needs_host_ && nodes_of(program(), 0, program().steps.size()) <= kMostOfAGraph;
    return Done{};
  }

  std::shared_ptr<std::byte> host_memory(std::size_t bytes) override {
    return on_gpu_->pinned->allocate(bytes);
  }

  /// The CPU reads inputs that are indices.
  std::size_t host_alignment() const override { return alignof(std::int64_t); }

  Expected<Done> run_on_device(const DeviceArguments& given) override {
    TESSERA_TRY_DONE(check_addresses(given));
    TESSERA_TRY_DONE(device().use());
    const std::vector<cuda::Address> own = memory_;
    for (std::size_t i = 0; i < memory_.size(); ++i) {
      const Value& value = program().values[i];
      const auto which = static_cast<std::size_t>(value.offset);
      if (value.home == Home::Input) memory_[i] = given.inputs[which];
      if (value.home == Home::Output) memory_[i] = given.outputs[which];
    }
    const Stream stream = device().borrowed_stream(given.stream);
    current_ = &stream;
    const Expected<Done> done = stream.is_capturing() ? add_to_capture() : submit_on_device(given);
    current_ = &stream_;
    memory_ = own;
    return done;
  }

  Expected<std::optional<double>> time_steps(int runs) override {
    if (!graph_) return std::optional<double>();
    TESSERA_TRY_DONE(device().use());
    TESSERA_TRY(Event begin, device().event());
    TESSERA_TRY(Event end, device().event());
    TESSERA_TRY_DONE(begin.record(stream_.get()));
    for (int i = 0; i < runs; ++i) TESSERA_TRY_DONE(graph_->launch(stream_.get()));
    TESSERA_TRY_DONE(end.record(stream_.get()));
    TESSERA_TRY(const double milliseconds, end.since(begin));
    return std::optional(milliseconds / std::max(runs, 1));
  }

 private:
  static constexpr std::int64_t kApart = 256;
  /// Number of sets of addresses of a caller for which graphs are kept. An allocator that caches
  /// memory gives the outputs of a loop few addresses in turn.
  static constexpr std::size_t kMostAddresses = 8;

  /// Graph for the addresses of a caller; captured when they come for the second time.
  struct AddressedGraph {
    std::vector<cuda::Address> addresses;
    std::optional<Graph> graph = {};
  };

  /// A step that a profiler observes.
  struct Timed {
    std::size_t step = 0;
    Event begin, end;
  };

  const Device& device() const { return on_gpu_->device; }
  static bool is_small(const Value& value) {
    return value.bytes <= static_cast<std::int64_t>(HostTransfers::kSmall);
  }
  cuda::Address at(const runtime::Address& address) const {
    return memory_[address.value] +
           static_cast<cuda::Address>(address.offset + address.per_round * round());
  }

  /// Values in memory of the caller, and where they are on the GPU.
  template <class Pointer>
  std::vector<Transfer> transfers(const std::vector<ValueIndex>& list,
                                  std::span<Pointer const> host) const {
    std::vector<Transfer> made;
    for (std::size_t i = 0; i < list.size(); ++i) {
      const Value& value = program().values[list[i]];
      if (value.home == Home::Boxed) continue;
      made.push_back({.device = memory_[list[i]],
                      .host = const_cast<std::byte*>(host[i]),
                      .bytes = static_cast<std::size_t>(value.bytes)});
    }
    return made;
  }

  Expected<Done> execute(std::span<const std::byte* const> inputs,
                         std::span<std::byte* const> outputs) override {
    TESSERA_TRY_DONE(check_inputs(inputs));
    TESSERA_TRY_DONE(device().use());
    // Whatever fails, nothing uses memory of the caller any more.
    try {
      Expected<Done> done = send_run_fetch(inputs, outputs);
      if (!done) (void)stream_.wait();
      return done;
    } catch (const std::bad_alloc&) {
      (void)stream_.wait();
      throw;
    }
  }

  /// The transfers are no nodes of the graph: that of the inputs begins while the graph is being
  /// launched, and results have other addresses in each run.
  Expected<Done> send_run_fetch(std::span<const std::byte* const> inputs,
                                std::span<std::byte* const> outputs) {
    if (submitted_) TESSERA_TRY_DONE(stream_.wait_for(*submitted_));
    TESSERA_TRY_DONE(transfers_->send(stream_, transfers(program().inputs, inputs)));
    TESSERA_TRY_DONE(submit(graph_));
    return transfers_->fetch(stream_, transfers(program().outputs, outputs));
  }

  /// Submits all steps to the current stream: as a graph, captured if there is none yet, or one by
  /// one where a step needs the host.
  Expected<Done> submit(std::optional<Graph>& graph) {
    if (options().poison && program().arena_bytes > 0) {
      const std::vector<std::byte> ones(static_cast<std::size_t>(program().arena_bytes),
                                        std::byte{0xff});
      TESSERA_TRY_DONE(current_->send(own_.address(), ones));
      TESSERA_TRY_DONE(current_->wait());
    }
    if (options().observe) {
      timed_.clear();
      TESSERA_TRY_DONE(run_steps());
      return tell_times();
    }
    if (options().inspect || !is_graph_) return run_steps();
    if (!graph) TESSERA_TRY_DONE(capture(graph));
    return graph->launch(current_->get());
  }

  /// Captures in the session's own stream: the default stream of a caller allows no capture.
  Expected<Done> capture(std::optional<Graph>& graph) {
    const Stream* const submitted_to = std::exchange(current_, &stream_);
    auto captured = stream_.capture([&] { return run_steps(); });
    current_ = submitted_to;
    if (!captured) return std::move(captured).error();
    graph = *std::move(captured);
    return Done{};
  }

  /// Adds the steps to a graph that the caller captures. It may be launched at any time, so that it
  /// has an arena of its own and is not ordered with other runs. Indices are not checked: those out
  /// of range read zeros and write nothing.
  Expected<Done> add_to_capture() {
    if (needs_host_)
      return Diagnostic{.id = "cuda-capture",
                        .message = "the program cannot be captured in a CUDA graph",
                        .note = "some of its steps run on the host",
                        .help = "call it outside of the capture"};
    TESSERA_TRY(Memory arena, device().allocate(program().arena_bytes));
    for (std::size_t i = 0; i < memory_.size(); ++i)
      if (program().values[i].home == Home::Arena)
        memory_[i] = arena.address() + (memory_[i] - own_.address());
    captured_arenas_.push_back(std::move(arena));
    return run_steps();
  }

  Expected<Done> submit_on_device(const DeviceArguments& given) {
    if (submitted_) TESSERA_TRY_DONE(current_->wait_for(*submitted_));
    TESSERA_TRY_DONE(check_device_inputs());
    std::vector<cuda::Address> addresses(given.inputs.begin(), given.inputs.end());
    addresses.insert(addresses.end(), given.outputs.begin(), given.outputs.end());
    const auto found = std::ranges::find(graphs_, addresses, &AddressedGraph::addresses);
    const bool is_known = found != graphs_.end();
    if (is_known) {
      graphs_.splice(graphs_.begin(), graphs_, found);
    } else {
      graphs_.push_front({std::move(addresses)});
      if (graphs_.size() > kMostAddresses) {
        if (submitted_) TESSERA_TRY_DONE(submitted_->wait());  // the graph may be running
        graphs_.pop_back();
      }
    }
    const Expected<Done> done =
        is_known || !is_graph_ ? submit(graphs_.front().graph) : run_steps();
    // Also where a step failed: those before it are running.
    if (!submitted_) {
      TESSERA_TRY(submitted_, device().event());
    }
    TESSERA_TRY_DONE(submitted_->record(current_->get()));
    return done;
  }

  Expected<Done> check_addresses(const DeviceArguments& given) const {
    if (given.device != device().number())
      return Diagnostic{.id = "program-argument",
                        .message = fmt::format("the arguments are on GPU {}", given.device),
                        .note = fmt::format("the program is on GPU {}", device().number())};
    for (const auto& [list, addresses] : {std::pair(&program().inputs, given.inputs),
                                          std::pair(&program().outputs, given.outputs)}) {
      std::vector<const std::byte*> pointers;
      for (const std::uint64_t address : addresses)
        pointers.push_back(reinterpret_cast<const std::byte*>(address));
      TESSERA_TRY_DONE(check_memory(pointers, program(), *list));
    }
    return Done{};
  }

  Expected<Done> begin_step(std::size_t step) override {
    TESSERA_TRY(Event begin, device().event());
    TESSERA_TRY(Event end, device().event());
    timed_.push_back({step, std::move(begin), std::move(end)});
    return timed_.back().begin.record(current_->get());
  }
  Expected<Done> end_step(std::size_t) override {
    return timed_.back().end.record(current_->get());
  }
  Expected<Done> tell_times() {
    constexpr double kNanoseconds = 1e6;  // of a millisecond
    for (const Timed& timed : timed_) {
      TESSERA_TRY(const double begin, timed.begin.since(timed_.front().begin));
      TESSERA_TRY(const double took, timed.end.since(timed.begin));
      options().observe(timed.step, static_cast<std::int64_t>(begin * kNanoseconds),
                        static_cast<std::int64_t>((begin + took) * kNanoseconds));
    }
    return Done{};
  }

  Expected<Done> run_step(const step::Launch& launch, std::size_t) override {
    words_ = launch.words;
    for (const step::Launch::Patch& patch : launch.patches) words_[patch.word] = at(patch.at);
    return on_gpu_->functions[launch.kernel].launch({launch.grid, words_}, current_->get());
  }

  Expected<Done> run_step(const step::Copy& copy, std::size_t) override {
    return current_->copy(at(copy.to), at(copy.from), copy.bytes);
  }

  Expected<Done> run_step(const step::Swap&, std::size_t) override { return in_a_file(); }

  /// Inputs of the caller are checked by check_inputs; copying others to the host would cost more
  /// than the kernels.
  Expected<Done> run_step(const step::CheckIndices&, std::size_t) override { return Done{}; }

  /// Calls visit(step, check, input) for checks of indices that are inputs.
  template <class Visit>
  Expected<Done> each_index_input(Visit&& visit) const {
    for (std::size_t i = 0; i < program().steps.size(); ++i) {
      const auto* check = std::get_if<step::CheckIndices>(&program().steps[i]);
      if (check == nullptr || check->at.per_round != 0) continue;
      const Value& value = program().values[check->at.value];
      if (value.home == Home::Input) TESSERA_TRY_DONE(visit(i, *check, value));
    }
    return Done{};
  }

  Expected<Done> check_inputs(std::span<const std::byte* const> inputs) const {
    return each_index_input(
        [&](std::size_t step, const step::CheckIndices& check, const Value& input) {
          return check_indices(check, step,
                               inputs[static_cast<std::size_t>(input.offset)] + check.at.offset);
        });
  }

  /// The same for inputs in device memory: copies the indices to the host, and waits for them.
  Expected<Done> check_device_inputs() {
    return each_index_input([&](std::size_t step, const step::CheckIndices& check,
                                const Value& input) -> Expected<Done> {
      const auto bytes = static_cast<std::size_t>(input.bytes - check.at.offset);
      TESSERA_TRY(const Bytes indices, copy_of(check.at, bytes));
      return check_indices(check, step, indices.data());
    });
  }

  Expected<Bytes> read(ValueIndex value, std::size_t bytes, bool) override {
    return copy_of({.value = value}, bytes);
  }

  Expected<Done> write(ValueIndex value, std::span<const std::byte> from) override {
    TESSERA_TRY_DONE(current_->send(memory_[value], from));
    return current_->wait();
  }

  Expected<Bytes> copy_of(const runtime::Address& address, std::size_t bytes) override {
    Buffer buffer(bytes);
    TESSERA_TRY_DONE(current_->fetch({buffer.data(), bytes}, at(address)));
    TESSERA_TRY_DONE(current_->wait());
    return std::move(buffer).freeze();
  }

  std::shared_ptr<const GpuProgram> on_gpu_;
  Memory own_;  // the arena, inputs, outputs
  Stream stream_;
  const Stream* current_ = &stream_;  // the one that steps are submitted to
  std::optional<Event> submitted_;    // end of the last run in a stream of the caller
  std::optional<HostTransfers> transfers_;
  std::vector<cuda::Address> memory_;  // by value
  std::vector<std::uint64_t> words_;
  bool needs_host_ = false;              // some step does
  bool is_graph_ = false;                // all steps are one CUDA graph
  std::vector<Memory> captured_arenas_;  // of graphs that callers have captured
  std::optional<Graph> graph_;           // for memory of the session
  std::list<AddressedGraph> graphs_;     // for memory of callers, the most recently used first
  std::vector<Timed> timed_;
};

}  // namespace

Expected<std::unique_ptr<Session>> make_session(std::shared_ptr<const LoadedProgram> program,
                                                const SessionOptions& options) {
  if (program->program().swap_bytes > 0) return in_a_file();
  TESSERA_TRY(auto on_gpu, gpu_program(*program, options.cache));
  auto session = std::make_unique<GpuSession>(std::move(program), options, std::move(on_gpu));
  TESSERA_TRY_DONE(session->prepare());
  return std::unique_ptr<Session>(std::move(session));
}

std::optional<ThisGpu> this_gpu() {
  const auto device = Device::open();
  if (!device) return std::nullopt;
  return ThisGpu{.architecture = device->compute() == 90 ? "sm_90a" : "sm_80",
                 .multiprocessors = device->multiprocessors()};
}

}  // namespace tessera::runtime::cuda
