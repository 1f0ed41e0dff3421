#include "tessera/driver/kernel_space.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "tessera/support/digest.h"
#include "tessera/support/lexer.h"
#include "tessera/support/tensor.h"
#include "tessera/tile/text.h"

namespace tessera {
namespace {

/// Octaves around the default of a constant, and the most variants of a kernel: with many constants
/// the space has fewer octaves.
constexpr int kOctaves = 4;
constexpr std::size_t kMostVariants = 1024;
/// Expected loss per octave of distance from the defaults, which are where the search begins.
constexpr double kLossPerOctave = 0.02;

std::set<std::string> given_names(const std::vector<std::string>& arguments) {
  std::set<std::string> names;
  for (const std::string& argument : arguments)
    names.insert(argument.substr(0, argument.find('=')));
  return names;
}

/// Values of a constant: the default first, then its powers of two by distance.
std::vector<std::int64_t> values_around(std::int64_t usual, int octaves) {
  constexpr std::int64_t kMost = std::int64_t{1} << 16;
  std::vector<std::int64_t> values = {usual};
  for (int octave = 1; octave <= octaves; ++octave) {
    if (usual <= kMost >> octave) values.push_back(usual << octave);
    if (usual >> octave >= 1 && usual >> octave << octave == usual)
      values.push_back(usual >> octave);
  }
  return values;
}

/// Octaves for which all combinations of this many constants fit into a space.
int octaves_for(std::size_t constants) {
  int octaves = kOctaves;
  while (octaves > 1 &&
         std::pow(2 * octaves + 1, static_cast<double>(constants)) > double{kMostVariants})
    --octaves;
  return octaves;
}

bool same_parameters(const tile::Kernel& a, const tile::Kernel& b) {
  return std::ranges::equal(a.params(), b.params(), [&](tile::ValueId x, tile::ValueId y) {
    return a.type(x) == b.type(y);
  });
}

std::int64_t largest_tile(const tile::Kernel& kernel) {
  std::int64_t most = 0;
  for (const tile::Value& value : kernel.values)
    if (value.type.is_tile())
      most = std::max(most,
                      element_count(value.type.shape).value_or(0) * byte_width(value.type.dtype));
  return most;
}

}  // namespace

Expected<KernelVariant> kernel_variant(const KernelText& source, const KernelData& data,
                                       const std::vector<tile::Constant>& values) {
  KernelVariant variant;
  TESSERA_TRY(variant.kernel, tile::parse_kernel(source.text, source.file, values));
  variant.constants = variant.kernel.constants;
  if (!source.grid.empty()) {
    TESSERA_TRY(variant.grid, parse_grid(source.grid, variant.kernel, data));
  }
  return variant;
}

Expected<KernelTask> kernel_task(const KernelText& source, const KernelData& data,
                                 const machine::Machine& machine) {
  TESSERA_TRY(const std::vector<tile::Constant> given, constants_of(source.arguments));
  TESSERA_TRY(const KernelVariant usual, kernel_variant(source, data, given));
  const std::set<std::string> fixed = given_names(source.arguments);
  const auto is_fixed = [&](const tile::Constant& one) { return fixed.contains(one.name); };
  const auto free = usual.constants.size() -
                    static_cast<std::size_t>(std::ranges::count_if(usual.constants, is_fixed));
  if (free == 0)
    return Diagnostic{.id = "kernel-constants",
                      .message = fmt::format("{} has no constants to tune", usual.kernel.name),
                      .note = "constants that are given as arguments are not tuned",
                      .help = "declare tile sizes as constants: BLOCK: const = 1024"};
  std::vector<std::vector<tile::Constant>> combinations = {{}};
  for (const tile::Constant& one : usual.constants) {
    const auto values =
        is_fixed(one) ? std::vector{one.value} : values_around(one.value, octaves_for(free));
    std::vector<std::vector<tile::Constant>> longer;
    for (const auto& begin : combinations)
      for (const std::int64_t value : values) {
        longer.push_back(begin);
        longer.back().push_back({one.name, value});
      }
    combinations = std::move(longer);
  }
  KernelTask task;
  task.key = kernel_key(source);
  task.what = usual.kernel.name;
  constexpr std::int64_t kRegisterBytes = 256 << 10;  // of a multiprocessor
  const std::int64_t room = machine.is_gpu() ? kRegisterBytes : machine.l2;
  const std::int64_t most = std::max(room, largest_tile(usual.kernel));
  for (const auto& constants : combinations) {  // the defaults are first
    auto variant = kernel_variant(source, data, constants);
    if (!variant || !same_parameters(variant->kernel, usual.kernel) ||
        largest_tile(variant->kernel) > most)
      continue;
    tune::Candidate candidate{.schedule = constants_text(constants), .point = {0}};
    double octaves = 0;
    for (std::size_t i = 0; i < constants.size(); ++i) {
      candidate.point.push_back(std::log2(static_cast<double>(constants[i].value)));
      octaves += std::fabs(candidate.point.back() -
                           std::log2(static_cast<double>(usual.constants[i].value)));
    }
    task.space.push_back(std::move(candidate));
    task.predicted.push_back(kLossPerOctave * octaves);
    task.variants.push_back(*std::move(variant));
  }
  return task;
}

std::string constants_text(const std::vector<tile::Constant>& constants) {
  std::string text = "constants";
  for (const tile::Constant& one : constants)
    text += fmt::format(" {}={}", name_text(one.name), one.value);
  return text;
}

Expected<std::vector<tile::Constant>> parse_constants(std::string_view text) {
  Lexer lexer(text);
  TESSERA_TRY_DONE(lexer.expect("constants"));
  std::vector<tile::Constant> constants;
  while (!lexer.end()) {
    tile::Constant& one = constants.emplace_back();
    TESSERA_TRY(one.name, lexer.name("the name of a constant"));
    TESSERA_TRY_DONE(lexer.expect("="));
    TESSERA_TRY(one.value, lexer.integer("the value of a constant"));
  }
  return constants;
}

std::string kernel_key(const KernelText& source) {
  std::vector<std::string> arguments = source.arguments;
  std::ranges::sort(arguments);
  std::string all = source.text;
  for (const std::string& argument : arguments) all += '\0' + argument;
  return digest(all + '\0' + source.grid);
}

}  // namespace tessera
