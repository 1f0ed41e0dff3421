#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <functional>
#include <unordered_map>
#include <vector>

#include "tessera/superopt/generate/instances.h"

namespace tessera::superopt {

using TermId = std::uint32_t;

/// Assignment of inputs to the variables of a term: up to eight small numbers, packed.
class Naming {
 public:
  static constexpr std::size_t kMost = 8;

  std::uint8_t operator[](std::size_t i) const {
    return static_cast<std::uint8_t>(bits_ >> place(i));
  }
  void set(std::size_t i, std::uint8_t name) {
    bits_ = (bits_ & ~(std::uint64_t{0xff} << place(i))) | (std::uint64_t{name} << place(i));
  }
  std::uint64_t bits() const { return bits_; }
  /// Lexicographic order, the first name being the most significant, so that a term's own names
  /// come first.
  auto operator<=>(const Naming&) const = default;

 private:
  static constexpr std::size_t place(std::size_t i) { return 8 * (kMost - 1 - i); }
  std::uint64_t bits_ = 0;
};

/// Term with an assignment of inputs to its variables.
struct NamedTerm {
  TermId term = 0;
  Naming naming = {};
  auto operator<=>(const NamedTerm&) const = default;
};

/// Term: a tensor computed from inputs by operators of a set, canonical up to renaming of inputs:
/// the largest argument of each operator comes first, and variables are numbered in order of
/// occurrence.
struct Term {
  static constexpr std::uint16_t kVariable = 0xffff;

  std::uint16_t op = kVariable;
  std::uint8_t result = 0;  // index among the operator's results
  std::uint8_t ops = 0;     // number of distinct operator applications
  std::uint8_t variables = 0, args = 0;
  std::uint32_t first_arg = 0;
  ShapeId shape = 0;
  const Instance* instance = nullptr;
  Naming own = {};  // canonical names of its variables: the first of each kind
};

/// Hash-consed table of terms. Arguments refer to the variables of their parent by position.
class Terms {
 public:
  explicit Terms(Instances& instances);

  Instances& instances() const { return instances_; }
  const OperatorSet& set() const { return instances_.set(); }
  std::size_t size() const { return terms_.size(); }
  const Term& operator[](TermId id) const { return terms_[id]; }
  std::span<const NamedTerm> args(TermId id) const {
    return {args_.data() + terms_[id].first_arg, terms_[id].args};
  }
  /// Argument of a named term, with its names.
  NamedTerm arg(const NamedTerm& of, std::size_t i) const {
    return renamed(args(of.term)[i], of.naming);
  }
  NamedTerm renamed(const NamedTerm& positions, Naming names) const;

  /// Declaration (kind) of an input, and the first input of a declaration.
  std::size_t kind(std::uint8_t variable) const { return kind_of_[variable]; }
  std::uint8_t first(std::size_t kind) const { return first_of_[kind]; }
  std::size_t alike(std::size_t kind) const { return set().inputs[kind].names.size(); }
  std::size_t variables() const { return kind_of_.size(); }
  /// Term of a single input.
  NamedTerm variable(std::uint8_t variable) const;
  std::string name(std::uint8_t variable) const;

  /// All assignments of distinct names to the variables of a term: permutations of its own names,
  /// or all inputs of the right kind.
  std::vector<Naming> namings(const Term& term, bool own_alone) const;

  /// Collects one hash per operator application, equal for the same operator on the same arguments.
  void collect_operators(const NamedTerm& named, std::vector<std::uint64_t>& into) const;
  std::uint64_t structure(const NamedTerm& named) const;
  /// Structural hash from the hash of the operator and arguments.
  static std::uint64_t structure(const Term& term, std::uint64_t operation);

  struct New {
    std::uint16_t op = 0;
    std::uint8_t ops = 0, variables = 0;
    Naming own = {};
    std::vector<NamedTerm> args;
    const Instance* instance = nullptr;
  };
  /// Adds a term for each result of the operator, and returns the first.
  TermId add(const New& term);

 private:
  std::uint64_t operator_hash(const NamedTerm& named) const;

  Instances& instances_;
  std::vector<Term> terms_;
  std::vector<NamedTerm> args_;
  std::vector<std::size_t> kind_of_;
  std::vector<std::uint8_t> first_of_;
};

}  // namespace tessera::superopt
