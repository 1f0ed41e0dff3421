#include "tessera/tile/text.h"

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "tessera/support/lexer.h"
#include "tessera/support/unique_names.h"
#include "tessera/tile/remarks.h"
#include "tessera/tile/text_form.h"

namespace tessera::tile {
namespace {

std::string number_text(DType dtype, const Literal& literal) {
  if (is_float(dtype)) return std::isnan(literal.number) ? "nan" : float_text(literal.number);
  if (dtype == DType::Bool) return literal.integer != 0 ? "true" : "false";
  if (dtype == DType::U64) return fmt::format("{}", static_cast<std::uint64_t>(literal.integer));
  return fmt::format("{}", literal.integer);
}

bool is_zero(DType dtype, const Literal& literal) {
  return is_float(dtype) ? literal.number == 0 && !std::signbit(literal.number)
                         : literal.integer == 0;
}

class Printer {
 public:
  Printer(const Kernel& kernel, const Remarks& remarks)
      : kernel_(kernel), remarks_(remarks), names_(kernel.values.size()) {}

  std::string print() {
    text_ = fmt::format("kernel {}({}){} {{\n", name_text(kernel_.name),
                        declarations(kernel_.params()), block_request());
    block(kernel_.body);
    return text_ + "}\n";
  }

 private:
  /// Name of a value, assigned at its definition.
  const std::string& name(ValueId id) {
    std::string& name = names_[id];
    if (!name.empty()) return name;
    const std::string& wanted = kernel_.values[id].name;
    const std::string plain =
        taken_.unique(wanted.empty() ? fmt::format("v{}", unnamed_++) : wanted);
    // Names that would parse as numbers.
    const bool number = plain == "true" || plain == "false";
    return name = number ? quoted_text(plain, '\'') : name_text(plain);
  }

  std::string list(const std::vector<ValueId>& ids) {
    std::string text;
    for (const ValueId id : ids) text += (text.empty() ? "" : ", ") + name(id);
    return text;
  }

  /// ` block(stages = 3, producers = tma)`; empty where nothing is requested.
  std::string block_request() const {
    const BlockRequest& request = kernel_.block;
    if (request.is_empty()) return "";
    std::string text;
    const auto add = [&](std::string_view name, std::string_view value) {
      text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", name, value);
    };
    if (request.stages != 0) add("stages", std::to_string(request.stages));
    if (request.warps != 0) add("warps", std::to_string(request.warps));
    if (request.producers != BlockRequest::Producers::Auto)
      add("producers", to_string(request.producers));
    return fmt::format(" block({})", text);
  }

  std::string declaration(ValueId id) {
    return fmt::format("{}: {}", name(id), to_string(kernel_.type(id)));
  }

  std::string declarations(const std::vector<ValueId>& ids) {
    std::string text;
    for (const ValueId id : ids) text += (text.empty() ? "" : ", ") + declaration(id);
    return text;
  }

  /// `acc: f32[64] = start, …` from the given operand on.
  std::string carried(const Operation& op, const Region& region, std::size_t first) {
    std::string text;
    const std::size_t indices = region.params.size() - (op.in.size() - first);
    for (std::size_t i = first; i < op.in.size(); ++i) {
      text += fmt::format("{}{} = {}", i > first ? ", " : "",
                          declaration(region.params[indices + i - first]), name(op.in[i]));
    }
    return text;
  }

  void line(const std::string& text) { text_ += std::string(2 * depth_, ' ') + text + "\n"; }

  void block(const Region& region) {
    ++depth_;
    for (const OpId id : region.ops) operation(kernel_.ops[id], remark(id));
    --depth_;
  }

  std::string remark(OpId id) const {
    const auto found = remarks_.find(id);
    return found == remarks_.end() ? "" : "  // " + found->second;
  }

  /// Prints `head` without results; then regions, joined by keywords.
  void operation(const Operation& op, const std::string& remark) {
    if (op.code == Code::Yield && op.in.empty()) return;
    const std::string head = this->head(op);
    const std::string results = op.out.empty()       ? ""
                                : op.out.size() == 1 ? declaration(op.out[0]) + " = "
                                                     : "(" + declarations(op.out) + ") = ";
    // The results of an operation are not yet visible in its regions, but names are unique anyway.
    if (op.regions.empty()) return line(results + head + remark);
    line(results + head + " {" + remark);
    for (std::size_t i = 0; i < op.regions.size(); ++i) {
      const bool nothing = op.code == Code::If && i == 1 && op.regions[i].ops.size() == 1 &&
                           kernel_.ops[op.regions[i].ops[0]].in.empty();
      if (nothing) break;
      if (i > 0) line(op.code == Code::If ? "} else {" : "} do {");
      block(op.regions[i]);
    }
    line("}");
  }

  std::string head(const Operation& op) {
    switch (op.code) {
      case Code::Const: return number_text(kernel_.type(op.out[0]).dtype, op.literal);
      case Code::If: return fmt::format("if ({})", list(op.in));
      case Code::For: {
        const Region& body = op.regions[0];
        std::string text = fmt::format("for ({} = {} to {} step {}", declaration(body.params[0]),
                                       name(op.in[0]), name(op.in[1]), name(op.in[2]));
        if (op.in.size() > 3) text += ", " + carried(op, body, 3);
        text += ")";
        if (!op.ints.empty()) text += fmt::format(" stages {}", op.ints[0]);
        if (op.ints.size() > 1) text += fmt::format(" unroll {}", op.ints[1]);
        return text;
      }
      case Code::While: {
        std::string text = fmt::format("while ({})", carried(op, op.regions[0], 0));
        // Both regions use the same names for the carried values.
        for (std::size_t i = 0; i < op.in.size(); ++i) {
          names_[op.regions[1].params[i]] = name(op.regions[0].params[i]);
        }
        return text;
      }
      default: break;
    }
    std::string text = fmt::format(
        "{}({})", op.code == Code::Map ? to_string(op.function) : to_string(op.code), list(op.in));
    std::string attributes;
    for (const Attribute& attribute : kAttributes) {
      if (attribute.code != op.code) continue;
      const std::string value = attribute_text(op, attribute);
      if (value.empty()) continue;
      attributes += fmt::format("{}{} = {}", attributes.empty() ? "" : ", ", attribute.name, value);
    }
    if (!attributes.empty()) text += " {" + attributes + "}";
    if (!op.regions.empty()) text += " (" + declarations(op.regions[0].params) + ")";
    return text;
  }

  /// Text of an attribute; empty where it has its default.
  std::string attribute_text(const Operation& op, const Attribute& attribute) const {
    const auto ints = [&] { return fmt::format("[{}]", fmt::join(op.ints, ", ")); };
    switch (attribute.field) {
      case Attribute::Field::Function:
        return op.function == Function::None ? "" : std::string(to_string(op.function));
      case Attribute::Field::First: return fmt::format("{}", op.ints[0]);
      case Attribute::Field::Second: return op.ints[1] == 0 ? "" : fmt::format("{}", op.ints[1]);
      case Attribute::Field::Ints: return op.ints.empty() ? "" : ints();
      case Attribute::Field::Hint: return op.text == attribute.name ? ints() : "";
      case Attribute::Field::Number: {
        const DType dtype = kernel_.type(op.out[0]).dtype;
        return is_zero(dtype, op.literal) ? "" : number_text(dtype, op.literal);
      }
      case Attribute::Field::Text: return op.text.empty() ? "" : quoted_text(op.text);
    }
    return {};
  }

  const Kernel& kernel_;
  const Remarks& remarks_;
  std::vector<std::string> names_;  // as printed
  UniqueNames taken_;
  int unnamed_ = 0, depth_ = 0;
  std::string text_;
};

}  // namespace

std::string to_text(const Kernel& kernel) {
  return to_text(kernel, {});
}

std::string to_text(const Kernel& kernel, const Remarks& remarks) {
  return Printer(kernel, remarks).print();
}

}  // namespace tessera::tile
