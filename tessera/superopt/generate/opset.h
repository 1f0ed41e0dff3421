#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/expr/condition.h"
#include "tessera/ir/graph.h"

namespace tessera::superopt {

/// Operator set that rules are enumerated over: operators and inputs. As text:
///
///   set small
///   sizes n=2 k=3                                  // at least two choices of sizes that differ
///   sizes n=4 k=5
///   most 500 elements                              // of a tensor
///   input x, y: f32[n, k]                          // inputs of one declaration are alike
///   input w: f32[k, 3] as f32[_, 2*_ + 1]          // what they are in rules; else any size is any
///   like e: f32[k, k]                              // only its sizes are read
///   weight v: f32[k, k]                            // taken by arguments `weight b` alone
///   op add(a: [*s], b: [*s]) { return add(a, b) }  // takes tensors of one shape
///   op conv(x: [_, _, h, w], k) where g = x.1 / k.1 { return conv(x, k) {group=$g} }
///   op halves(x: [_, _]) cut p, q = x.1 {
///     a, b = split(x, concat(p, q) {axis=0}) {axis=1}
///     return a, b
///   }
///   op eye(like e) { return eye_like(e) }
///
/// Bodies are those of graphs (docs/ir.md). In the shape that an operator takes, `_` is any size, a
/// name that is no size of the set is the same wherever it is, and `*s` is any list of sizes.
/// `where` states attributes; `cut` finds two parts of a size that is a sum.
struct OperatorSet {
  struct Input {
    std::vector<std::string> names;
    Type type;      // over the sizes of the set
    Shape general;  // with the symbol `_` for any size
    bool like = false;
    bool weight = false;
  };

  /// Axis of an argument.
  struct AxisOf {
    std::size_t arg = 0, axis = 0;
  };
  struct Item {
    enum class Kind { Any, Name, List, Size } kind = Kind::Any;
    std::string name = {};
    Dim size = 0;
  };
  struct Arg {
    std::string name;
    std::optional<std::vector<Item>> shape = {};  // nullopt: any shape
    bool like = false;
    bool weight = false;  // what is computed from weights alone, and nothing else
  };
  /// Attribute that is a quotient of two sizes.
  struct Quotient {
    std::string attr;
    AxisOf whole, part;
  };
  struct Operator {
    std::string name;
    std::vector<Arg> args;
    std::vector<Quotient> quotients = {};
    std::optional<AxisOf> cut = {};
    Graph body;  // over the arguments and, with a cut, the two parts
  };

  std::string name;
  std::vector<SizeValues> sizes;
  std::int64_t most_elements = 1000;
  std::vector<Input> inputs;
  std::vector<Operator> operators;

  std::size_t variables() const;
};

Expected<OperatorSet> parse_set(std::string_view text, const std::string& file = {});

/// Loads a shipped set by name, or a set from a file.
Expected<OperatorSet> load_set(const std::string& name_or_path);

/// File of `sets/`, embedded at build time.
struct ShippedSet {
  std::string_view name, text;
};
std::span<const ShippedSet> shipped_sets();

}  // namespace tessera::superopt
