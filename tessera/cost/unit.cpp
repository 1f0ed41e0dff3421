#include "tessera/cost/unit.h"

#include <fmt/format.h>

#include "tessera/program/lowerings.h"
#include "tessera/support/digest.h"

namespace tessera::cost {

using runtime::ValueIndex;

std::string kind_of(const std::string& strategy) {
  return strategy.substr(0, strategy.find_first_of(" ,:"));
}

std::vector<Unit> units_of(const runtime::Program& program, const program::CompileReport& report) {
  const auto bytes_of = [&](const std::vector<ValueIndex>& values) {
    double bytes = 0;
    for (const ValueIndex value : values) bytes += static_cast<double>(program.values[value].bytes);
    return bytes;
  };
  struct Loop {
    std::size_t end;
    double trip_count;  // including the enclosing loops
  };
  std::vector<Loop> loops;
  std::vector<Unit> units;
  for (std::size_t i = 0; i < program.steps.size();) {
    while (!loops.empty() && loops.back().end <= i) loops.pop_back();
    const double trip_count = loops.empty() ? 1 : loops.back().trip_count;
    const program::CompileReport::Step& step = report.steps[i];
    Unit unit{.first = i, .what = step.what, .strategy = step.strategy, .trip_count = trip_count};
    if (const auto* loop = std::get_if<runtime::step::Loop>(&program.steps[i])) {
      loops.push_back({loop->end, trip_count * static_cast<double>(loop->rounds)});
      ++i;
      continue;
    }
    if (std::holds_alternative<runtime::step::CheckIndices>(program.steps[i])) {
      ++i;  // next to nothing
      continue;
    }
    if (step.group != nullptr) {
      while (unit.count < step.group->launches && report.steps[i + unit.count].group == step.group)
        ++unit.count;
      unit.key = step.group->key;
      unit.code = step.group->code;
      unit.strategy = step.group->made->strategy;
      for (std::size_t k = i; k < i + unit.count; ++k) {
        unit.flops += program.notes[k].flops;
        unit.work.bytes += program.notes[k].bytes;
      }
      unit.work.operations = step.group->operations;
      unit.work.launches = static_cast<double>(unit.count);
    } else if (const auto* copy = std::get_if<runtime::step::Copy>(&program.steps[i])) {
      unit.strategy = "copy";
      unit.key = unit.code = digest(fmt::format("copy {}", copy->bytes));
      unit.work.bytes = 2 * static_cast<double>(copy->bytes);
    } else if (const auto* host = std::get_if<runtime::step::Host>(&program.steps[i])) {
      unit.strategy = "host";
      unit.key = unit.code = digest("host\n" + program.texts[host->text]);
      unit.work.bytes = bytes_of(host->inputs) + bytes_of(host->outputs);
      unit.work.operations = unit.work.bytes;
    }
    unit.work.kind = kind_of(unit.strategy);
    i += unit.count;
    units.push_back(std::move(unit));
  }
  return units;
}

}  // namespace tessera::cost
