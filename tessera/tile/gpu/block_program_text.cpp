#include "tessera/tile/gpu/block_program_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "tessera/tile/gpu/block_program_enums.h"
#include "tessera/tile/gpu/block_program_fields.h"

namespace tessera::tile::gpu {
namespace {

/// Printer of fields: `name = value`, with commas.
class FieldPrinter {
 public:
  FieldPrinter(std::vector<Layout>& layouts, int depth) : layouts_(layouts), depth_(depth) {}

  template <class T>
  void operator()(std::string_view name, const T& x) {
    if (!is_left_out(x)) add(name, text_of(x));
  }
  template <class T>
  void op(std::string_view name, const T& x) {
    if (!is_left_out(x)) add(name, numbered('#', x));
  }
  template <class T>
  void value(std::string_view name, const T& x) {
    if (!is_left_out(x)) add(name, numbered('%', x));
  }

  std::string take() { return std::move(text_); }
  std::string body_text(const Body& body) {
    std::string text = "{\n";
    for (const Instruction& instruction : body)
      std::visit(
          [&]<class T>(const T& one) {
            FieldPrinter inner(layouts_, depth_ + 1);
            fields(one, inner);
            text += fmt::format("{:{}}{}({})\n", "", 2 * (depth_ + 1), kInstructionName<T>,
                                inner.take());
          },
          static_cast<const AnyInstruction&>(instruction));
    return text + fmt::format("{:{}}}}", "", 2 * depth_);
  }

 private:
  void add(std::string_view name, const std::string& value) {
    text_ += fmt::format("{}{} = {}", text_.empty() ? "" : ", ", name, value);
  }

  static bool is_left_out(bool x) { return !x; }
  template <class T>
  static bool is_left_out(const std::optional<T>& x) {
    return !x.has_value();
  }
  template <class T>
  static bool is_left_out(const T& x) {
    if constexpr (requires { x.empty(); }) {
      return x.empty();
    } else {
      return false;
    }
  }

  template <class T>
  std::string listed(const T& all, const auto& one_text) {
    std::string text;
    for (const auto& one : all) text += (text.empty() ? "" : ", ") + one_text(one);
    return "[" + text + "]";
  }

  std::string numbered(char sigil, std::uint32_t x) { return fmt::format("{}{}", sigil, x); }
  template <class T>
  std::string numbered(char sigil, const std::optional<T>& x) {
    return numbered(sigil, *x);
  }
  template <class T>
  std::string numbered(char sigil, const std::pair<OpId, T>& x) {
    if constexpr (std::same_as<T, OpId>) {
      return fmt::format("{}: {}", numbered(sigil, x.first), numbered(sigil, x.second));
    } else {
      return fmt::format("{}: {}", numbered(sigil, x.first), text_of(x.second));
    }
  }
  template <class T>
  requires requires(const T& x) { x.begin(); }
  std::string numbered(char sigil, const T& all) {
    return listed(all, [&](const auto& one) { return numbered(sigil, one); });
  }

  std::string text_of(bool x) { return x ? "true" : "false"; }
  std::string text_of(double x) { return fmt::format("{}", x); }
  template <std::integral T>
  std::string text_of(T x) {
    return fmt::format("{}", x);
  }
  template <class T>
  requires std::is_enum_v<T> std::string text_of(T x) {
    return std::string(kEnumerators<T>[static_cast<std::size_t>(x)]);
  }
  std::string text_of(const Layout& layout) {
    const auto found = std::find(layouts_.begin(), layouts_.end(), layout);
    const auto number = found - layouts_.begin();
    if (found == layouts_.end()) layouts_.push_back(layout);
    return fmt::format("L{}", number);
  }
  std::string text_of(const SharedTile& tile) {
    return fmt::format("{}[{}] @ {}", to_string(tile.dtype), fmt::join(tile.extents, ", "),
                       tile.offset);
  }
  std::string text_of(const Fragment& fragment) {
    const std::string value = numbered('%', fragment.value);
    return fragment.layout ? fmt::format("{}: {}", value, text_of(*fragment.layout)) : value;
  }
  std::string text_of(const Body& body) { return body_text(body); }
  template <class T>
  std::string text_of(const std::optional<T>& x) {
    return text_of(*x);
  }
  template <class T>
  std::string text_of(const std::vector<T>& all) {
    return listed(all, [&](const auto& one) { return text_of(one); });
  }
  template <class T>
  requires std::is_class_v<T> std::string text_of(const T& x) {
    FieldPrinter inner(layouts_, depth_);
    fields(x, inner);
    return "(" + inner.take() + ")";
  }

  std::vector<Layout>& layouts_;
  int depth_;
  std::string text_;
};

std::string index_bits_text(const std::vector<IndexBit>& bits) {
  std::string text;
  for (const IndexBit& bit : bits) {
    text += text.empty() ? "" : ", ";
    text += bit.axis < 0 ? "-" : fmt::format("{}:{}", bit.axis, bit.bit);
  }
  return "[" + text + "]";
}

}  // namespace

std::string to_text(const BlockProgram& program) {
  std::vector<Layout> layouts;
  const std::string body = FieldPrinter(layouts, 0).body_text(program.body);
  FieldPrinter head(layouts, 0);
  fields(program.shared, head);
  std::string text = fmt::format("block_program({}) {{\n", head.take());
  for (std::size_t i = 0; i < layouts.size(); ++i)
    text += fmt::format("  layout L{} = {} {} {}\n", i, layouts[i].rank(),
                        index_bits_text(layouts[i].register_bits()),
                        index_bits_text(layouts[i].thread_bits()));
  return text + body.substr(2) + "\n";
}

}  // namespace tessera::tile::gpu
