#include <algorithm>
#include <array>

#include "tessera/certify/certificate.h"
#include "tessera/expr/text.h"
#include "tessera/support/hash.h"

namespace tessera::certify {
namespace {

constexpr std::array<std::string_view, kKinds> kNames = {
    "unfold", "split",  "void",     "drop",  "tighten", "solve",  "pin",   "shift", "reverse",
    "divide", "settle", "quotient", "count", "attain",  "induct", "cases", "signs"};

std::uint64_t seal_of(std::string_view text) {
  Hasher hasher;
  hasher.add_text(text);
  return hasher.value();
}

/// `<= "…"` and so on: what a step makes of a side, and the goals of its parts.
std::string quoted_list(std::string_view word, const std::vector<std::string>& texts) {
  std::string text;
  for (const std::string& each : texts) text += fmt::format(" {} {}", word, quoted_text(each));
  return text;
}

void write(const Proof& proof, const std::string& indent, std::string& text) {
  for (const Step& step : proof) {
    text += fmt::format("{}{} {} [{}] {} [", indent, to_string(step.kind), step.side,
                        fmt::join(step.place, ", "), step.item);
    for (std::size_t i = 0; i < step.dims.size(); ++i)
      text += (i == 0 ? "" : ", ") + step.dims[i].to_string();
    text += "]";
    for (const Reason& reason : step.reasons) {
      text += fmt::format(" since {} (", reason.scale.to_string());
      for (std::size_t i = 0; i < reason.multiples.size(); ++i)
        text += fmt::format("{}{}: {}", i == 0 ? "" : ", ", reason.multiples[i].first,
                            reason.multiples[i].second.to_string());
      text += ")";
    }
    text += quoted_list("=>", step.results);
    for (std::size_t i = 0; i < step.parts.size(); ++i) {
      text += " {\n";
      if (i < step.goals.size())
        text += fmt::format("{}  goal {} {}\n", indent, quoted_text(step.goals[i].first),
                            quoted_text(step.goals[i].second));
      write(step.parts[i], indent + "  ", text);
      text += indent + "}";
    }
    text += "\n";
  }
}

class Parser {
 public:
  explicit Parser(std::string_view text) : lexer_(text) {}

  Expected<Certificate> certificate() {
    Certificate result;
    Claim& claim = result.claim;
    TESSERA_TRY_DONE(subject(result.subject));
    claim.named_reals = lexer_.accept("named_reals");
    while (lexer_.accept("input")) {
      Input input;
      TESSERA_TRY(input.name, lexer_.name("a name"));
      TESSERA_TRY_DONE(lexer_.expect(":"));
      const auto dtype = parse_dtype(lexer_.peek().text);
      if (!dtype) return lexer_.expected("a type");
      lexer_.take();
      input.type.dtype = *dtype;
      TESSERA_TRY(input.type.shape, dims());
      if (lexer_.accept("=")) {
        TESSERA_TRY(input.uniform, lexer_.number("a number"));
      }
      if (lexer_.accept("is")) {
        TESSERA_TRY(input.content, lexer_.string("the elements"));
      }
      claim.inputs.push_back(std::move(input));
    }
    while (lexer_.accept("value")) {
      Value value;
      TESSERA_TRY(value.name, lexer_.name("a name"));
      TESSERA_TRY_DONE(lexer_.expect("="));
      if (lexer_.accept("of")) {
        TESSERA_TRY(value.call, lexer_.string("an operator"));
      }
      TESSERA_TRY(value.output, natural());
      TESSERA_TRY_DONE(lexer_.expect("("));
      while (!lexer_.accept(")")) {
        TESSERA_TRY(std::string operand, lexer_.name("an operand"));
        value.operands.push_back(std::move(operand));
        if (!lexer_.at(")")) TESSERA_TRY_DONE(lexer_.expect(","));
      }
      TESSERA_TRY(Definition definition, parse_definition(lexer_));
      value.definition = std::make_shared<const Definition>(std::move(definition));
      claim.values.push_back(std::move(value));
    }
    while (lexer_.accept("fact")) {
      TESSERA_TRY(Condition condition, parse_condition(lexer_));
      claim.facts.push_back(std::move(condition));
    }
    while (lexer_.accept("pair")) {
      TESSERA_TRY(std::string source, lexer_.name("a name"));
      TESSERA_TRY(std::string target, lexer_.name("a name"));
      claim.pairs.emplace_back(std::move(source), std::move(target));
      TESSERA_TRY_DONE(lexer_.expect("{"));
      TESSERA_TRY(Proof steps, proof());
      result.proofs.push_back(std::move(steps));
    }
    TESSERA_TRY_DONE(lexer_.end());
    return result;
  }

 private:
  Expected<Done> subject(Subject& subject) {
    while (lexer_.accept("assume")) {
      TESSERA_TRY(std::string kind, lexer_.string("a kind of assumption"));
      TESSERA_TRY(std::string clause, lexer_.string("an assumption"));
      subject.assumptions.emplace_back(std::move(kind), std::move(clause));
    }
    while (lexer_.accept("witness")) {
      const Diagnostic twice = lexer_.error("a size is given twice");
      TESSERA_TRY(std::string size, lexer_.name("a size"));
      TESSERA_TRY_DONE(lexer_.expect("="));
      TESSERA_TRY(const std::int64_t value, lexer_.integer("a number"));
      if (!subject.witness.emplace(std::move(size), value).second) return twice;
    }
    return Done{};
  }

  Expected<std::size_t> natural() {
    const Diagnostic negative = lexer_.error("a number here is not negative");
    TESSERA_TRY(const std::int64_t value, lexer_.integer("a number"));
    if (value < 0) return negative;
    return static_cast<std::size_t>(value);
  }

  Expected<std::vector<Dim>> dims() {
    std::vector<Dim> result;
    TESSERA_TRY_DONE(lexer_.expect("["));
    while (!lexer_.accept("]")) {
      TESSERA_TRY(Dim dim, parse_dim(lexer_));
      result.push_back(std::move(dim));
      if (!lexer_.at("]")) TESSERA_TRY_DONE(lexer_.expect(","));
    }
    return result;
  }

  /// After the brace.
  Expected<Proof> proof() {
    const Nesting nesting(lexer_);
    if (nesting.too_deep()) return lexer_.error("this is nested too deeply");
    Proof result;
    while (!lexer_.accept("}")) {
      Step step;
      const auto* const kind = std::find(kNames.begin(), kNames.end(), lexer_.peek().text);
      if (kind == kNames.end()) return lexer_.expected("a step");
      lexer_.take();
      step.kind = static_cast<Kind>(kind - kNames.begin());
      TESSERA_TRY(const std::size_t side, natural());
      if (side > 1) return lexer_.error("there are two sides");
      step.side = static_cast<int>(side);
      TESSERA_TRY_DONE(lexer_.expect("["));
      while (!lexer_.accept("]")) {
        TESSERA_TRY(const std::size_t place, natural());
        step.place.push_back(place);
        if (!lexer_.at("]")) TESSERA_TRY_DONE(lexer_.expect(","));
      }
      TESSERA_TRY(step.item, natural());
      TESSERA_TRY(step.dims, dims());
      while (lexer_.accept("since")) {
        Reason reason;
        TESSERA_TRY(reason.scale, parse_dim(lexer_));
        TESSERA_TRY_DONE(lexer_.expect("("));
        while (!lexer_.accept(")")) {
          TESSERA_TRY(const std::size_t premise, natural());
          TESSERA_TRY_DONE(lexer_.expect(":"));
          TESSERA_TRY(Dim often, parse_dim(lexer_));
          reason.multiples.emplace_back(premise, std::move(often));
          if (!lexer_.at(")")) TESSERA_TRY_DONE(lexer_.expect(","));
        }
        step.reasons.push_back(std::move(reason));
      }
      while (lexer_.accept("=>")) {
        TESSERA_TRY(std::string side, lexer_.string("a sum"));
        step.results.push_back(std::move(side));
      }
      while (lexer_.accept("{")) {
        if (lexer_.accept("goal")) {
          TESSERA_TRY(std::string source, lexer_.string("a sum"));
          TESSERA_TRY(std::string target, lexer_.string("a sum"));
          step.goals.emplace_back(std::move(source), std::move(target));
        }
        TESSERA_TRY(Proof part, proof());
        step.parts.push_back(std::move(part));
      }
      result.push_back(std::move(step));
    }
    return result;
  }

  Lexer lexer_;
};

}  // namespace

std::string_view to_string(Kind kind) {
  return kNames[static_cast<std::size_t>(kind)];
}

namespace {

constexpr std::string_view kHeader = "certificate 2\n";

std::string claim_text(const Claim& claim) {
  std::string text = claim.named_reals ? "named_reals\n" : "";
  for (const Input& input : claim.inputs) {
    text += fmt::format("input {}: {}[", name_text(input.name), to_string(input.type.dtype));
    for (std::size_t i = 0; i < input.type.shape.size(); ++i)
      text += (i == 0 ? "" : ", ") + input.type.shape[i].to_string();
    text += input.uniform ? fmt::format("] = {}", float_text(*input.uniform)) : "]";
    text += input.content.empty() ? "\n" : fmt::format(" is {}\n", quoted_text(input.content));
  }
  for (const Value& value : claim.values) {
    text += fmt::format("value {} = ", name_text(value.name));
    if (!value.call.empty()) text += fmt::format("of {} ", quoted_text(value.call));
    text += fmt::format("{} (", value.output);
    for (std::size_t i = 0; i < value.operands.size(); ++i)
      text += (i == 0 ? "" : ", ") + name_text(value.operands[i]);
    text += ") " + tessera::to_text(*value.definition) + "\n";
  }
  for (const Condition& condition : claim.facts)
    text += "fact " + tessera::to_text(condition) + "\n";
  return text;
}

std::string subject_text(const Subject& subject) {
  std::string text = subject.rule;
  for (const auto& [kind, clause] : subject.assumptions)
    text += fmt::format("assume {} {}\n", quoted_text(kind), quoted_text(clause));
  for (const auto& [size, value] : subject.witness)
    text += fmt::format("witness {} = {}\n", name_text(size), value);
  return text;
}

Diagnostic unreadable(std::string message, std::string note) {
  return {.id = "certificate-seal", .message = std::move(message), .note = std::move(note)};
}

}  // namespace

std::string to_text(const Claim& claim) {
  std::string text = claim_text(claim);
  for (const auto& [source, target] : claim.pairs)
    text += fmt::format("pair {} {}\n", name_text(source), name_text(target));
  return text;
}

std::string to_text(const Certificate& certificate) {
  const Claim& claim = certificate.claim;
  std::string text(kHeader);
  text += subject_text(certificate.subject) + claim_text(claim);
  for (std::size_t i = 0; i < claim.pairs.size(); ++i) {
    text += fmt::format("pair {} {} {{\n", name_text(claim.pairs[i].first),
                        name_text(claim.pairs[i].second));
    if (i < certificate.proofs.size()) write(certificate.proofs[i], "  ", text);
    text += "}\n";
  }
  return sealed(text);
}

std::string sealed(std::string_view text) {
  return fmt::format("{}// seal {:016x}\n", text, seal_of(text));
}

Expected<Certificate> parse_certificate(std::string_view text) {
  const std::string_view whole = text;
  const std::size_t at = text.rfind("// seal ");
  if (at == std::string_view::npos || text != sealed(text.substr(0, at)))
    return unreadable("the certificate has been changed or is not whole",
                      "the seal at its end does not fit");
  text = text.substr(0, at);
  if (!text.starts_with(kHeader))
    return unreadable("the certificate is of another format", "it has to begin with certificate 2");
  text.remove_prefix(kHeader.size());
  // The text of a rule ends in the first line that is a brace alone.
  std::string_view rule;
  if (text.starts_with("rule ")) {
    const std::size_t end = text.find("\n}\n");
    if (end == std::string_view::npos)
      return unreadable("the certificate is not whole", "the rule has no end");
    rule = text.substr(0, end + 3);
    text.remove_prefix(rule.size());
  }
  TESSERA_TRY(Certificate certificate, Parser(text).certificate());
  certificate.subject.rule = rule;
  // One text for one certificate: what is compared as text is compared as it stands.
  if (to_text(certificate) != whole)
    return unreadable("the certificate is not written as certificates are",
                      "what is read prints in another way");
  return certificate;
}

}  // namespace tessera::certify
