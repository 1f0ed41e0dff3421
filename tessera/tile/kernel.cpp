#include "tessera/tile/kernel.h"

#include <array>
#include <cstddef>

namespace tessera::tile {
namespace {

constexpr std::array<std::string_view, 36> kCodes = {
    "pid",   "npid",  "const",   "iota",   "broadcast", "reshape", "permute", "concat", "slice",
    "map",   "cast",  "bitcast", "reduce", "scan",      "gather",  "dot",     "offset", "load",
    "store", "view",  "dim",     "stride", "base",      "vload",   "vstore",  "atomic", "cas",
    "for",   "while", "if",      "yield",  "assume",    "hint",    "assert",  "print",  "barrier"};

struct FunctionRow {
  std::string_view name;
  int arity;
};

constexpr std::array<FunctionRow, 43> kFunctions = {{
    {"none", 0},     {"neg", 1},     {"abs", 1},     {"exp", 1},   {"exp2", 1},  {"log", 1},
    {"log2", 1},     {"sin", 1},     {"cos", 1},     {"tanh", 1},  {"erf", 1},   {"sqrt", 1},
    {"rsqrt", 1},    {"sigmoid", 1}, {"floor", 1},   {"ceil", 1},  {"round", 1}, {"not", 1},
    {"add", 2},      {"sub", 2},     {"mul", 2},     {"div", 2},   {"rem", 2},   {"min", 2},
    {"max", 2},      {"minimum", 2}, {"maximum", 2}, {"and", 2},   {"or", 2},    {"xor", 2},
    {"shl", 2},      {"shr", 2},     {"pow", 2},     {"mulhi", 2}, {"eq", 2},    {"ne", 2},
    {"lt", 2},       {"le", 2},      {"gt", 2},      {"ge", 2},    {"fma", 3},   {"select", 3},
    {"exchange", 2},
}};

}  // namespace

std::string_view to_string(Code code) {
  return kCodes[static_cast<std::size_t>(code)];
}

std::optional<Code> parse_code(std::string_view name) {
  for (std::size_t i = 0; i <= static_cast<std::size_t>(Code::Barrier); ++i) {
    if (kCodes[i] == name) return static_cast<Code>(i);
  }
  return {};
}

std::string_view to_string(Function function) {
  return kFunctions[static_cast<std::size_t>(function)].name;
}

std::optional<Function> parse_function(std::string_view name) {
  for (std::size_t i = 1; i < kFunctions.size(); ++i) {
    if (kFunctions[i].name == name) return static_cast<Function>(i);
  }
  return {};
}

int arity(Function function) {
  return kFunctions[static_cast<std::size_t>(function)].arity;
}

bool is_compare(Function function) {
  return function >= Function::Equal && function <= Function::GreaterEqual;
}

bool reads_memory(Code code) {
  return code == Code::Load || code == Code::Vload || code == Code::Atomic || code == Code::Cas;
}

bool writes_memory(Code code) {
  return code == Code::Store || code == Code::Vstore || code == Code::Atomic || code == Code::Cas;
}

bool has_effect(Code code) {
  switch (code) {
    case Code::Assume:
    case Code::Assert:
    case Code::Print:
    case Code::Barrier:
    case Code::Yield: return true;
    default: return writes_memory(code);
  }
}

std::vector<std::optional<OpId>> definitions(const Kernel& kernel) {
  std::vector<std::optional<OpId>> definition(kernel.values.size());
  for_each_op(kernel, kernel.body, [&](OpId id) {
    for (const ValueId out : kernel.ops[id].out) definition[out] = id;
  });
  return definition;
}

std::vector<int> uses(const Kernel& kernel) {
  std::vector<int> count(kernel.values.size(), 0);
  for_each_op(kernel, kernel.body, [&](OpId id) {
    for (const ValueId in : kernel.ops[id].in) ++count[in];
  });
  return count;
}

}  // namespace tessera::tile
