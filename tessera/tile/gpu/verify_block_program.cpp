#include "tessera/tile/gpu/verify_block_program.h"

#include <fmt/format.h>

#include "tessera/tile/gpu/block_program_fields.h"

namespace tessera::tile::gpu {
namespace {

/// Visitor of the fields of all instructions, which keeps the first mistake.
class FieldVerifier {
 public:
  FieldVerifier(const BlockProgram& program, const Kernel& kernel)
      : program_(program), kernel_(kernel) {}

  template <class T>
  void operator()(std::string_view name, const T& x) {
    check(name, x);
  }
  template <class T>
  void op(std::string_view name, const T& x) {
    check_numbers(name, x, kernel_.ops.size());
  }
  template <class T>
  void value(std::string_view name, const T& x) {
    check_numbers(name, x, kernel_.values.size());
  }
  void check(std::string_view /*name*/, const Body& body) {
    for (const Instruction& instruction : body)
      std::visit([&](const auto& one) { fields(one, *this); },
                 static_cast<const AnyInstruction&>(instruction));
  }

  Expected<Done> result() const {
    if (mistake_.empty()) return Done{};
    return Diagnostic{
        .id = "tile-structure", .where = {.file = {}, .item = kernel_.name}, .message = mistake_};
  }

 private:
  void fail(std::string mistake) {
    if (mistake_.empty()) mistake_ = std::move(mistake);
  }
  void check_room(std::string_view name, std::int64_t offset, std::int64_t bytes) {
    if (offset < 0 || bytes < 0 || offset + bytes > program_.shared.bytes)
      fail(fmt::format("{}: {} bytes at {} of {} bytes of shared memory", name, bytes, offset,
                       program_.shared.bytes));
  }

  void check_numbers(std::string_view name, std::uint32_t x, std::size_t count) {
    if (x >= count) fail(fmt::format("{}: there is no number {}", name, x));
  }
  template <class T>
  void check_numbers(std::string_view name, const std::optional<T>& x, std::size_t count) {
    if (x) check_numbers(name, *x, count);
  }
  template <class T>
  void check_numbers(std::string_view name, const std::pair<OpId, T>& x, std::size_t count) {
    check_numbers(name, x.first, count);
    if constexpr (std::same_as<T, OpId>) check_numbers(name, x.second, count);
  }
  template <class T>
  requires requires(const T& x) { x.begin(); }
  void check_numbers(std::string_view name, const T& all, std::size_t count) {
    for (const auto& one : all) check_numbers(name, one, count);
  }

  void check(std::string_view name, const Fragment& fragment) {
    if (fragment.value >= kernel_.values.size())
      return fail(fmt::format("{}: there is no value {}", name, fragment.value));
    const Type& type = kernel_.type(fragment.value);
    const int rank = fragment.layout ? fragment.layout->rank() : 0;
    if (rank != (type.is_scalar() ? 0 : type.rank()))
      fail(fmt::format("{}: a layout of {} axes for value {}", name, rank, fragment.value));
  }
  void check(std::string_view name, const SharedTile& tile) {
    check_room(name, tile.offset, tile.bytes());
  }
  void check(std::string_view name, const DotBuffer& buffer) {
    check_room(name, buffer.offset, buffer.panels.bytes());
  }
  void check(std::string_view name, const Stages& stages) {
    check_room(name, stages.offset, stages.count * stages.pipeline.bytes);
    fields(stages, *this);
  }
  void check(std::string_view name, const TilePipeline& pipeline) {
    if (pipeline.loads.empty()) return fail(fmt::format("{}: no loads", name));
    check_room(name, pipeline.offset, pipeline.count * pipeline.stage_bytes());
    fields(pipeline, *this);
  }
  void check(std::string_view name, const PrefetchBuffer& buffer) {
    check_room(name, buffer.offset, buffer.slot);
  }
  template <class T>
  void check(std::string_view name, const std::optional<T>& x) {
    if (x) check(name, *x);
  }
  template <class T>
  void check(std::string_view name, const std::vector<T>& all) {
    for (const auto& one : all) check(name, one);
  }
  template <class T>
  void check(std::string_view /*name*/, const T& x) {
    if constexpr (requires { fields(x, *this); }) fields(x, *this);
  }

  const BlockProgram& program_;
  const Kernel& kernel_;
  std::string mistake_;
};

}  // namespace

Expected<Done> verify(const BlockProgram& program, const Kernel& kernel) {
  FieldVerifier verifier(program, kernel);
  verifier.check("body", program.body);
  return verifier.result();
}

}  // namespace tessera::tile::gpu
