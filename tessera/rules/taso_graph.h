#pragma once

#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/ir/graph.h"
#include "tessera/rules/taso_text.h"

namespace tessera::rules::taso {

/// What is known of an operator of TASO's before it is built.
struct Operator {
  static constexpr std::size_t kAny = std::numeric_limits<std::size_t>::max();

  std::string_view name;
  std::size_t args;
  std::optional<int> rank;  // of its operands and result; nothing: any
  /// Which operands have the rank and, of images, the spatial sizes of the result; `Scaled`: the
  /// first, and the second is a scalar.
  enum class Like { None, First, Scaled, All } like = Like::None;
  bool window = false;  // is written with one
  std::vector<std::string_view> options = {};
};

/// Null where there is none.
const Operator* find_operator(std::string_view name);

/// An input of both sides.
struct Wildcard {
  std::string name;
  Shape shape;
};

/// The inputs that say how large constants are, by the names of the constants.
using Likes = std::map<std::string, std::string>;

/// One side of a rule. The calls are to known operators, with their number of arguments and their
/// windows.
Expected<Graph> built(const std::vector<Wildcard>& inputs, const Likes& likes,
                      const std::vector<Call>& calls, const std::vector<Reference>& outputs);

}  // namespace tessera::rules::taso
