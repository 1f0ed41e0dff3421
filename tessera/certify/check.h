#pragma once

#include "tessera/certify/certificate.h"
#include "tessera/expr/algebra.h"
#include "tessera/expr/shape.h"

namespace tessera::certify {

/// A goal while it is being proved: two sums that have to become the same.
class State {
 public:
  /// The element at any position of the two tensors of a pair.
  static Expected<State> of(const Claim& claim, std::size_t pair);

  const algebra::Sum& side(int which) const { return sides_[which]; }
  std::pair<std::string, std::string> goal() const;  // both sides, as text
  /// What holds of sizes and positions: each is >= 0.
  const std::vector<Dim>& facts() const { return facts_; }
  /// The term at a place, and what may be used there: facts, guards around it, its own guards.
  struct Site {
    const algebra::Term* term = nullptr;
    std::vector<Dim> premises = {};
    std::size_t own = 0;  // where its own guards begin among them
    enum class In : std::uint8_t { Sum, Most, Fold } in = In::Sum;
  };
  std::optional<Site> site(int side, const std::vector<std::size_t>& place) const;
  /// Whether a tensor is computed, so that its elements can be unfolded.
  bool is_computed(const std::string& tensor) const;

  /// Changes the state, or says why the step is not right and leaves the state as it is.
  Expected<Done> apply(const Step& step);
  /// Whether both sides look the same now.
  bool is_same() const;
  /// Whether they are, also as fractions (algebra::are_equal).
  bool is_proved() const;

  /// What has to be proved to replace a fold by sums and maxima; see Kind::Induct.
  struct Induction {
    algebra::Sum closed_form = {};
    Dim last = 0;  // it has to be known that this is not negative: something is taken in
    std::vector<State> obligations = {};
  };
  Expected<Induction> induction(const Site& site, std::size_t factor) const;
  /// The goal where a maximum is the first, the second, … of what it is taken of; see Kind::Cases.
  Expected<std::vector<State>> cases(const Site& site, std::size_t factor) const;
  /// The goal where a sum is below, at and above zero; see Kind::Signs. The sum is what a factor
  /// compares with zero, what `pieces` of a maximum differ by, or a factor that is 0 or 1.
  Expected<std::vector<State>> signs(const Site& site, std::size_t factor,
                                     const std::vector<Dim>& pieces) const;

 private:
  struct Tensor {
    std::shared_ptr<const Definition> definition = {};
    std::size_t output = 0;
    std::vector<std::string> operands = {};  // none and no output: an input
    Sizes sizes = {};
    TensorType type = {};
    std::optional<double> uniform = {};
    bool computed = false;
  };
  using Tensors = std::map<std::string, Tensor, std::less<>>;

  State() = default;
  algebra::Sum element(const std::string& tensor, const std::vector<Dim>& at);
  bool enter(Site& site, const algebra::Sum& sum, std::size_t term) const;
  /// Sum that replaces the term at the place of a step, from `depth` on.
  Expected<algebra::Sum> replacement_of(const algebra::Sum& sum, const Step& step,
                                        std::size_t depth, Site site);
  class Inference;
  Expected<algebra::Sum> changed(const Step& step, const Site& site);
  Expected<Done> divide_position(const Step& step);
  Expected<Done> end_by_cases(const Step& step);
  Expected<Done> end_by_signs(const Step& step);
  /// Replays the parts of a step.
  static Expected<Done> proved(std::vector<State>& obligations, const Step& step);

  std::shared_ptr<const Tensors> tensors_;
  algebra::Sum sides_[2];
  std::vector<Dim> facts_;
  algebra::Signs signs_;
  bool named_reals_ = false;
  algebra::Names names_;
};

/// Replays a certificate.
Expected<Done> check(const Certificate& certificate);

/// With what each step makes of its side, and the goals of its parts.
Expected<Certificate> recorded(Certificate certificate);
bool is_recorded(const Certificate& certificate);

}  // namespace tessera::certify
