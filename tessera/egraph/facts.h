#pragma once

#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "tessera/ir/graph.h"
#include "tessera/ir/infer.h"

namespace tessera::egraph {

/// What an operator is applied to, as far as it tells what the operator does.
struct Operand {
  const Type* type = nullptr;        // interned; null for an input left out
  const Tensor* constant = nullptr;  // interned, see Facts; null where the content is not known

  bool operator==(const Operand&) const = default;
};

/// An operator with attributes on operands of some types: what is true of all such nodes.
struct Application {
  OpRef op = nullptr;
  const Attrs* attrs = nullptr;    // interned; of all that mean the same, those that came first
  std::vector<Known> inputs = {};  // what is known of the operands
  bool commutes = false;           // the two operands may change places
  std::vector<bool> reads = {};    // by operand: whether its content counts, or its type alone
};

/// Finds out once what operators do, for any number of e-graphs. Not to be shared by threads.
class Facts {
 public:
  /// The same address for the same `op`, meaning of `attrs` and `operands`.
  const Application& of(const OpDef& op, const Attrs& attrs, std::span<const Operand> operands);

  /// Whether an operator, applied as it is, means the same with other attributes.
  bool means(const Application& application, const Attrs& other);

  /// Whether a graph hangs on no more than the types of those of its inputs that are not told.
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
