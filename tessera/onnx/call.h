#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tessera/ir/builder.h"

namespace tessera::onnx {

/// ONNX node during import: operator, inputs and attributes as the file states them, which an
/// adapter brings to the form of the catalog.
struct Call {
  GraphBuilder& g;
  std::string name;           // ONNX operator
  const OpDef* op = nullptr;  // operator of the catalog that it becomes
  std::int64_t opset = 1;     // opset version of the operator's domain
  Vals inputs = {};
  Attrs attrs = {};
  int outputs = 1;         // number of outputs wanted
  int listed_outputs = 1;  // the same with those at the end that have no name

  bool has_input(std::size_t i) const { return i < inputs.size() && inputs[i].present(); }
  /// Static information about an input; unknown for one that is absent.
  ValueInfo known(std::size_t i) const { return has_input(i) ? g.known(inputs[i]) : ValueInfo{}; }
  /// Shape of an input; a diagnostic if its rank is unknown.
  Expected<Shape> shape(std::size_t i) const;

  void set_input(std::size_t i, Val value);
  /// Removes an attribute and returns its value.
  std::optional<Attr> take(std::string_view attr);
  /// Removes an attribute of one kind; another kind is a diagnostic.
  template <class T>
  Expected<std::optional<T>> take_as(std::string_view attr) {
    const std::optional<Attr> found = take(attr);
    if (!found) return std::optional<T>{};
    if (const T* value = std::get_if<T>(&*found)) return std::optional<T>(*value);
    return wrong_kind(attr, *found);
  }

  /// Adds the adapted node and returns its results.
  Vals emit() { return g.call(*op, inputs, attrs, outputs); }

  /// Diagnostic: this form of the node is not supported.
  Diagnostic unsupported(std::string message, std::string note = {}) const;

 private:
  Diagnostic wrong_kind(std::string_view attr, const Attr& found) const;
};

/// Function that adapts a node to the form of the catalog and adds it.
using Adapter = Expected<Vals> (*)(Call& call);

}  // namespace tessera::onnx
