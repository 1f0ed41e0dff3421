#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tessera/ir/builder.h"

namespace tessera::onnx {

/// One node of an ONNX graph on its way into a Graph: what it is given, as its file states it.
struct Call {
  GraphBuilder& g;
  std::string name;           // of the operator, in ONNX
  const OpDef* op = nullptr;  // what it becomes
  std::int64_t opset = 1;     // of the operator's domain
  Vals inputs = {};
  Attrs attrs = {};
  int outputs = 1;  // how many are wanted

  bool has_input(std::size_t i) const { return i < inputs.size() && inputs[i].present(); }
  /// What an input is; nothing known of one that is absent.
  Known known(std::size_t i) const { return has_input(i) ? g.known(inputs[i]) : Known{}; }
  /// The shape of an input; a diagnostic where its rank is unknown.
  Expected<Shape> shape(std::size_t i) const;

  void set_input(std::size_t i, Val value);
  /// Removes an attribute and returns what it was.
  std::optional<Attr> take(std::string_view attr);
  /// The same for an attribute of one kind; another kind is a diagnostic.
  template <class T>
  Expected<std::optional<T>> take_as(std::string_view attr) {
    const std::optional<Attr> found = take(attr);
    if (!found) return std::optional<T>{};
    if (const T* value = std::get_if<T>(&*found)) return std::optional<T>(*value);
    return wrong_kind(attr, *found);
  }

  /// Adds the node as it now is and returns its results.
  Vals emit() { return g.call(*op, inputs, attrs, outputs); }

  /// What this node says is not supported.
  Diagnostic unsupported(std::string message, std::string note = {}) const;

 private:
  Diagnostic wrong_kind(std::string_view attr, const Attr& found) const;
};

/// Brings a node to the form of the catalog and adds it.
using Adapter = Expected<Vals> (*)(Call& call);

}  // namespace tessera::onnx
