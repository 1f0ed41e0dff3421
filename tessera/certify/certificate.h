#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tessera/expr/algebra.h"
#include "tessera/expr/condition.h"
#include "tessera/expr/definition.h"

/// Proofs that two tensors are equal, and their checker. It knows definitions and arithmetic, and
/// nothing of graphs, operators or how a proof was found.
namespace tessera::certify {

/// A tensor that is given: any content, or the same number everywhere.
struct Input {
  std::string name;
  TensorType type;
  std::optional<double> uniform = {};
  std::string content = {};  // of a constant: its elements, as text
};

/// A tensor that is computed: an output of a definition, given its operands by name.
struct Value {
  std::string name;
  std::shared_ptr<const Definition> definition;
  std::size_t output = 0;
  std::vector<std::string> operands = {};
  /// The operator, its attributes and what it is given, which the definition is the meaning of.
  std::string call = {};
};

/// For all sizes >= 1 for which the facts hold, and all inputs: the two of each pair are equal.
struct Claim {
  std::vector<Input> inputs;
  std::vector<Value> values;  // in an order in which operands come first
  std::vector<std::pair<std::string, std::string>> pairs;
  Guard facts;
  /// Whether constants stand for the named reals that they are near to (expr/named_real.h).
  bool named_reals = false;  // not where it has doubles, which hold more digits than names explain
};

/// The kinds of inference. Each changes one term of one of the two sums; the last two end a proof.
enum class Kind : std::uint8_t {
  Unfold,    // an element that is read is replaced by its definition
  Split,     // a term is the sum of what it is where e >= 0 and where e < 0
  Void,      // a term whose guards contradict each other is nothing
  Drop,      // a guard that follows from the others is left out
  Tighten,   // a guard is replaced by one that says the same where the others hold
  Solve,     // a bound variable that two guards pin down is replaced by what it is
  Pin,       // a variable from outside that the guards leave one value is replaced by it
  Shift,     // a bound variable that is at least e is counted from e
  Reverse,   // a bound variable that is at most e is counted down from e
  Divide,    // a variable is written as a multiple of a size and a rest
  Settle,    // a quotient, remainder, minimum or maximum is replaced by what it is
  Quotient,  // a quotient becomes a bound variable that two guards pin down
  Count,     // a bound variable that nothing speaks of: the number of its values
  Attain,    // of a maximum: what does not hang on the bound variables, if they have values at all
  Induct,    // a fold is replaced by a sum or maximum, proved step by step
  Cases,     // a maximum of some sums is one of them: both sides are the same in each case
  Signs,     // a sum is below, at or above zero: both sides are the same in each case
};
inline constexpr int kKinds = 17;
std::string_view to_string(Kind kind);

/// Why an arithmetic condition `e >= 0` holds. Were e at most -1, scale * e would be at most
/// -scale; but scale * e less the multiples of premises, more scale - 1, is a sum of products
/// without a negative coefficient, as scale and the multipliers are.
struct Reason {
  Dim scale = 1;
  std::vector<std::pair<std::size_t, Dim>> multiples = {};  // which premise, how often
};

struct Step {
  Kind kind = Kind::Unfold;
  int side = 0;                               // 0: source, 1: target; of Divide with no place: both
  std::vector<std::size_t> place = {};        // term, then factor, argument, term, …
  std::size_t item = 0;                       // which factor, guard or bound variable of the term
  std::vector<Dim> dims = {};                 // what is put in
  std::vector<Reason> reasons = {};           // of the conditions, in their order
  std::vector<std::vector<Step>> parts = {};  // of Induct, Cases, Signs: proofs to be shown
  /// The side after the step, as text (of Divide with no place both): for other checkers, which may
  /// order sums in another way.
  std::vector<std::string> results = {};
  std::vector<std::pair<std::string, std::string>> goals = {};  // both sides at the start of a part
};

using Proof = std::vector<Step>;

/// What a claim in terms of definitions is about.
struct Subject {
  std::string rule = {};  // as text; none: a claim that stands for itself
  std::vector<std::pair<std::string, std::string>> assumptions = {};  // kind and clause
  SizeValues witness = {};  // sizes that satisfy all facts: the claim is not empty
};

/// Whether a tensor of the claim has elements of type f64.
bool has_doubles(const Claim& claim);

struct Certificate {
  Claim claim;
  std::vector<Proof> proofs;  // one for each pair
  Subject subject = {};
};

/// A text with one step a line (`docs/verification.md` has its grammar), closed by a seal over all
/// that stands before it.
std::string to_text(const Certificate& certificate);
Expected<Certificate> parse_certificate(std::string_view text);
/// A text with the seal that fits it.
std::string sealed(std::string_view text);
/// The inputs, values, facts and pairs, without the proofs.
std::string to_text(const Claim& claim);
/// A sum as steps are followed by it.
std::string sum_text(const algebra::Sum& sum);

}  // namespace tessera::certify
