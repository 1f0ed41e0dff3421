#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "tessera/certify/certificate.h"
#include "tessera/expr/condition.h"
#include "tessera/support/tensor.h"

namespace tessera::prove {

/// Something that a proof takes for granted.
struct Assumption {
  enum class Kind : std::uint8_t {
    Rounding,    // floating-point results are those of real numbers
    NonFinite,   // nothing is infinite or NaN
    Domain,      // no division by zero, no root or logarithm of a negative number
    Indices,     // elements of tensors that are indices lie within their axes
    WrapAround,  // integers stay within their type
    Constant,    // a constant stands for a real number near it
    Empty,       // sizes are at least 1
    Sizes,       // sizes that the two models leave open are related
    Declared,    // a shape that a file declares is right
  };
  Kind kind = Kind::Rounding;
  std::string text = {};  // a clause that follows "assuming that"

  auto operator<=>(const Assumption&) const = default;
};
std::string_view to_string(Assumption::Kind kind);  // "rounding", "non-finite", …
/// Whether nearly every proof makes an assumption of the kind of this name.
bool is_usual(std::string_view kind);

/// Equal for all inputs of all sizes of at least 1 that satisfy the guard and that the source
/// accepts, over the reals, under the assumptions.
struct Proved {
  Guard guard;  // what the target needs beyond the source
  certify::Certificate certificate;
  std::vector<Assumption> assumptions;
};

/// An input that shows the difference; the interpreter has replayed it.
struct Refuted {
  SizeValues sizes;
  std::vector<Tensor> inputs;  // in the order of the graph's inputs
  std::size_t output = 0;
  std::vector<std::int64_t> position;  // empty with `what` where the outputs differ in shape
  double source = 0, target = 0;       // the elements there
  std::string what;                    // in words
  bool bits = false;  // equal over the reals: in single precision the results are rounded otherwise
};

struct Unknown {
  std::string why;
};

using Verdict = std::variant<Proved, Refuted, Unknown>;

std::string_view to_string(const Verdict& verdict);  // "proved", "refuted", "unknown"

}  // namespace tessera::prove
