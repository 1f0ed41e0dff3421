#pragma once

#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "tessera/ir/graph.h"
#include "tessera/ir/infer.h"

namespace tessera::egraph {

/// Operand of an operator, as far as the properties of the application depend on it.
struct Operand {
  const Type* type = nullptr;        // interned; null for an omitted input
  const Tensor* constant = nullptr;  // interned by OperatorAnalysis; null if unknown

  bool operator==(const Operand&) const = default;
};

/// Properties of an operator with attributes on operands of these types, shared by all such nodes.
struct Application {
  OpRef op = nullptr;
  const Attrs* attrs = nullptr;  // interned; the first of all with the same meaning
  std::vector<ValueInfo> inputs = {};
  bool commutes = false;         // the operator is commutative in its two operands
  std::vector<bool> reads = {};  // by operand: its content matters, not only its type
};

/// Cache of operator properties (which operands are read, which attributes mean the same), shared
/// by any number of e-graphs of one thread.
class OperatorAnalysis {
 public:
  /// Interned application: one address per operator, meaning of attributes and operands.
  const Application& of(const OpDef& op, const Attrs& attrs, std::span<const Operand> operands);

  /// Whether the application means the same with other attributes.
  bool means(const Application& application, const Attrs& other);

  /// Whether a graph depends on the content of the inputs in `told` only, and on the types of the
  /// others.
  bool is_told(const Graph& graph, const std::vector<bool>& told);

  /// Equal small tensors have one address; larger ones are equal if they are the same memory.
  const Tensor* interned(const Tensor& tensor);

 private:
  struct Key {
    std::vector<const void*> words;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };

  std::unordered_map<Key, const Application*, Hash> known_;
  std::unordered_map<Key, std::vector<std::unique_ptr<Application>>, Hash> applications_;
  std::unordered_map<Key, bool, Hash> means_;
  std::unordered_map<std::uint64_t, std::vector<std::unique_ptr<const Tensor>>> tensors_;
};

}  // namespace tessera::egraph
