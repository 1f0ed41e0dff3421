#include "tessera/ir/text.h"

#include <algorithm>
#include <ostream>

#include "tessera/ir/control.h"
#include "tessera/ir/literal.h"
#include "tessera/ir/names.h"
#include "tessera/support/file.h"

namespace tessera {
namespace {

/// A weight in the data file.
struct StoredWeight {
  std::size_t offset = 0;
  Bytes bytes;
};

class Printer {
 public:
  explicit Printer(const TextOptions& options) : options_(options) {}

  std::string text;
  std::vector<StoredWeight> stored;

  void graph(const Graph& graph, std::string_view label) {
    const std::vector<std::uint32_t> numbers = numbering(graph);
    const auto value = [&](ValueId id) {
      if (!id.present()) return std::string(grammar::kAbsent);
      return graph.is_named(id) ? grammar::value_text(graph.name(id))
                                : "%" + std::to_string(numbers[id.index]);
    };
    const auto values = [&](std::span<const ValueId> ids) {
      std::string list;
      for (const ValueId id : ids) list += (list.empty() ? "" : ", ") + value(id);
      return list;
    };
    const auto typed = [&](std::span<const ValueId> ids, bool always) {
      std::string list;
      for (const ValueId id : ids) {
        list += (list.empty() ? "" : ", ") + value(id);
        const bool known = graph.type(id).kind != Type::Kind::Unknown;
        if (always || (options_.types && known)) list += ": " + to_string(graph.type(id));
      }
      return list;
    };

    text += label;
    if (!graph.name().empty()) text += " " + name_text(graph.name());
    text += "(" + typed(graph.inputs(), true) + ") {\n";
    indent_ += 2;
    for_each_in_order(
        graph,
        [&](ValueId id) {
          line(value(id) + " = const " + constant_text(*graph.constant(id)) + "\n");
        },
        [&](std::size_t n) {
          const GraphNode& node = graph.nodes()[n];
          const auto results = graph.outputs(node);
          line(typed(results, false) + (results.empty() ? "" : " = "));
          text += name_text(node.op->name) + "(" + values(graph.inputs(node)) + ")" +
                  attrs_text(*node.op, *node.attrs);
          if (const std::string& name = graph.node_name(n); !name.empty())
            text += " @" + name_text(name);
          subgraphs(graph, node);
          text += "\n";
        });
    const std::string outputs = values(graph.outputs());
    line("return" + (outputs.empty() ? "" : " " + outputs) + "\n");
    indent_ -= 2;
    line("}");
  }

 private:
  /// Constants and nodes by the order in which they were made.
  static void for_each_in_order(const Graph& graph, auto constant, auto node) {
    std::uint32_t next = 0;
    const auto constants_before = [&](std::uint32_t end) {
      for (; next < end; ++next)
        if (graph.constant(ValueId{next}) != nullptr) constant(ValueId{next});
    };
    for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
      const auto results = graph.outputs(graph.nodes()[n]);
      if (!results.empty()) constants_before(results[0].index);
      node(n);
    }
    constants_before(static_cast<std::uint32_t>(graph.value_count()));
  }

  /// Numbers of the values after parsing the text back.
  static std::vector<std::uint32_t> numbering(const Graph& graph) {
    std::vector<std::uint32_t> numbers(graph.value_count());
    std::uint32_t next = 0;
    for (const ValueId id : graph.inputs()) numbers[id.index] = next++;
    for_each_in_order(
        graph, [&](ValueId id) { numbers[id.index] = next++; },
        [&](std::size_t n) {
          for (const ValueId id : graph.outputs(graph.nodes()[n])) numbers[id.index] = next++;
        });
    return numbers;
  }

  void line(const std::string& content) { text += std::string(indent_, ' ') + content; }

  std::string constant_text(const Tensor& tensor) {
    if (tensor.count() <= options_.inline_limit ||
        (tensor.dtype == DType::String && !options_.data_file.empty()))
      return to_text(tensor);
    const Type type = Type::tensor(tensor.dtype, {tensor.shape.begin(), tensor.shape.end()});
    if (options_.data_file.empty()) return to_string(type) + " ...";
    constexpr std::size_t kAlignment = 64;
    const std::size_t offset = (end_ + kAlignment - 1) / kAlignment * kAlignment;
    stored.push_back({offset, tensor.bytes});
    end_ = offset + tensor.bytes.size();
    return fmt::format("{} data({}, {}, {})", to_string(type), quoted_text(options_.data_file),
                       offset, tensor.bytes.size());
  }

  void subgraphs(const Graph& graph, const GraphNode& node) {
    const auto parts = graph.subgraphs(node);
    if (parts.empty()) return;
    const auto labels = subgraph_labels(*node.op);
    text += " {\n";
    indent_ += 2;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      line("");
      this->graph(*parts[i], i < labels.size() ? labels[i] : "graph");
      text += "\n";
    }
    indent_ -= 2;
    line("}");
  }

  const TextOptions& options_;
  std::size_t indent_ = 0, end_ = 0;
};

}  // namespace

std::string to_text(const Graph& graph, const TextOptions& options) {
  Printer printer(options);
  printer.graph(graph, "graph");
  return std::move(printer.text) + "\n";
}

std::string attrs_text(const OpDef& op, const Attrs& attrs) {
  std::string list;
  for (const auto& [name, attr] : attrs.entries()) {
    const auto spec = std::ranges::find(op.attrs, name, &AttrSpec::name);
    if (spec != op.attrs.end() && spec->need == AttrSpec::Need::Default && equal(spec->value, attr))
      continue;
    list += (list.empty() ? "" : ", ") + name_text(name) + "=" + to_text(attr);
  }
  return list.empty() ? "" : " {" + list + "}";
}

Expected<Done> write_text(const Graph& graph, const std::filesystem::path& path) {
  const std::filesystem::path data = path.string() + ".weights";
  const TextOptions options{.inline_limit = 16, .data_file = data.filename().string()};
  Printer printer(options);
  printer.graph(graph, "graph");
  if (!printer.stored.empty())
    TESSERA_TRY_DONE(write_file(data, [&](std::ostream& out) {
      std::size_t end = 0;
      for (const StoredWeight& weight : printer.stored) {
        out << std::string(weight.offset - end, '\0');
        out.write(reinterpret_cast<const char*>(weight.bytes.data()),
                  static_cast<std::streamsize>(weight.bytes.size()));
        end = weight.offset + weight.bytes.size();
      }
    }));
  return write_file(path, [&](std::ostream& out) { out << printer.text << "\n"; });
}

}  // namespace tessera
