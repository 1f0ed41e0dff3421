#include "cli/inspect_program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <nlohmann/json.hpp>

#include "cli/readable.h"
#include "tessera/runtime/program_file.h"

namespace tessera::cli {
namespace {

using runtime::Program;
using runtime::Value;
namespace step = runtime::step;

std::string type_of(const Value& value) {
  if (value.home == Value::Home::Boxed) return "depends on data";
  return fmt::format("{}[{}]", to_string(value.dtype), fmt::join(value.shape, ", "));
}

/// One line about a step, in the order of the variant's kinds.
struct StepDescription {
  std::string_view kind;
  std::string details;
};

class Describe {
 public:
  explicit Describe(const Program& program) : program_(program) {}

  StepDescription operator()(const step::Launch& launch) const {
    return {"launch", fmt::format("{} on {}", program_.kernels[launch.kernel].name,
                                  fmt::join(launch.grid, "x"))};
  }
  StepDescription operator()(const step::Copy& copy) const {
    return {"copy", fmt::format("{} -> {}, {}", name(copy.from.value), name(copy.to.value),
                                readable(copy.bytes, "B"))};
  }
  StepDescription operator()(const step::Host& host) const {
    const std::string& text = program_.texts[host.text];
    return {"host", text.substr(0, text.find('\n'))};
  }
  StepDescription operator()(const step::Branch& branch) const {
    return {"branch", fmt::format("{}, else {}", name(branch.condition), branch.otherwise)};
  }
  StepDescription operator()(const step::Jump& jump) const {
    return {"jump", fmt::format("{}", jump.target)};
  }
  StepDescription operator()(const step::Loop& loop) const {
    return {"loop", fmt::format("{} iterations up to {}{}", loop.rounds, loop.end,
                                loop.backwards ? ", backwards" : "")};
  }
  StepDescription operator()(const step::Swap& swap) const {
    return {"swap", fmt::format("{} {}, {}", swap.out ? "out" : "in", name(swap.memory.value),
                                readable(swap.bytes, "B"))};
  }
  StepDescription operator()(const step::CheckIndices& check) const {
    return {"check",
            fmt::format("{}, indices from {} to {}", name(check.at.value), check.low, check.high)};
  }

 private:
  const std::string& name(runtime::ValueIndex value) const { return program_.values[value].name; }
  const Program& program_;
};

std::map<std::string, std::int64_t> count_kinds(const Program& program) {
  std::map<std::string, std::int64_t> counts;
  for (const runtime::Step& step : program.steps)
    ++counts[std::string(std::visit(Describe(program), step).kind)];
  return counts;
}

nlohmann::json values_json(const Program& program,
                           const std::vector<runtime::ValueIndex>& indices) {
  nlohmann::json list = nlohmann::json::array();
  for (const auto index : indices)
    list.push_back(
        {{"name", program.values[index].name}, {"type", type_of(program.values[index])}});
  return list;
}

void print_program_json(const Program& program) {
  const nlohmann::json object = {{"name", program.name},
                                 {"architecture", program.architecture},
                                 {"features", program.features},
                                 {"inputs", values_json(program, program.inputs)},
                                 {"outputs", values_json(program, program.outputs)},
                                 {"steps", count_kinds(program)},
                                 {"kernels", program.kernels.size()},
                                 {"code_bytes", program.image.size()},
                                 {"weight_bytes", program.weights.size()},
                                 {"arena_bytes", program.arena_bytes},
                                 {"swap_bytes", program.swap_bytes}};
  fmt::print("{}\n", object.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

void print_table(const Program& program) {
  for (const auto index : program.inputs)
    fmt::print("input   {}: {}\n", program.values[index].name, type_of(program.values[index]));
  for (const auto index : program.outputs)
    fmt::print("output  {}: {}\n", program.values[index].name, type_of(program.values[index]));
  fmt::print("\nfor             {} with {}\n", program.architecture,
             fmt::join(program.features, " "));
  fmt::print("code            {}, {} kernels\n",
             readable(static_cast<std::int64_t>(program.image.size()), "B"),
             program.kernels.size());
  fmt::print("weights         {}\n",
             readable(static_cast<std::int64_t>(program.weights.size()), "B"));
  fmt::print("memory          {}\n", readable(program.arena_bytes, "B"));
  if (program.swap_bytes > 0) fmt::print("swapped         {}\n", readable(program.swap_bytes, "B"));
  for (const auto& [kind, count] : count_kinds(program)) fmt::print("{:<16}{}\n", kind, count);
}

void print_steps(const Program& program) {
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    const StepDescription step = std::visit(Describe(program), program.steps[i]);
    const std::string& what = program.notes[i].what;
    fmt::print("{:>5}  {:<7} {}{}{}\n", i, step.kind, step.details, what.empty() ? "" : "  # ",
               what);
  }
}

}  // namespace

void inspect_program(const std::filesystem::path& file, bool text, Context& context) {
  const auto program = runtime::load(file);
  if (!program) return context.fail(program.error());
  if (text)
    print_steps(*program);
  else if (context.json)
    print_program_json(*program);
  else
    print_table(*program);
}

}  // namespace tessera::cli
