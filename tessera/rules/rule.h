#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tessera/expr/condition.h"
#include "tessera/ir/graph.h"
#include "tessera/rules/region.h"

namespace tessera::rules {

/// How near the two sides of a rule are to each other in floating point.
struct Numerics {
  enum class Kind : std::uint8_t {
    Exact,  // bit for bit
    Reals,  // equal over the reals; each side rounds in its own way
    Error,  // apart by up to `error`, relative, even over the reals
  };

  Kind kind = Kind::Reals;
  double error = 0;

  bool operator==(const Numerics&) const = default;
};

/// A shape that broadcasts to another: it has as many axes or fewer, each of the other's size or 1.
struct ShapeCondition {
  std::string shape, to;  // `*b`, `*s`

  bool operator==(const ShapeCondition&) const = default;
};

/// Where the target of a rule is no slower than its source, on any machine.
enum class Helps : std::uint8_t {
  Unknown,       // it depends on the machine
  WhereSmaller,  // where it computes fewer elements
  Everywhere,
  WithMutant,  // only if a mutant follows, whose source it makes match; normalization undoes it
};

/// Target of a rule before its correction: equal to the source except in some boxes.
struct Mutant {
  Graph target;
  Region wrong;
};

/// Two graphs that compute the same: where the source is found, the target may take its place.
///
/// Both have the same inputs, by position and name. Sizes in their types and `$name` attributes
/// stand for anything, the same everywhere; a size `*s` stands for any number of axes. A float
/// attribute `$e` is the input `e` of rank 0. `f32` stands for any float type, the same everywhere,
/// unless the rule speaks of several of them.
struct Rule {
  std::string name;
  std::string about;  // one sentence
  Graph source, target;
  Guard guard;  // what else has to hold of the sizes
  std::vector<ShapeCondition> shapes = {};
  bool both_ways = false;  // the target may be replaced by the source as well
  Helps helps = Helps::Unknown;
  Numerics numerics;
  std::string found;                   // how
  std::vector<std::string> constants;  // inputs that stand for constants only
  /// Partially equivalent graph that the target is the correction of, as the text states it.
  std::optional<Mutant> mutant = {};
};

/// The other way round.
Rule reversed(const Rule& rule);

/// Whether everything that the target needs is told by the source: inputs (but those of which the
/// type alone counts), sizes, attributes; so many outputs; a diagnostic if not.
Expected<Done> check(const Rule& rule);

/// The inputs of a side that something is computed from, as operands or as float attributes.
std::set<ValueId> used_inputs(const Graph& graph);

/// The input that a float attribute is called by, `e` of `{epsilon=$e}`; none for any other one.
std::optional<ValueId> attribute_input(const Graph& graph, const OpDef& op,
                                       const Attrs::Entry& attribute);

/// Whether `f32` stands for any float type: all values and attributes are of this one, and the
/// constants are numbers that every float type has.
bool is_generic(const Rule& rule);

/// The rule with every `*s` replaced by 0 to 4 axes, `s0, s1, …`, and a shape that broadcasts to it
/// by some of these and axes of size 1, in all ways that its operators take. A rule without `*s` is
/// its own only instance.
std::vector<Rule> instances(const Rule& rule);

/// Whether a size stands for any number of axes.
bool is_any_rank(const Dim& dim);

}  // namespace tessera::rules
