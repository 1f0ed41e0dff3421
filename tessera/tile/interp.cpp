#include "tessera/tile/interp.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tessera/tile/interp_compute.h"
#include "tessera/tile/interp_memory.h"
#include "tessera/tile/interp_tile.h"
#include "tessera/tile/interp_value.h"
#include "tessera/tile/type_check.h"
#include "tessera/tile/verify.h"

namespace tessera::tile {
namespace interp {
namespace {

constexpr std::int64_t kMostPrinted = 64;  // elements of a tile

/// Liveness: for each operation, the values that are dead after it.
std::vector<std::vector<ValueId>> last_uses(const Kernel& kernel) {
  std::vector<std::optional<OpId>> last(kernel.values.size());
  std::vector<std::size_t> depth(kernel.values.size(), 0);
  std::vector<OpId> open;  // the current operation at each depth
  const auto walk = [&](const Region& region, const auto& self) -> void {
    const std::size_t here = open.size();
    open.push_back(0);
    for (const ValueId id : region.params) depth[id] = here;
    for (const OpId id : region.ops) {
      const Operation& op = kernel.ops[id];
      open.back() = id;
      for (const ValueId in : op.in) last[in] = open[depth[in]];
      for (const Region& inner : op.regions) self(inner, self);
      for (const ValueId out : op.out) {
        depth[out] = here;
        last[out] = id;
      }
    }
    open.pop_back();
  };
  walk(kernel.body, walk);
  std::vector<std::vector<ValueId>> drops(kernel.ops.size());
  for (std::size_t id = 0; id < last.size(); ++id)
    if (last[id]) drops[*last[id]].push_back(static_cast<ValueId>(id));
  return drops;
}

std::string printed(const Type& type, const Datum& datum) {
  return with_type(type.dtype, [&]<class T>(T) {
    std::string text;
    for (std::int64_t i = 0; i < std::min(type.count(), kMostPrinted); ++i)
      text += fmt::format("{}{}", i > 0 ? ", " : "", loaded(datum.as<T>()[i]));
    if (type.count() > kMostPrinted) text += ", …";
    return type.is_scalar() ? text : "[" + text + "]";
  });
}

class Machine {
 public:
  Machine(const Kernel& kernel, std::span<const Argument> arguments, const Grid& grid,
          const InterpOptions& options)
      : kernel_(kernel),
        arguments_(arguments),
        memory_(arguments),
        grid_(grid),
        options_(options),
        drops_(last_uses(kernel)),
        values_(kernel.values.size()) {}

  Expected<Done> run() {
    for (pid_[2] = 0; pid_[2] < grid_[2]; ++pid_[2]) {
      for (pid_[1] = 0; pid_[1] < grid_[1]; ++pid_[1]) {
        for (pid_[0] = 0; pid_[0] < grid_[0]; ++pid_[0]) {
          TESSERA_TRY_DONE(step({}));
          bind_arguments();
          TESSERA_TRY_DONE(run(kernel_.body));
        }
      }
    }
    return Done{};
  }

 private:
  const Type& type(ValueId id) const { return kernel_.type(id); }
  const Datum& in(const Operation& op, std::size_t i) const { return values_[op.in[i]]; }
  static std::size_t axis(const Operation& op) { return static_cast<std::size_t>(op.ints[0]); }
  bool truth(ValueId id) const { return values_[id].as<Truth>()->bits != 0; }
  std::int64_t integer(ValueId id) const {
    const Datum& datum = values_[id];
    return type(id).dtype == DType::I32 ? *datum.as<std::int32_t>() : *datum.as<std::int64_t>();
  }

  void set(ValueId id, Datum datum) {
    live_ += datum.size() - values_[id].size();
    values_[id] = std::move(datum);
  }

  void bind_arguments() {
    for (std::size_t i = 0; i < arguments_.size(); ++i) {
      const Argument& argument = arguments_[i];
      const Address start{static_cast<std::int64_t>(i), 0};
      Datum datum;
      if (argument.type.is_view()) {
        datum = Datum(Window{start, argument.type.shape, argument.type.strides});
      } else if (argument.type.is_pointer()) {
        datum = Datum::scalar(start);
      } else {
        datum = Datum(byte_width(argument.type.dtype));
        fill(argument.type.dtype, argument.literal, 1, datum.bytes());
      }
      set(kernel_.params()[i], std::move(datum));
    }
  }

  Diagnostic wrong(const Source& source, std::string id, std::string message,
                   std::string note) const {
    return {.id = std::move(id),
            .where = located_source(source),
            .message = std::move(message),
            .note = std::move(note)};
  }
  Diagnostic::Where located_source(const Source& source) const {
    Diagnostic::Where where = place_of(source);
    if (where.file.empty()) where.file = kernel_.name;
    return where;
  }

  Expected<Done> step(const Source& source) {
    if (++steps_ <= options_.most_steps) return Done{};
    return wrong(source, "tile-steps",
                 fmt::format("more than {} operations are executed", options_.most_steps),
                 fmt::format("in program {}", fmt::join(pid_, ", ")));
  }

  Expected<Done> run(const Region& region) {
    for (const OpId id : region.ops) {
      const Operation& op = kernel_.ops[id];
      TESSERA_TRY_DONE(step(op.source));
      TESSERA_TRY_DONE(execute(op));
      for (const ValueId dropped : drops_[id]) set(dropped, {});
    }
    return Done{};
  }

  /// Runs a region on the given values and returns what it yields.
  Expected<std::vector<Datum>> call(const Region& region, std::vector<Datum> given) {
    for (std::size_t i = 0; i < given.size(); ++i) set(region.params[i], std::move(given[i]));
    TESSERA_TRY_DONE(run(region));
    return std::move(yielded_);
  }

  std::vector<Datum> copies(std::span<const ValueId> ids) const {
    std::vector<Datum> data;
    for (const ValueId id : ids) data.push_back(values_[id]);
    return data;
  }

  Expected<Done> execute(const Operation& op) {
    switch (op.code) {
      case Code::Pid: set(op.out[0], Datum::scalar(pid_[axis(op)])); return Done{};
      case Code::Npid: set(op.out[0], Datum::scalar(grid_[axis(op)])); return Done{};
      case Code::For: return execute_for(op);
      case Code::While: return execute_while(op);
      case Code::If: return execute_if(op);
      case Code::Yield: yielded_ = copies(op.in); return Done{};
      case Code::Reduce:
      case Code::Scan:
        if (op.function == Function::None) return execute_combining(op);
        break;
      case Code::View: set(op.out[0], view(op)); return Done{};
      case Code::Hint: set(op.out[0], in(op, 0)); return Done{};
      case Code::Assume:
        return hold(op, "an assumption does not hold", "what is assumed is true in every program");
      case Code::Assert:
        return hold(op, op.text.empty() ? "an assertion does not hold" : op.text, "");
      case Code::Print: print(op); return Done{};
      case Code::Barrier: return Done{};
      default: break;
    }
    TESSERA_TRY_DONE(reserve(op));
    if (op.out.empty()) return access(op, nullptr);
    Datum out(bytes_of(op.out[0]));
    if (reads_memory(op.code)) {
      TESSERA_TRY_DONE(access(op, out.bytes()));
    } else if (op.code == Code::Gather) {
      TESSERA_TRY_DONE(gather(op, out.bytes()));
    } else if (op.code == Code::Bitcast &&
               type(op.in[0]).is_pointer() != type(op.out[0]).is_pointer()) {
      convert_addresses(op, out);
    } else {
      compute(kernel_, values_, op, out);
    }
    set(op.out[0], std::move(out));
    return Done{};
  }

  /// Pointers to and from the addresses of this process. An address outside of every argument
  /// becomes a pointer that no access may use.
  void convert_addresses(const Operation& op, Datum& out) const {
    for (std::int64_t i = 0; i < type(op.in[0]).count(); ++i) {
      if (type(op.in[0]).is_pointer()) {
        const Address at = in(op, 0).as<Address>()[i];
        const std::byte* data = arguments_[static_cast<std::size_t>(at.argument)].data;
        out.as<std::uint64_t>()[i] =
            reinterpret_cast<std::uintptr_t>(data) + static_cast<std::uint64_t>(at.offset);
        continue;
      }
      const std::uint64_t address = in(op, 0).as<std::uint64_t>()[i];
      Address found{0, -1};
      for (std::size_t k = 0; k < arguments_.size(); ++k) {
        const auto first = reinterpret_cast<std::uintptr_t>(arguments_[k].data);
        const auto bytes = static_cast<std::uint64_t>(arguments_[k].bytes);
        if (address - first < bytes)
          found = {static_cast<std::int64_t>(k), static_cast<std::int64_t>(address - first)};
      }
      out.as<Address>()[i] = found;
    }
  }

  std::int64_t bytes_of(ValueId id) const { return type(id).count() * element_bytes(type(id)); }

  /// Checks the memory limit for the results of an operation.
  Expected<Done> reserve(const Operation& op) const {
    std::int64_t bytes = live_;
    for (const ValueId id : op.out) bytes += bytes_of(id);
    if (bytes <= options_.most_bytes) return Done{};
    return wrong(op.source, "tile-memory", fmt::format("{} bytes of tiles", bytes),
                 fmt::format("{} at once at most", options_.most_bytes));
  }

  Datum view(const Operation& op) const {
    const Type& view = type(op.out[0]);
    Window window{*in(op, 0).as<Address>(), view.shape, view.strides};
    std::size_t next = 1;
    for (Extents* list : {&window.shape, &window.strides}) {
      for (std::int64_t& number : *list)
        if (number == kDynamic) number = integer(op.in[next++]);
    }
    return Datum(std::move(window));
  }

  Expected<Done> execute_for(const Operation& op) {
    const std::int64_t from = integer(op.in[0]), to = integer(op.in[1]), by = integer(op.in[2]);
    std::vector<Datum> carried = copies(std::span(op.in).subspan(3));
    for (std::int64_t i = from; by > 0 && i < to;) {
      std::vector<Datum> given;
      given.push_back(type(op.in[0]).dtype == DType::I32
                          ? Datum::scalar(static_cast<std::int32_t>(i))
                          : Datum::scalar(i));
      std::move(carried.begin(), carried.end(), std::back_inserter(given));
      TESSERA_TRY(carried, call(op.regions[0], std::move(given)));
      if (__builtin_add_overflow(i, by, &i)) break;
    }
    return hand_over(op, std::move(carried));
  }

  Expected<Done> execute_while(const Operation& op) {
    std::vector<Datum> carried = copies(op.in);
    while (true) {
      TESSERA_TRY(const std::vector<Datum> condition, call(op.regions[0], carried));
      if (condition[0].as<Truth>()->bits == 0) break;
      TESSERA_TRY(carried, call(op.regions[1], std::move(carried)));
    }
    return hand_over(op, std::move(carried));
  }

  Expected<Done> execute_if(const Operation& op) {
    TESSERA_TRY(std::vector<Datum> results, call(op.regions[truth(op.in[0]) ? 0 : 1], {}));
    return hand_over(op, std::move(results));
  }

  Expected<Done> hand_over(const Operation& op, std::vector<Datum> results) {
    for (std::size_t i = 0; i < results.size(); ++i) set(op.out[i], std::move(results[i]));
    return Done{};
  }

  /// Reduce or scan by a region: from the first element on (a reverse scan: from the last), the
  /// accumulator is on the left and the next element on the right.
  Expected<Done> execute_combining(const Operation& op) {
    TESSERA_TRY_DONE(reserve(op));
    const Along along(type(op.in[0]).shape, op.ints[0]);
    const bool scans = op.code == Code::Scan, reverse = scans && op.ints[1] != 0;
    const std::size_t tiles = op.in.size();
    std::vector<Datum> results;
    std::vector<std::int64_t> widths;
    for (const ValueId id : op.out) {
      widths.push_back(byte_width(type(id).dtype));
      results.emplace_back(type(id).count() * widths.back());
    }
    const auto element = [&](std::size_t tile, std::int64_t position) {
      Datum scalar(widths[tile]);
      std::memcpy(scalar.bytes(), in(op, tile).bytes() + position * widths[tile],
                  static_cast<std::size_t>(widths[tile]));
      return scalar;
    };
    const auto put = [&](const std::vector<Datum>& scalars, std::int64_t position) {
      for (std::size_t tile = 0; tile < tiles; ++tile)
        std::memcpy(results[tile].bytes() + position * widths[tile], scalars[tile].bytes(),
                    static_cast<std::size_t>(widths[tile]));
    };
    for (std::int64_t row = 0; row < along.outer * along.inner; ++row) {
      const std::int64_t start = row / along.inner * along.extent * along.inner + row % along.inner;
      std::vector<Datum> total;
      for (std::int64_t k = 0; k < along.extent; ++k) {
        const std::int64_t position = start + (reverse ? along.extent - 1 - k : k) * along.inner;
        for (std::size_t tile = 0; tile < tiles; ++tile) total.push_back(element(tile, position));
        if (k > 0) {
          TESSERA_TRY(total, call(op.regions[0], std::move(total)));
        }
        if (scans) put(total, position);
      }
      if (!scans) put(total, row);
    }
    return hand_over(op, std::move(results));
  }

  Expected<Done> gather(const Operation& op, std::byte* out) const {
    const Type &x = type(op.in[0]), &index = type(op.in[1]);
    const Along from(x.shape, op.ints[0]), to(index.shape, op.ints[0]);
    const auto outside = interp::gather(byte_width(x.dtype), from, in(op, 0).bytes(), to,
                                        as_i64(index, in(op, 1)).as<std::int64_t>(), out);
    if (!outside) return Done{};
    return wrong(op.source, "tile-out-of-bounds", fmt::format("a gather at index {}", *outside),
                 fmt::format("indices from 0 to {}", from.extent - 1));
  }

  Expected<Done> access(const Operation& op, std::byte* out) const {
    if (op.code == Code::Vload || op.code == Code::Vstore) return access_view(op, out);
    const Type& pointers = type(op.in[0]);
    const std::size_t mask = op.code == Code::Load ? 1 : 2;
    const bool masked = op.code != Code::Cas && op.in.size() > mask;
    const Pointers at{pointers.dtype, pointers.count(), in(op, 0).as<Address>(),
                      masked ? in(op, mask).as<Truth>() : nullptr};
    if (out) {
      const bool other = op.code == Code::Load && op.in.size() > 2;
      const auto bytes = static_cast<std::size_t>(at.count * byte_width(at.dtype));
      if (other)
        std::memcpy(out, in(op, 2).bytes(), bytes);
      else
        std::memset(out, 0, bytes);
    }
    switch (op.code) {
      case Code::Load: return checked(op, memory_.load(at, out));
      case Code::Store: return checked(op, memory_.store(at, in(op, 1).bytes()));
      case Code::Atomic:
        return checked(op, memory_.atomic(op.function, at, in(op, 1).bytes(), out));
      default:
        return checked(op, memory_.compare_and_swap(at, in(op, 1).bytes(), in(op, 2).bytes(), out));
    }
  }

  Expected<Done> access_view(const Operation& op, std::byte* out) const {
    const Window& window = in(op, 0).window();
    const Type& tile = type(out ? op.out[0] : op.in.back());
    Extents at;
    for (std::size_t i = 0; i < window.shape.size(); ++i) {
      at.push_back(integer(op.in[i + 1]));
      const bool promised = !op.ints.empty() && op.ints[i] != 0;
      if (promised && (at[i] < 0 || at[i] > window.shape[i] - tile.shape[i])) {
        return wrong(op.source, "tile-out-of-bounds",
                     fmt::format("a tile of extent {} at {} along axis {} of a view of extent {}",
                                 tile.shape[i], at[i], i, window.shape[i]),
                     "the access is marked as one that never leaves the view");
      }
    }
    const Memory::Part part{window, at, tile};
    if (!out) return checked(op, memory_.store(part, values_[op.in.back()].bytes()));
    fill(tile.dtype, op.literal, tile.count(), out);
    return checked(op, memory_.load(part, out));
  }

  Expected<Done> checked(const Operation& op, const Access& fault) const {
    if (!fault) return Done{};
    const auto argument = static_cast<std::size_t>(fault->argument);
    const std::string& name = kernel_.values[kernel_.params()[argument]].name;
    return wrong(op.source, "tile-out-of-bounds",
                 fmt::format("a {} at byte {} of argument {}", to_string(op.code), fault->offset,
                             name.empty() ? fmt::format("{}", argument) : name),
                 fmt::format("it has {} bytes; this is program {}", arguments_[argument].bytes,
                             fmt::join(pid_, ", ")));
  }

  Expected<Done> hold(const Operation& op, std::string message, std::string note) const {
    const Truth* truths = in(op, 0).as<Truth>();
    const bool all =
        std::all_of(truths, truths + in(op, 0).size(), [](Truth truth) { return truth.bits != 0; });
    if (all) return Done{};
    if (note.empty()) note = fmt::format("in program {}", fmt::join(pid_, ", "));
    return wrong(op.source, "tile-assertion", std::move(message), std::move(note));
  }

  void print(const Operation& op) const {
    if (!options_.print) return;
    std::string line = fmt::format("({}) {}", fmt::join(pid_, ", "), op.text);
    for (const ValueId id : op.in) line += " " + printed(type(id), values_[id]);
    options_.print(line);
  }

  const Kernel& kernel_;
  std::span<const Argument> arguments_;
  Memory memory_;
  Grid grid_, pid_ = {};
  const InterpOptions& options_;
  std::vector<std::vector<ValueId>> drops_;
  std::vector<Datum> values_;
  std::vector<Datum> yielded_;
  std::int64_t live_ = 0, steps_ = 0;
};

}  // namespace
}  // namespace interp

Expected<Done> interpret(const Kernel& kernel, std::span<const Argument> arguments,
                         const Grid& grid, const InterpOptions& options) {
  TESSERA_TRY_DONE(verify(kernel));
  TESSERA_TRY_DONE(check_arguments(kernel, arguments, grid));
  return interp::Machine(kernel, arguments, grid, options).run();
}

}  // namespace tessera::tile
