#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "tessera/interp/interp.h"
#include "tessera/prove/fingerprint.h"
#include "tessera/prove/joint_graph.h"

namespace tessera::prove {

/// The first values, in topological order, in which two models differ on an input, though what they
/// are computed from does not differ.
struct Divergence {
  struct Place {
    std::string node = {}, value = {}, op = {};  // names of the node and of its result, operator
    Graph subgraph = {};                         // from values that agree
  };
  /// A constant of which elements differ: the first of them.
  struct Weight {
    std::string source = {}, target = {};  // names
    std::vector<std::int64_t> position = {};
    double source_element = 0, target_element = 0;
    std::int64_t differing = 0, elements = 0;
  };
  Place source = {}, target = {};
  std::vector<std::string> changes = {};  // "axis -1 against 2"; empty where only the numbers tell
  std::optional<Weight> weight = {};
};
/// "differs first at NODE: axis -1 against 2".
std::string to_string(const Divergence& divergence);

/// Observes a run of a joint graph and tells where the two models part. Values are compared by
/// their names, or by what they look like where the other model has none of the name.
class Locator {
 public:
  Locator(const Graph& source, const Graph& target, const JointGraph& joint,
          std::int64_t most_bytes);

  void observe(ValueId joint, const interp::Value& value);

  /// Nothing where the graphs are congruent.
  std::optional<Divergence> divergence() const;

 private:
  enum class State : std::uint8_t { Unknown, Agrees, Differs };

  State compared(ValueId target, const Tensor& tensor);
  /// Of a value of the target that the source computes under another name.
  State renamed(ValueId target) const;
  bool depends_on_shared_alone(ValueId target) const;
  bool agrees(Side side, ValueId value) const;
  std::optional<ValueId> counterpart(ValueId target) const;
  /// Numbers of the nodes from values that agree to one that differs, so many.
  std::set<std::size_t> region(Side side, ValueId value) const;
  Divergence described(ValueId source, ValueId target) const;
  /// A constant with other elements than the one of its name, among what two regions read.
  std::optional<Divergence::Weight> differing_weight(ValueId source, ValueId target) const;
  Divergence::Place place(Side side, ValueId value) const;
  const Graph& graph(Side side) const { return side == Side::Source ? source_ : target_; }
  bool is_shared(Side side, ValueId value) const;

  const Graph &source_, &target_;
  const JointGraph& joint_;
  std::int64_t bytes_left_;
  bool is_found_ = false;                             // a value of the target that differs
  std::unordered_map<std::string, ValueId> by_name_;  // of the source
  std::unordered_map<std::uint32_t, std::vector<ValueId>> of_joint_;  // values of the target
  std::map<std::uint32_t, Tensor> kept_;         // results of the source alone, by joint value
  std::map<std::uint32_t, Fingerprint> prints_;  // of some of these
  std::map<std::uint32_t, State> states_;        // by value of the target
  std::set<std::uint32_t> renamed_;  // joint values that have other names in the other model
};

}  // namespace tessera::prove
