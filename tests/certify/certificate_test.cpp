#include "tessera/certify/certificate.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tessera/certify/check.h"
#include "tessera/expr/text.h"

namespace tessera::certify {
namespace {

const Dim kN = Dim::symbol("n"), kM = Dim::symbol("m"), kI = Dim::symbol("%i0");

/// What a claim is about: inputs, definitions that are applied to them, and which are to be equal.
Claim claim(std::vector<Input> inputs,
            const std::vector<std::pair<std::string, const char*>>& values,
            std::vector<std::string> operands = {"x"}) {
  Claim result{.inputs = std::move(inputs), .values = {}, .pairs = {}, .facts = {}};
  for (const auto& [name, text] : values) {
    auto definition = parse_definition(text);
    EXPECT_TRUE(definition) << to_string(definition.error());
    if (definition)
      result.values.push_back(
          {name, std::make_shared<const Definition>(*std::move(definition)), 0, operands});
  }
  result.pairs = {{"a", "b"}};
  return result;
}

Input vector(const std::string& name, const Dim& size) {
  return {name, {DType::F32, {size}}};
}

/// The definition of a vector: what it is at i, given x of size n.
std::string of_vector(const std::string& value, const std::string& size = "#n") {
  return "define(x: f32[#n]) { out: f32[i: " + size + "] = " + value + " }";
}

/// That two expressions over a vector are equal.
Claim about(const std::string& a, const std::string& b, const Dim& size = kN) {
  return claim({vector("x", size)}, {{"a", of_vector(a).c_str()}, {"b", of_vector(b).c_str()}});
}

const Step kUnfoldSource{.kind = Kind::Unfold, .side = 0, .place = {0}};
const Step kUnfoldTarget{.kind = Kind::Unfold, .side = 1, .place = {0}};

/// `c` times a premise, and e is shown.
Reason since(std::vector<std::pair<std::size_t, Dim>> multiples, Dim scale = 1) {
  return {std::move(scale), std::move(multiples)};
}

Proof after_unfolding(std::vector<Step> steps) {
  Proof proof{kUnfoldSource, kUnfoldTarget};
  proof.insert(proof.end(), steps.begin(), steps.end());
  return proof;
}

Expected<Done> checked(const Claim& claim, const Proof& proof) {
  return check({claim, {proof}});
}

void expect_accepted(const Claim& claim, const Proof& proof) {
  const auto result = checked(claim, proof);
  EXPECT_TRUE(result) << to_string(result.error());
}

/// Not accepted; `message` is part of the reason.
void expect_rejected(const Claim& claim, const Proof& proof, std::string_view message = "") {
  const auto result = checked(claim, proof);
  ASSERT_FALSE(result) << to_text(Certificate{claim, {proof}});
  EXPECT_NE(to_string(result.error()).find(message), std::string::npos)
      << to_string(result.error());
}

/// Where both sides are after the steps: for writing tests.
State state_after(const Claim& claim, const Proof& proof) {
  auto state = State::of(claim, 0);
  EXPECT_TRUE(state) << to_string(state.error());
  for (const Step& step : proof) {
    const auto done = state->apply(step);
    EXPECT_TRUE(done) << to_string(done.error());
  }
  return *std::move(state);
}

TEST(Certificate, PrintsAsItParses) {
  Certificate certificate{about("x[i] + x[i]", "2.0 * x[i]"), {after_unfolding({})}};
  certificate.claim.inputs.push_back({"a weight", {DType::F64, {kN * 2, floor_div(kM, 2)}}, 0.1});
  certificate.claim.facts = {equal(kN, kM * 2), at_most(3, kN)};
  certificate.claim.named_reals = true;
  certificate.claim.pairs.emplace_back("a", "x");
  Step step{.kind = Kind::Induct,
            .side = 1,
            .place = {0, 1, 2},
            .item = 3,
            .dims = {min(kN, kM), Dim::symbol("%1_0") - 2},
            .reasons = {since({{0, 2}, {1, kM}}, kN), since({})},
            .parts = {{kUnfoldSource}, {}}};
  step.parts[1].push_back(step);
  certificate.proofs.push_back({step, kUnfoldTarget});
  const std::string text = to_text(certificate);
  const auto again = parse_certificate(text);
  ASSERT_TRUE(again) << to_string(again.error());
  EXPECT_EQ(to_text(*again), text);
}

TEST(Certificate, EveryKindOfInferenceHasAName) {
  for (int kind = 0; kind < kKinds; ++kind) {
    Certificate certificate{about("x[i]", "x[i]"), {{{.kind = static_cast<Kind>(kind)}}}};
    const auto again = parse_certificate(to_text(certificate));
    ASSERT_TRUE(again) << to_string(again.error());
    EXPECT_EQ(again->proofs[0][0].kind, static_cast<Kind>(kind));
  }
}

TEST(Certificate, IsNotReadWithoutItsSeal) {
  const std::string text = to_text(Certificate{about("x[i]", "x[i]"), {{}}});
  EXPECT_TRUE(parse_certificate(text));
  EXPECT_FALSE(parse_certificate(""));
  EXPECT_FALSE(parse_certificate(text + " "));
  EXPECT_FALSE(parse_certificate(text.substr(1)));
  EXPECT_FALSE(parse_certificate(text.substr(0, text.rfind("//"))));
  EXPECT_FALSE(parse_certificate(text + text));
}

TEST(Check, AcceptsWhatUnfoldsToTheSame) {
  expect_accepted(about("x[i] + x[i]", "2.0 * x[i]"), after_unfolding({}));
  expect_rejected(about("x[i] + x[i]", "3.0 * x[i]"), after_unfolding({}), "equal sums");
  expect_rejected(about("x[i] + x[i]", "2.0 * x[i]"), {kUnfoldSource}, "equal sums");
}

TEST(Check, WantsAProofOfEveryPair) {
  Certificate certificate{about("x[i]", "x[i]"), {after_unfolding({})}};
  EXPECT_TRUE(check(certificate));
  certificate.proofs.clear();
  EXPECT_FALSE(check(certificate));
  certificate.proofs = {after_unfolding({}), {}};
  EXPECT_FALSE(check(certificate));
}

TEST(Check, WantsTensorsThatFit) {
  const Claim good = about("x[i]", "x[i]");
  Claim bad = good;
  bad.pairs[0].second = "c";
  expect_rejected(bad, after_unfolding({}), "no tensor");
  bad = good;
  bad.values[0].operands = {"y"};
  expect_rejected(bad, after_unfolding({}), "not known");
  bad = good;
  bad.values[0].operands = {};
  expect_rejected(bad, after_unfolding({}), "does not fit");
  bad = good;
  bad.values[0].output = 1;
  expect_rejected(bad, after_unfolding({}), "does not fit");
  bad = good;
  bad.values[1].name = "x";
  expect_rejected(bad, after_unfolding({}), "twice");
  bad = good;
  bad.inputs.push_back(bad.inputs[0]);
  expect_rejected(bad, after_unfolding({}), "twice");
  bad = good;
  bad.inputs[0].type.shape.push_back(2);
  expect_rejected(bad, after_unfolding({}));
  bad = good;
  Definition wide = *bad.values[1].definition;
  wide.outputs[0].dtype = DType::F64;
  bad.values[1].definition = std::make_shared<const Definition>(std::move(wide));
  expect_rejected(bad, after_unfolding({}), "types");
}

TEST(Check, SizesAreEqualOnlyWhereAFactSaysSo) {
  Claim claim =
      certify::claim({vector("x", kN), vector("y", kM)},
                     {{"a", "define(x: f32[#n], y: f32[#n]) { out: f32[i: #n] = x[i] + y[i] }"},
                      {"b", "define(x: f32[#n], y: f32[#n]) { out: f32[i: #n] = y[i] + x[i] }"}},
                     {"x", "y"});
  expect_rejected(claim, after_unfolding({}), "does not fit");
  claim.facts = {equal(kN, kM)};
  expect_accepted(claim, after_unfolding({}));
  claim.facts = {at_most(kN, kM)};
  expect_rejected(claim, after_unfolding({}), "does not fit");
}

TEST(Check, KnowsNoOtherPlaces) {
  const Claim claim = about("x[i] + x[i]", "2.0 * x[i]");
  for (const Step& step :
       {Step{.kind = Kind::Unfold, .side = 2, .place = {0}},
        Step{.kind = Kind::Unfold, .side = -1, .place = {0}},
        Step{.kind = Kind::Unfold, .place = {}}, Step{.kind = Kind::Unfold, .place = {1}},
        Step{.kind = Kind::Unfold, .place = {0, 0}}, Step{.kind = Kind::Unfold, .place = {0, 0, 0}},
        Step{.kind = Kind::Unfold, .place = {0, 9, 9, 9}},
        Step{.kind = Kind::Unfold, .place = {0}, .item = 1},
        Step{.kind = static_cast<Kind>(99), .place = {0}}})
    expect_rejected(claim, {step});
}

TEST(Check, UnfoldsOnlyWhatIsComputed) {
  const Claim claim = about("x[i]", "x[i]");
  expect_rejected(claim, {kUnfoldSource, kUnfoldSource}, "not computed");
}

// --- Each kind of inference: the right use, and wrong ones
// ------------------------------------------

// x[i] where i is in range, as pad and slice leave it: premise 0 is n - 1 >= 0, premise 1 that the
// position is in range; then come the guards of the term.
const Claim& guarded() {
  static const Claim kClaim = about("select(i < size(#n), x[i], 0.0)", "x[i]");
  return kClaim;
}

TEST(CheckDrop, TakesAGuardThatFollows) {
  const Step drop{.kind = Kind::Drop, .place = {0}, .reasons = {since({{1, 1}})}};
  const State state = state_after(guarded(), after_unfolding({}));
  ASSERT_EQ(state.facts().size(), 2u);
  ASSERT_EQ(state.side(0).terms[0].guards, (std::vector<Dim>{kN - 1 - kI}));
  // The other half, where i >= n, is nothing.
  const Step nothing{.kind = Kind::Void, .place = {1}, .reasons = {since({{1, 1}, {2, 1}})}};
  expect_accepted(guarded(), after_unfolding({drop}));
}

TEST(CheckDrop, WantsAReasonThatHolds) {
  for (const std::vector<Reason>& reasons :
       std::vector<std::vector<Reason>>{{},
                                        {since({})},
                                        {since({{0, 1}})},
                                        {since({{1, -1}})},
                                        {since({{1, 2}})},
                                        {since({{7, 1}})},
                                        {since({{1, 1}}, -1)},
                                        {since({{1, 1}}, 0)},
                                        {since({{1, Dim::undefined()}})},
                                        {since({{1, 1}}), since({{1, 1}})}})
    expect_rejected(guarded(),
                    after_unfolding({{.kind = Kind::Drop, .place = {0}, .reasons = reasons}}));
  // A guard does not show itself.
  expect_rejected(
      guarded(),
      after_unfolding({{.kind = Kind::Drop, .place = {0}, .reasons = {since({{2, 1}})}}}),
      "does not follow");
  expect_rejected(
      guarded(),
      after_unfolding(
          {{.kind = Kind::Drop, .place = {0}, .item = 1, .reasons = {since({{1, 1}})}}}),
      "no guard");
  // Nor does one follow that says something.
  expect_rejected(
      about("select(i < 3, x[i], 0.0)", "x[i]"),
      after_unfolding({{.kind = Kind::Drop, .place = {0}, .reasons = {since({{1, 1}})}}}));
}

TEST(CheckVoid, WantsAContradiction) {
  const Claim claim = about("x[i] + select(i >= size(#n), x[i], 0.0)", "x[i]");
  const State state = state_after(claim, after_unfolding({}));
  ASSERT_EQ(state.side(0).terms[1].guards, (std::vector<Dim>{kI - kN}));
  expect_accepted(
      claim,
      after_unfolding({{.kind = Kind::Void, .place = {1}, .reasons = {since({{1, 1}, {2, 1}})}}}));
  expect_rejected(
      claim, after_unfolding({{.kind = Kind::Void, .place = {1}, .reasons = {since({{2, 1}})}}}),
      "contradict");
  expect_rejected(claim, after_unfolding({{.kind = Kind::Void, .place = {1}}}), "contradict");
  // The guards of one term say nothing about another.
  expect_rejected(
      claim,
      after_unfolding({{.kind = Kind::Void, .place = {0}, .reasons = {since({{1, 1}, {2, 1}})}}}),
      "contradict");
}

TEST(CheckSplit, HasBothHalves) {
  const Claim claim = about("x[i]", "select(i < 3, x[i], 0.0) + select(i >= 3, x[i], 0.0)");
  expect_accepted(claim, after_unfolding({{.kind = Kind::Split, .place = {0}, .dims = {2 - kI}}}));
  expect_rejected(claim, after_unfolding({{.kind = Kind::Split, .place = {0}, .dims = {3 - kI}}}),
                  "equal sums");
  expect_rejected(claim, after_unfolding({{.kind = Kind::Split, .place = {0}}}), "one condition");
  expect_rejected(about("x[i]", "select(i < 3, x[i], 0.0)"),
                  after_unfolding({{.kind = Kind::Split, .place = {0}, .dims = {2 - kI}}}),
                  "equal sums");
}

TEST(CheckTighten, WantsBothDirections) {
  // 2*i <= 2*n - 1 says i <= n - 1.
  const Claim claim =
      about("select(2*i < size(2*#n - 3), x[i], 0.0)", "select(i < size(#n - 2), x[i], 0.0)");
  const State state = state_after(claim, after_unfolding({}));
  ASSERT_EQ(state.side(0).terms[0].guards, (std::vector<Dim>{kN * 2 - 4 - kI * 2}));
  const Dim tight = kN - 3 - kI, loose = kN - 2 - kI;
  const auto tighten = [](const Dim& to, std::vector<Reason> reasons) {
    return after_unfolding(
        {{.kind = Kind::Tighten, .place = {0}, .dims = {to}, .reasons = std::move(reasons)}});
  };
  // i <= n - 2 is the same; n - 3 is more.
  const Claim same =
      about("select(2*i < size(2*#n - 3), x[i], 0.0)", "select(i < size(#n - 1), x[i], 0.0)");
  expect_accepted(same, tighten(loose, {since({{2, 1}}, 2), since({{2, 2}})}));
  expect_rejected(claim, tighten(tight, {since({{2, 1}}, 2), since({{2, 2}})}), "new guard");
  expect_rejected(same, tighten(loose, {since({{2, 1}}, 2)}), "old guard");
  expect_rejected(same, tighten(loose, {since({}), since({{2, 2}})}), "new guard");
  // Less than it says.
  expect_rejected(same, tighten(loose + 1, {since({{2, 1}}, 2), since({{2, 2}})}), "old guard");
}

/// sum over k of x[k] where k = i, and premises: 0: n - 1, 1: n - 1 - i, 2: n - 1 - k, 3, 4: k = i.
const Claim& delta() {
  static const Claim kClaim = about("sum(k: #n) { select(k == i, x[k], 0.0) }", "x[i]");
  return kClaim;
}

TEST(CheckSolve, WantsBothGuards) {
  const State state = state_after(delta(), after_unfolding({}));
  ASSERT_EQ(state.side(0).terms[0].guards.size(), 3u);
  const Step solve{.kind = Kind::Solve, .place = {0}, .dims = {kI}};
  const Step drop{.kind = Kind::Drop, .place = {0}, .reasons = {since({{1, 1}})}};
  expect_accepted(delta(), after_unfolding({solve, drop}));
  Step wrong = solve;
  wrong.item = 1;
  expect_rejected(delta(), after_unfolding({wrong, drop}), "bound variable");
  wrong = solve;
  wrong.dims = {kI + 1};
  expect_rejected(delta(), after_unfolding({wrong}), "not pinned");
  wrong.dims = {};
  expect_rejected(delta(), after_unfolding({wrong}), "bound variable");
  wrong.dims = {Dim::symbol(state.side(0).terms[0].bound[0])};
  expect_rejected(delta(), after_unfolding({wrong}), "bound variable");
  // Only k <= i.
  expect_rejected(about("sum(k: #n) { select(k <= i, x[k], 0.0) }", "x[i]"),
                  after_unfolding({solve, drop}), "not pinned");
  // The solution may be negative: it has to be seen that it is not.
  const Claim shifted = about("sum(k: #n) { select(k == i - 1, x[k], 0.0) }", "x[i - 1]");
  expect_rejected(
      shifted,
      after_unfolding({{.kind = Kind::Solve, .place = {0}, .dims = {kI - 1}},
                       {.kind = Kind::Drop, .place = {0}, .reasons = {since({{1, 1}})}}}),
      "equal sums");
}

TEST(CheckPin, IsForVariablesFromOutsideWithOneValue) {
  // Where n is 1, i is 0.
  const Claim claim = about("select(size(#n) <= 1, x[i], 0.0)", "select(size(#n) <= 1, x[0], 0.0)");
  const State state = state_after(claim, after_unfolding({}));
  ASSERT_EQ(state.side(0).terms[0].guards, (std::vector<Dim>{1 - kN}));
  const auto pin = [](std::vector<Dim> dims, std::vector<Reason> reasons) {
    return Step{
        .kind = Kind::Pin, .place = {0}, .dims = std::move(dims), .reasons = std::move(reasons)};
  };
  const std::vector<Reason> good = {since({}), since({{1, 1}, {2, 1}})};
  Proof proof = after_unfolding({pin({kI, 0}, good)});
  const State pinned = state_after(claim, proof);
  // What is pinned is still said: i = 0 follows from the rest.
  expect_rejected(claim, proof, "equal sums");
  Step drop{.kind = Kind::Drop, .place = {0}, .item = 0, .reasons = {since({{1, 1}, {3, 1}})}};
  for (std::size_t i = 0; i < pinned.side(0).terms[0].guards.size(); ++i)
    if (pinned.side(0).terms[0].guards[i] == -kI) drop.item = i;
  for (std::size_t i = 0; i < pinned.side(0).terms[0].guards.size(); ++i)
    if (pinned.side(0).terms[0].guards[i] == 1 - kN) drop.reasons = {since({{1, 1}, {2 + i, 1}})};
  proof.push_back(drop);
  expect_accepted(claim, proof);

  expect_rejected(claim, after_unfolding({pin({kI, 1}, good)}), "other values");
  expect_rejected(claim, after_unfolding({pin({kI, 0}, {since({})})}), "other values");
  expect_rejected(claim, after_unfolding({pin({kI, 0}, {since({}), since({{1, 1}})})}),
                  "other values");
  expect_rejected(claim, after_unfolding({pin({kI, kM}, good)}), "other values");
  expect_rejected(claim, after_unfolding({pin({kI, kI}, good)}), "itself");
  expect_rejected(claim, after_unfolding({pin({kI + 1, 1}, good)}), "variable");
  expect_rejected(claim, after_unfolding({pin({kI}, good)}), "variable");
  // A variable that is bound there.
  const State sum = state_after(delta(), after_unfolding({}));
  const Dim bound = Dim::symbol(sum.side(0).terms[0].bound[0]);
  expect_rejected(delta(), after_unfolding({pin({bound, 0}, {since({}), since({})})}), "is bound");
}

TEST(CheckShift, WantsALeastValue) {
  // sum over 2 <= k < n of x[k] = sum over k < n - 2 of x[k + 2]
  const char* shifted = "sum(k: #n) { select(k >= 2, x[k], 0.0) }";
  const Claim claim = about(shifted, "sum(k: #n) { select(k + 2 < size(#n), x[k + 2], 0.0) }");
  const State state = state_after(claim, after_unfolding({}));
  ASSERT_EQ(state.side(0).terms[0].guards.size(), 2u);
  const auto shift = [](std::vector<Dim> dims, std::vector<Reason> reasons, std::size_t item = 0) {
    return Step{.kind = Kind::Shift,
                .place = {0},
                .item = item,
                .dims = std::move(dims),
                .reasons = std::move(reasons)};
  };
  // Premises 2 and 3 are the guards; the one that says k >= 2 shows it.
  const bool first = state.side(0).terms[0].guards[0].least() == -2;
  const std::size_t at_least = first ? 2 : 3;
  const State moved = state_after(claim, after_unfolding({shift({2}, {since({{at_least, 1}})})}));
  EXPECT_EQ(moved.side(0).terms[0].guards.size(), 1u);
  expect_rejected(claim, after_unfolding({shift({3}, {since({{at_least, 1}})})}), "may be less");
  expect_rejected(claim, after_unfolding({shift({2}, {})}), "may be less");
  expect_rejected(claim, after_unfolding({shift({2}, {since({{at_least, 1}})}, 1)}),
                  "bound variable");
  expect_rejected(
      claim, after_unfolding({shift({Dim::symbol(state.side(0).terms[0].bound[0])}, {since({})})}),
      "bound variable");
}

TEST(CheckDivide, WantsASizeOfAtLeastOne) {
  const Claim claim = about("sum(k: 2*#n) { 1.0 } + x[i]", "sum(a: #n, b: 2) { 1.0 } + x[i]");
  const auto divide = [](std::vector<Dim> dims, std::vector<Reason> reasons) {
    return after_unfolding({{.kind = Kind::Divide,
                             .place = {0},
                             .dims = std::move(dims),
                             .reasons = std::move(reasons)}});
  };
  const State state = state_after(claim, divide({2}, {since({})}));
  EXPECT_EQ(state.side(0).terms.back().bound.size() + state.side(0).terms.front().bound.size(), 2u);
  state_after(claim, divide({kN}, {since({{0, 1}})}));
  expect_rejected(claim, divide({kN}, {since({})}), "at least 1");
  expect_rejected(claim, divide({kM}, {since({{0, 1}})}), "at least 1");
  expect_rejected(claim, divide({0}, {since({})}), "at least 1");
  expect_rejected(claim, divide({-2}, {since({})}), "at least 1");
  expect_rejected(claim, divide({}, {since({})}), "size");
}

TEST(CheckDivide, APositionIsWrittenAnewOnce) {
  // Were %i0 divided again, what is known of its parts would be said of other parts.
  const Claim claim = about("x[i]", "x[0]");
  const auto divide = [](const Dim& position, const Dim& size, Reason reason) {
    return Step{.kind = Kind::Divide,
                .place = {},
                .dims = {position, size},
                .reasons = {std::move(reason)}};
  };
  const Proof by_two = after_unfolding({divide(kI, 2, since({}))});
  state_after(claim, by_two);
  expect_rejected(claim, after_unfolding({divide(kI, 2, since({})), divide(kI, 1, since({}))}),
                  "position");
  expect_rejected(claim, after_unfolding({divide(kN, 1, since({}))}), "position");
  expect_rejected(claim, after_unfolding({divide(Dim::symbol("%i7"), 1, since({}))}), "position");
  expect_rejected(claim, after_unfolding({divide(kI, kI, since({}))}), "at least 1");
  expect_rejected(claim, after_unfolding({divide(kI, 0, since({}))}), "at least 1");
}

TEST(CheckSettle, WantsTheQuotientAndNoPremiseThatSpeaksOfIt) {
  // (2*i + 1) / 2 = i
  const Claim claim = about("x[floor_div(2*i + size(#n), 2) - i]", "x[floor_div(size(#n), 2)]");
  const Dim half = floor_div(kN, 2);
  const State state = state_after(claim, after_unfolding({}));
  EXPECT_TRUE(state.is_proved()) << "multiples come out by themselves";

  // Where n <= 3, n / 4 is 0.
  const Claim small = about("select(size(#n) <= 3, x[floor_div(size(#n), 4)], 0.0)",
                            "select(size(#n) <= 3, x[0], 0.0)");
  const Dim quarter = floor_div(kN, 4);
  const auto settle = [](std::vector<Dim> dims, std::vector<Reason> reasons) {
    return after_unfolding({{.kind = Kind::Settle,
                             .place = {0},
                             .dims = std::move(dims),
                             .reasons = std::move(reasons)}});
  };
  const std::vector<Reason> good = {since({}), since({}), since({{2, 1}})};
  expect_accepted(small, settle({quarter, 0}, good));
  expect_rejected(small, settle({quarter, 1}, good), "quotient");
  expect_rejected(small, settle({quarter, 0}, {since({}), since({}), since({})}), "quotient");
  expect_rejected(small, settle({quarter, 0}, {since({}), since({})}), "quotient");
  expect_rejected(small, settle({quarter}, good), "value");
  expect_rejected(small, settle({kN, 0}, good), "no operation");
  expect_rejected(small, settle({quarter + 1, 1}, good), "no operation");
  expect_rejected(small, settle({}, good), "operation");
  expect_rejected(small, settle({floor_div(kN, kM), 0}, good), "divisor");

  // That n/4 <= 0 is what the guard says; it would speak of nothing once it is used.
  const Claim circular =
      about("select(size(floor_div(#n, 4)) <= 0, x[floor_div(size(#n), 4)], 0.0)", "x[0]");
  for (std::size_t premise : {2, 3})
    expect_rejected(circular, settle({quarter, 0}, {since({}), since({}), since({{premise, 4}})}));
}

TEST(CheckSettle, WantsTheSmallerOfAMinimum) {
  const Claim claim = about("x[min(i, size(#n))]", "x[i]");
  const Dim least = min(kI, kN);
  const auto settle = [&](const Dim& operation, const Dim& to, Reason reason) {
    return after_unfolding({{.kind = Kind::Settle,
                             .place = {0},
                             .dims = {operation, to},
                             .reasons = {std::move(reason)}}});
  };
  expect_accepted(claim, settle(least, kI, since({{1, 1}})));
  expect_rejected(claim, settle(least, kN, since({{1, 1}})), "order");
  expect_rejected(claim, settle(least, kI, since({})), "order");
  expect_rejected(claim, settle(least, 0, since({{1, 1}})), "both sides");
  const Claim largest = about("x[max(i, size(#n)) - size(#n)]", "x[0]");
  expect_accepted(largest, settle(max(kI, kN), kN, since({{1, 1}})));
  expect_rejected(largest, settle(max(kI, kN), kI, since({{1, 1}})), "order");
}

TEST(CheckQuotient, WantsNothingNegative) {
  const Claim claim =
      about("x[floor_div(i, 2)]", "sum(q: #n) { select(q == floor_div(i, 2), x[q], 0.0) }");
  const auto quotient = [](const Dim& of, std::vector<Reason> reasons) {
    return after_unfolding(
        {{.kind = Kind::Quotient, .place = {0}, .dims = {of}, .reasons = std::move(reasons)}});
  };
  const State state = state_after(claim, quotient(floor_div(kI, 2), {since({}), since({})}));
  EXPECT_EQ(state.side(0).terms[0].bound.size(), 1u);
  EXPECT_EQ(state.side(0).terms[0].guards.size(), 2u);
  expect_rejected(claim, quotient(floor_div(kI, 2), {since({})}), "negative");
  expect_rejected(claim, quotient(floor_div(kI - kN, 2), {since({}), since({})}), "negative");
  expect_rejected(claim, quotient(floor_div(kI, kM), {since({}), since({})}), "divisor");
  expect_rejected(claim, quotient(min(kI, kN), {since({}), since({})}), "one of both");
}

TEST(CheckCount, IsForVariablesThatNothingSpeaksOf) {
  const auto count = [](std::vector<Reason> reasons) {
    return after_unfolding({{.kind = Kind::Count, .place = {0}, .reasons = std::move(reasons)}});
  };
  expect_accepted(about("sum(k: #n) { x[i] }", "x[i] * f32(size(#n))"), count({since({})}));
  expect_rejected(about("sum(k: #n) { x[k] }", "x[i] * f32(size(#n))"), count({since({})}),
                  "spoken of");
  expect_rejected(about("sum(k: #n) { x[i] * f32(k) }", "x[i] * f32(size(#n))"), count({since({})}),
                  "spoken of");
  expect_rejected(about("sum(k: #n) { exp(x[k]) }", "exp(x[i]) * f32(size(#n))"),
                  count({since({})}), "spoken of");
  expect_rejected(about("sum(k: #n) { select(2*k < i, x[i], 0.0) }", "x[i] * f32(size(#n))"),
                  count({since({})}));
  expect_rejected(about("sum(k: #n) { x[i] }", "x[i] * f32(size(#n))"), count({}), "no value");
}

TEST(CheckCount, ARangeDoesNotShowThatItIsNotEmpty) {
  // For n = 1 the sum is 0, not -2 * x[i].
  const Claim claim = about("sum(k: #n - 3) { x[i] }", "x[i] * f32(size(#n - 3))");
  const State state = state_after(claim, after_unfolding({}));
  ASSERT_EQ(state.side(0).terms[0].guards.size(), 1u);
  for (std::size_t premise : {0, 1, 2})
    expect_rejected(
        claim,
        after_unfolding({{.kind = Kind::Count, .place = {0}, .reasons = {since({{premise, 1}})}}}),
        "no value");
  // Nor in a maximum: for n = 1 it is 0, the other one.
  const Claim most = about("max(max_of(k: #n - 3) { x[i] }, 0.0)", "max(x[i], 0.0)");
  expect_rejected(most, after_unfolding({}));
  for (std::size_t group : {0, 1})
    for (std::size_t premise : {0, 1, 2})
      expect_rejected(most, after_unfolding({{.kind = Kind::Count,
                                              .place = {0, 0, 0, group},
                                              .reasons = {since({{premise, 1}})}}}));
}

TEST(CheckAttain, WantsValuesInRange) {
  // The largest of n equal numbers.
  const Claim claim =
      about("max_of(k: #n) { max(x[i], x[k]) }", "max(x[i], max_of(k: #n) { x[k] })");
  const State state = state_after(claim, after_unfolding({}));
  const std::vector<algebra::Term>& groups = (*state.side(0).terms[0].factors[0].args)[0].terms;
  std::size_t group = 0;
  while (group < groups.size() &&
         (groups[group].bound.empty() ||
          algebra::contains(groups[group].factors[0], groups[group].bound[0])))
    ++group;
  ASSERT_LT(group, groups.size());
  const auto attain = [&](std::vector<Dim> dims, std::vector<Reason> reasons) {
    return after_unfolding({{.kind = Kind::Attain,
                             .place = {0, 0, 0, group},
                             .dims = std::move(dims),
                             .reasons = std::move(reasons)}});
  };
  expect_accepted(claim, attain({0}, {since({}), since({{0, 1}})}));
  expect_rejected(claim, attain({0}, {since({}), since({})}), "out of range");
  expect_rejected(claim, attain({kN}, {since({}), since({{0, 1}})}), "out of range");
  expect_rejected(claim, attain({-1}, {since({}), since({{0, 1}})}), "negative");
  expect_rejected(claim, attain({}, {since({}), since({{0, 1}})}), "values");
  expect_rejected(claim, attain({Dim::symbol(groups[group].bound[0])}, {since({}), since({})}));
  // The other one does speak of its variable.
  Proof other = attain({0}, {since({}), since({{0, 1}})});
  other.back().place.back() = 1 - group;
  expect_rejected(claim, other, "spoken of");
  // Only in a maximum.
  expect_rejected(about("sum(k: #n) { x[i] }", "x[i]"),
                  after_unfolding({{.kind = Kind::Attain,
                                    .place = {0},
                                    .dims = {0},
                                    .reasons = {since({}), since({{0, 1}})}}}),
                  "maximum");
}

TEST(CheckInduct, WantsItsObligations) {
  const Claim claim =
      about("fold(k: #n) { from 0.0  take x[k]  by left.0 + right.0 + 0.0*left.0*right.0 }",
            "sum(k: #n) { x[k] }");
  const auto induct = [](std::vector<Reason> reasons, std::vector<Proof> parts) {
    return after_unfolding({{.kind = Kind::Induct,
                             .place = {0},
                             .reasons = std::move(reasons),
                             .parts = std::move(parts)}});
  };
  expect_rejected(claim, induct({since({})}, {}));
  expect_rejected(claim, induct({}, {{}, {}}));
  expect_rejected(claim, induct({since({{0, 1}})}, {{}, {}, {}}));
  // A difference is no sum.
  const Claim wrong =
      about("fold(k: #n) { from 0.0  take x[k]  by right.0 - left.0 }", "sum(k: #n) { x[k] }");
  expect_rejected(wrong, induct({since({{0, 1}})}, {{}, {}}));
}

TEST(CheckCases, WantsAProofOfEachCase) {
  const auto cases = [](std::vector<std::size_t> place, std::vector<Proof> parts) {
    return after_unfolding(
        {{.kind = Kind::Cases, .place = std::move(place), .parts = std::move(parts)}});
  };
  const Claim claim = about("max(x[i], 0.0) * max(x[i], 0.0)", "x[i] * max(x[i], 0.0)");
  expect_accepted(claim, cases({0}, {{}, {}}));
  expect_rejected(claim, cases({0}, {{}}), "obligations");
  expect_rejected(claim, cases({0}, {{}, {}, {}}), "obligations");
  expect_rejected(claim, cases({1}, {{}, {}}), "place");
  expect_rejected(claim, cases({}, {{}, {}}));
  expect_rejected(about("max(x[i], 0.0) * max(x[i], 0.0)", "x[i] * x[i]"), cases({0}, {{}, {}}),
                  "not proved");
  expect_rejected(about("x[i]", "x[i] + max(x[i], 0.0)"), cases({0}, {{}, {}}), "no maximum");
  // A maximum that comes back is the same one.
  expect_accepted(
      about("max(x[i] + max(x[i], 0.0), 0.0)", "2.0 * max(x[i], 0.0)"),
      after_unfolding({{.kind = Kind::Cases, .side = 1, .place = {0}, .parts = {{}, {}}}}));
}

TEST(CheckCases, AreOfOneNumber) {
  const auto cases = after_unfolding({{.kind = Kind::Cases, .place = {0}, .parts = {{}, {}}}});
  // One of many may be above zero, another below.
  expect_rejected(about("sum(k: #n) { max(x[k], 0.0) }", "0.0*x[i]"), cases, "bound variable");
  expect_rejected(about("max_of(k: #n) { x[k] }", "x[i]"), cases, "range");
}

TEST(CheckSigns, WantsAProofOfEachSign) {
  const auto signs = [](int side, std::vector<Dim> pieces, std::vector<Proof> parts) {
    return after_unfolding({{.kind = Kind::Signs,
                             .side = side,
                             .place = {0},
                             .dims = std::move(pieces),
                             .parts = std::move(parts)}});
  };
  const Claim claim = about("max(x[i], 0.0)", "select(x[i] < 0.0, 0.0, x[i])");
  expect_accepted(claim, signs(0, {0, 1}, {{}, {}, {}}));
  expect_rejected(claim, signs(0, {0, 1}, {{}, {}}), "obligations");
  expect_rejected(claim, signs(0, {0}, {{}, {}, {}}), "two parts");
  expect_rejected(claim, signs(0, {0, 2}, {{}, {}, {}}), "no such part");
  expect_rejected(about("max(x[i], 0.0)", "select(x[i] < 1.0, 0.0, x[i])"),
                  signs(0, {0, 1}, {{}, {}, {}}), "not proved");
  expect_rejected(about("x[i]", "max(x[i], 0.0)"), signs(0, {}, {{}, {}, {}}), "neither");
  // A square is not below zero.
  expect_accepted(about("max(x[i], 0.0 - x[i]) * max(x[i], 0.0 - x[i])", "x[i] * x[i]"),
                  after_unfolding({}));
}

TEST(CheckSigns, AreOfOneNumber) {
  expect_rejected(
      about("sum(k: #n) { max(x[k], 0.0) }", "0.0*x[i]"),
      after_unfolding({{.kind = Kind::Signs, .place = {0}, .dims = {0, 1}, .parts = {{}, {}, {}}}}),
      "hangs on more");
}

TEST(CheckReverse, WantsTheLargestValue) {
  const Claim claim = about("sum(k: #n) { x[size(#n) - 1 - k] }", "sum(k: #n) { x[k] }");
  const auto reverse = [](const Dim& last) {
    return after_unfolding({{.kind = Kind::Reverse, .place = {0}, .dims = {last}}});
  };
  expect_accepted(claim, reverse(kN - 1));
  expect_rejected(claim, reverse(kN), "may be larger");
  expect_rejected(claim, reverse(kN - 2), "may be larger");
  expect_rejected(about("x[i]", "x[i]"), reverse(kN - 1), "bound variable");
}

// --- Names that are the checker's own
// --------------------------------------------------------------

TEST(Check, SizesMayNotTakeTheNamesOfPositions) {
  // Were n the position %i0, the position being below it would be a contradiction.
  for (const char* name : {"%i0", "%1", "%1_0", "%k", "%i0a"}) {
    const Claim claim = about("x[i]", "2.0 * x[i]", Dim::symbol(name));
    EXPECT_FALSE(State::of(claim, 0)) << name;
  }
  const Claim claim = about("x[i]", "2.0 * x[i]", kI);
  const Step nothing0{
      .kind = Kind::Void, .side = 0, .place = {0}, .reasons = {since({{0, 1}, {1, 1}})}};
  Step nothing1 = nothing0;
  nothing1.side = 1;
  expect_rejected(claim, after_unfolding({nothing0, nothing1}));
}

TEST(Check, AFactorOfASizeMayBeNegativeWithAnother) {
  const Dim p = min(kM - 5, kN - 5), q = min(kM - 7, kN - 6);
  const Claim claim = about("x[i]", "x[i]", p * q);
  const State state = state_after(claim, {});
  for (const Dim& factor : {p, q})
    EXPECT_EQ(std::ranges::find(state.facts(), factor - 1), state.facts().end());
}

TEST(Check, TensorsMayNotTakeTheNamesOfNumbers) {
  // A tensor that is called as pi is would be pi.
  Claim claim{.inputs = {{"%pi", {DType::F32, {}}}, {"c", {DType::F32, {}}, 3.14159274}},
              .values = {},
              .pairs = {{"%pi", "c"}},
              .facts = {},
              .named_reals = true};
  expect_rejected(claim, {});
}

TEST(Check, TheOrderOfAFoldCounts) {
  // The first that is not zero, by rows and by columns.
  const char* rows =
      "define(x: f32[#m, #n]) { out: f32[] = fold(i: #m, j: #n) { from 0.0  take x[i, j]  by "
      "select(left.0 == 0.0, right.0, left.0) } }";
  const char* columns =
      "define(x: f32[#m, #n]) { out: f32[] = fold(j: #n, i: #m) { from 0.0  take x[i, j]  by "
      "select(left.0 == 0.0, right.0, left.0) } }";
  expect_rejected(claim({{"x", {DType::F32, {kM, kN}}}}, {{"a", rows}, {"b", columns}}),
                  after_unfolding({}));
}

}  // namespace
}  // namespace tessera::certify
