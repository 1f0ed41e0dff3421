#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstddef>

#include "tessera/tile/cpu/nest.h"

namespace tessera::tile::cpu {
namespace {

class Printer {
 public:
  explicit Printer(const ScheduledKernel& scheduled) : scheduled_(scheduled) {}

  std::string run() {
    const Kernel& kernel = scheduled_.kernel;
    text_ = fmt::format("scheduled {} {{\n", kernel.name);
    depth_ = 1;
    for (std::size_t i = 0; i < scheduled_.buffers.size(); ++i) {
      const Buffer& buffer = scheduled_.buffers[i];
      line("buffer {}: {} at {}", i, to_string(Type::tile(buffer.dtype, buffer.shape)),
           buffer.offset);
    }
    steps(scheduled_.steps);
    return text_ + "}\n";
  }

 private:
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    text_ += std::string(2 * static_cast<std::size_t>(depth_), ' ') +
             fmt::format(format, std::forward<Args>(args)...) + "\n";
  }

  std::string name(ValueId id) const {
    const Value& value = scheduled_.kernel.values[id];
    return value.name.empty() ? fmt::format("%{}", id) : fmt::format("{}%{}", value.name, id);
  }
  std::string names(const std::vector<ValueId>& ids) const {
    std::string text;
    for (const ValueId id : ids) text += (text.empty() ? "" : ", ") + name(id);
    return text;
  }
  std::string operation(OpId id) const {
    const Operation& op = scheduled_.kernel.ops[id];
    const std::string_view what =
        op.function == Function::None ? to_string(op.code) : to_string(op.function);
    const std::string call = op.code == Code::Reduce || op.code == Code::Scan
                                 ? fmt::format("{} {}({})", to_string(op.code), what, names(op.in))
                                 : fmt::format("{}({})", what, names(op.in));
    return op.out.empty() ? call : fmt::format("{} = {}", names(op.out), call);
  }
  std::string source(const DotSource& source) const {
    if (!source.vload) {
      return fmt::format("buffer {}", scheduled_.buffer_of[source.value]);
    }
    return fmt::format("{}{}", name(source.value),
                       source.panel > 0 ? fmt::format(" in panels of {}", source.panel) : "");
  }

  void steps(const std::vector<Step>& list) {
    for (const Step& step : list) {
      switch (step.kind) {
        case Step::Kind::Scalar: line("{}", operation(step.op)); break;
        case Step::Kind::Nest: nest(step.nest); break;
        case Step::Kind::Dot:
          line("dot {} x {} {} buffer {}", source(step.dot.a), source(step.dot.b),
               step.dot.accumulate ? "added to" : "into", step.dot.out);
          if (step.dot.epilogue) epilogue(step.dot);
          break;
        case Step::Kind::For:
        case Step::Kind::While:
        case Step::Kind::If:
          line("{}", operation(step.op));
          ++depth_;
          for (const std::vector<Step>& body : step.bodies) {
            line("{{");
            ++depth_;
            steps(body);
            --depth_;
            line("}}");
          }
          --depth_;
          break;
      }
    }
  }

  void epilogue(const DotStep& dot) {
    ++depth_;
    if (dot.start) line("{} from {} on", name(dot.start->total), name(dot.start->value));
    nest(*dot.epilogue);
    --depth_;
  }

  void nest(const Nest& nest) {
    line("nest [{}]{} lanes {} x {} x {}", fmt::join(nest.space, ", "),
         nest.fold ? fmt::format(" fold {}", *nest.fold) : "", nest.lane, nest.width, nest.unroll);
    ++depth_;
    for (const Root& root : nest.roots) {
      if (root.kind == Root::Kind::Write) {
        line("{} -> buffer {}", name(root.value), root.buffer);
      } else {
        line("{}", operation(root.op));
      }
    }
    --depth_;
  }

  const ScheduledKernel& scheduled_;
  std::string text_;
  int depth_ = 0;
};

}  // namespace

std::string to_text(const ScheduledKernel& scheduled) {
  return Printer(scheduled).run();
}

}  // namespace tessera::tile::cpu
