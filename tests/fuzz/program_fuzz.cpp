#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "tessera/runtime/plan.h"
#include "tessera/runtime/program_file.h"
#include "tessera/runtime/session.h"
#include "tessera/support/hash.h"
#include "tests/fuzz/fuzz.h"

using namespace tessera;

namespace {

constexpr std::int64_t kSmall = 1 << 20;
constexpr int kMostSteps = 1000;

struct TooLong : std::exception {};

/// The checksums of a file made right, as far as there are any: what lies behind them is looked at.
Bytes resealed(const Bytes& file) {
  constexpr std::size_t kSections = 16, kSection = 24, kChecksum = 88;
  if (file.size() < kChecksum + 8) return file;
  Buffer buffer(file.size());
  std::memcpy(buffer.data(), file.data(), file.size());
  const auto seal = [&](std::size_t at, std::span<const std::byte> bytes) {
    Hasher hasher;
    hasher.add_bytes(bytes);
    const std::uint64_t checksum = hasher.value();
    std::memcpy(buffer.data() + at, &checksum, sizeof checksum);
  };
  for (std::size_t at = kSections; at < kChecksum; at += kSection) {
    std::uint64_t place[2];
    std::memcpy(place, buffer.data() + at, sizeof place);
    if (place[0] <= file.size() && place[1] <= file.size() - place[0])
      seal(at + sizeof place, file.view().subspan(place[0], place[1]));
  }
  seal(kChecksum, {buffer.data(), kChecksum});
  return std::move(buffer).freeze();
}

/// Runs a program that has no machine code: what is checked stays in its memory.
void run(runtime::Program program) {
  std::int64_t bytes = program.arena_bytes + program.swap_bytes;
  for (const runtime::Value& value : program.values) bytes = std::max(bytes, value.bytes);
  const bool has_code = std::ranges::any_of(program.steps, [](const runtime::Step& step) {
    return std::holds_alternative<runtime::step::Launch>(step);
  });
  // What is for a GPU needs one, even without code.
  if (has_code || program.is_for_gpu() || bytes > kSmall || program.values.size() > 64) return;
  program.kernels.clear();
  const auto loaded = runtime::LoadedProgram::load(std::move(program));
  fuzz::require(loaded, "what was checked and has no code is loaded");
  int steps = 0;
  auto session = runtime::Session::create(
      *loaded, {.host = [](const std::string&,
                           std::span<const Datum> inputs) -> Expected<std::vector<Datum>> {
                  return std::vector<Datum>(inputs.begin(), inputs.end());
                },
                .swap_folder = std::filesystem::temp_directory_path(),
                .observe =
                    [&](std::size_t, std::int64_t, std::int64_t) {
                      if (++steps > kMostSteps) throw TooLong();
                    }});
  fuzz::require(session, "a small program gets its memory");
  std::vector<Datum> inputs;
  for (const runtime::ValueIndex index : (*loaded)->program().inputs) {
    const runtime::Value& value = (*loaded)->program().values[index];
    if (value.home == runtime::Value::Home::Boxed) {
      inputs.emplace_back();
      continue;
    }
    Buffer buffer(static_cast<std::size_t>(value.bytes));
    inputs.emplace_back(Tensor{value.dtype, value.shape, std::move(buffer).freeze()});
  }
  try {
    (void)(*session)->run(inputs);
  } catch (const TooLong&) {
    // A loop that never ends is no finding.
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Bytes file = fuzz::bytes_of(data, size);
  (void)runtime::parse_program(file, "fuzz.tsr");
  const auto program = runtime::parse_program(resealed(file), "fuzz.tsr");
  if (!program) return 0;
  const std::string plan = runtime::encode_plan(*program);
  const auto again = runtime::decode_plan(std::as_bytes(std::span(plan)));
  fuzz::require(again, "what is written can be read");
  fuzz::require(runtime::encode_plan(*again) == plan, "what is read is what was written");
  run(*program);
  return 0;
}
