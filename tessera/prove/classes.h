#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tessera/prove/element_origins.h"
#include "tessera/prove/prepared.h"

namespace tessera::prove {

/// Whether two tensors have the same type and the same bits.
bool same_content(const Tensor& a, const Tensor& b);

/// Congruence class: a set of values of two graphs that are known to be equal.
using ClassId = std::uint32_t;
inline constexpr ClassId kNoClass = ~ClassId{0};

/// Value numbering over two graphs. Equal constants share a class, and so do results of the same
/// operator with the same attributes over operands of the same classes; a subgraph counts by what
/// its results are as functions of its inputs. Every draw of a random operator is its own.
class Numbering {
 public:
  ClassId fresh() { return next_++; }
  ClassId constant(const Tensor& tensor);
  ClassId sizes(const Type& type, const std::vector<Dim>& value);
  /// The classes of a node's results.
  std::vector<ClassId> results(const Graph& graph, const GraphNode& node,
                               std::span<const ClassId> operands);

 private:
  using Key = std::vector<std::uint64_t>;
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };
  struct Constant {
    Tensor tensor;
    ClassId id = 0;
  };

  ClassId keyed(Key key);
  ClassId by_content(const Tensor& tensor);
  std::uint64_t text(const std::string& text);
  std::vector<ClassId> function(const Graph& graph);

  ClassId next_ = 0;
  std::unordered_map<Key, ClassId, Hash> by_key_;
  std::unordered_map<std::uint64_t, std::vector<Constant>> constants_;
  std::vector<Tensor> kept_;  // those known by address, which nothing else may take meanwhile
  std::unordered_map<std::string, std::uint64_t> texts_;
};

/// Which of the two graphs.
enum class Side : std::uint8_t { Source, Target };
inline constexpr std::array<Side, 2> kSides = {Side::Source, Side::Target};
inline Side other(Side side) {
  return side == Side::Source ? Side::Target : Side::Source;
}

/// Two prepared graphs and the classes of their values. Inputs are paired by position.
class Pairing {
 public:
  Pairing(Prepared source, Prepared target);

  const Prepared& prepared(Side side) const { return half(side).prepared; }
  const Graph& graph(Side side) const { return half(side).prepared.graph; }

  /// Classes for the values of a graph, in order. A value for which the other graph has none in the
  /// class that congruence gives is that of a value with the same elements, moved in another way;
  /// if there is none, it is offered to `unmatched` first.
  void number(Side side, const std::function<void(ValueId)>& unmatched = {});

  ClassId of(Side side, ValueId value) const {
    return value.present() ? half(side).classes[value.index] : kNoClass;
  }
  /// A value of the class, if that side has one.
  std::optional<ValueId> member(Side side, ClassId id) const;
  bool paired(ClassId id) const;
  /// Says that a value without a partner is equal to the values of a class.
  void assign(Side side, ValueId value, ClassId id);

  /// A value that the graph does not have, made of others; it has no use there. Nothing where the
  /// operator cannot take them.
  std::optional<ValueId> derive(Side side, const OpDef& op, const Attrs& attrs,
                                const std::vector<ValueId>& operands);
  ValueId derive_constant(Side side, Tensor tensor);

  bool all_outputs_paired() const;

 private:
  struct Half {
    Prepared prepared = {};
    std::vector<ClassId> classes = {};                  // by value
    std::unordered_map<ClassId, ValueId> members = {};  // the first of each class
    std::optional<ElementOrigins> origins = {};
    std::unordered_map<ClassId, std::vector<ValueId>> moved = {};  // by the class of the root
  };
  const Half& half(Side side) const { return halves_[static_cast<std::size_t>(side)]; }
  Half& half(Side side) { return halves_[static_cast<std::size_t>(side)]; }

  /// The class of a value of the other graph that has the same elements at the same places, moved
  /// there from a value of the same class.
  std::optional<ClassId> class_by_origins(Side side, ValueId value);

  std::array<Half, 2> halves_;
  Numbering numbering_;
  std::vector<ClassId> inputs_;
};

}  // namespace tessera::prove
