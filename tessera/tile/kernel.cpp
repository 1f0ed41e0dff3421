#include "tessera/tile/kernel.h"

#include <array>
#include <cstddef>

#include "tessera/tile/function.h"

namespace tessera::tile {
namespace {

constexpr std::array<std::string_view, 36> kCodes = {
    "pid",   "npid",  "const",   "iota",   "broadcast", "reshape", "permute", "concat", "slice",
    "map",   "cast",  "bitcast", "reduce", "scan",      "gather",  "dot",     "offset", "load",
    "store", "view",  "dim",     "stride", "base",      "vload",   "vstore",  "atomic", "cas",
    "for",   "while", "if",      "yield",  "assume",    "hint",    "assert",  "print",  "barrier"};

constexpr std::array<std::string_view, 4> kProducers = {"auto", "none", "async", "tma"};

constexpr bool functions_in_order() {
  for (std::size_t i = 0; i < kFunctionInfos.size(); ++i)
    if (static_cast<std::size_t>(kFunctionInfos[i].function) != i) return false;
  return true;
}
static_assert(functions_in_order());

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
  return info_of(function).name;
}

std::optional<Function> parse_function(std::string_view name) {
  for (const FunctionInfo& info : kFunctionInfos) {
    if (info.name == name && info.function != Function::None) return info.function;
  }
  return {};
}

std::string_view to_string(BlockRequest::Producers producers) {
  return kProducers[static_cast<std::size_t>(producers)];
}

std::optional<BlockRequest::Producers> parse_producers(std::string_view name) {
  for (std::size_t i = 0; i < kProducers.size(); ++i)
    if (kProducers[i] == name) return static_cast<BlockRequest::Producers>(i);
  return {};
}

int arity(Function function) {
  return info_of(function).arity;
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
