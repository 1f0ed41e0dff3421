#include "tessera/driver/model_certificate.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "tessera/driver/model.h"
#include "tessera/driver/rules.h"
#include "tessera/rules/certified.h"
#include "tessera/rules/text.h"
#include "tessera/support/file.h"
#include "tessera/support/lexer.h"
#include "tessera/support/sha256.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kHeader = "certificate 2 of models\n", kLemma = "lemma\n";

Diagnostic foreign(std::string message, std::string note = {}) {
  return {.id = "certificate-foreign", .message = std::move(message), .note = std::move(note)};
}

/// Identity of a model file in a certificate.
struct Identity {
  std::string name, file, weights;  // hashes of the file, and of its named constants

  bool operator==(const Identity&) const = default;
};

Expected<Identity> identity_of(const fs::path& path, const Graph& graph) {
  TESSERA_TRY(const Bytes bytes, map_file(path));
  Sha256 file, weights;
  file.add(bytes.view());
  std::map<std::string, const Tensor*> constants;
  for (std::uint32_t i = 0; i < graph.value_count(); ++i)
    if (graph.constant({i}) != nullptr && graph.is_named({i}))
      constants.emplace(graph.name({i}), graph.constant({i}));
  for (const auto& [name, constant] : constants) weights.add(constant->bytes.view());
  return Identity{path.filename().string(), file.digits(), weights.digits()};
}

/// Statement of a certificate of models, without the lemmas.
struct Statement {
  Identity source, target;
  std::uint64_t seed = 1;
  std::vector<std::string> inputs, outputs;
  std::set<prove::Assumption> assumptions = {};

  std::string text() const {
    std::string result;
    for (const auto& [word, identity] :
         {std::pair("source", &source), std::pair("target", &target)})
      result += fmt::format("{} {} file {} weights {}\n", word, quoted_text(identity->name),
                            quoted_text(identity->file), quoted_text(identity->weights));
    result += fmt::format("seed {}\n", seed);
    for (const std::string& input : inputs) result += fmt::format("input {}\n", quoted_text(input));
    for (const std::string& output : outputs)
      result += fmt::format("output {}\n", quoted_text(output));
    for (const prove::Assumption& assumption : assumptions)
      result += fmt::format("assume {} {}\n", quoted_text(to_string(assumption.kind)),
                            quoted_text(assumption.text));
    return result;
  }

  std::string words() const {
    std::string result =
        fmt::format("models {} and {}\n  for all inputs", source.name, target.name);
    for (const std::string& input : inputs) result += " " + input;
    result += " of all sizes of at least 1\n  the outputs";
    for (const std::string& output : outputs) result += " " + output;
    result += " are equal over the reals";
    for (const prove::Assumption& assumption : assumptions)
      result +=
          fmt::format("\n  assuming ({}) that {}", to_string(assumption.kind), assumption.text);
    return fmt::format("{}\n  source sha256 {}\n  target sha256 {}\n", result, source.file,
                       target.file);
  }
};

Expected<Statement> statement_of(const fs::path& source, const fs::path& target) {
  TESSERA_TRY(const Model a, load_model(source));
  TESSERA_TRY(const Model b, load_model(target));
  Statement statement;
  TESSERA_TRY(statement.source, identity_of(source, a.graph));
  TESSERA_TRY(statement.target, identity_of(target, b.graph));
  const auto typed = [&](const std::string& name, ValueId id) {
    return fmt::format("{}: {}", name_text(name), to_string(a.graph.type(id)));
  };
  for (const ValueId id : a.graph.inputs()) statement.inputs.push_back(typed(a.graph.name(id), id));
  for (std::size_t i = 0; i < a.graph.outputs().size(); ++i)
    statement.outputs.push_back(typed(a.output_names[i], a.graph.outputs()[i]));
  return statement;
}

/// Two windows as a rule over the same inputs.
rules::Rule lemma_of(Graph source, Graph target) {
  for (Graph* graph : {&source, &target}) {
    for (std::uint32_t i = 0; i < graph->value_count(); ++i)
      graph->set_name({i}, fmt::format("v{}", i));
    for (std::size_t i = 0; i < graph->inputs().size(); ++i)
      graph->set_name(graph->inputs()[i], fmt::format("x{}", i));
  }
  rules::Rule rule;
  rule.name = "lemma";
  rule.source = std::move(source);
  rule.target = std::move(target);
  return rule;
}

/// `source "model.onnx"`
Expected<std::string> header_name(Lexer& lexer, std::string_view word) {
  TESSERA_TRY_DONE(lexer.expect(word));
  return lexer.string(word);
}

/// A certificate of models as its file has it.
struct CertificateFile {
  std::string statement;  // all but the lemmas
  std::string source_name, target_name;
  std::uint64_t seed = 1;
  fs::path source, target;  // where the models are
  std::vector<certify::Certificate> lemmas = {};
};

Expected<CertificateFile> read_certificate(const fs::path& path, const ModelFiles& files) {
  TESSERA_TRY(const std::string whole, read_text(path));
  std::string_view text = whole;
  const std::size_t end = text.rfind("// seal ");
  if (!is_model_certificate(text) || end == std::string_view::npos ||
      text != certify::sealed(text.substr(0, end)))
    return Diagnostic{.id = "certificate-seal",
                      .message = "the certificate has been changed or is not whole"};
  text = text.substr(kHeader.size(), end - kHeader.size());
  CertificateFile result;
  result.statement = text.substr(0, std::min(text.find(kLemma), text.size()));
  text.remove_prefix(result.statement.size());
  Lexer lexer(result.statement);
  TESSERA_TRY(result.source_name, header_name(lexer, "source"));
  TESSERA_TRY_DONE(header_name(lexer, "file"));
  TESSERA_TRY_DONE(header_name(lexer, "weights"));
  TESSERA_TRY(result.target_name, header_name(lexer, "target"));
  TESSERA_TRY_DONE(header_name(lexer, "file"));
  TESSERA_TRY_DONE(header_name(lexer, "weights"));
  TESSERA_TRY_DONE(lexer.expect("seed"));
  TESSERA_TRY(const std::int64_t seed, lexer.integer("a number"));
  result.seed = static_cast<std::uint64_t>(seed);
  for (const std::string& name : {result.source_name, result.target_name})
    if (fs::path(name).filename() != name || name.empty())
      return foreign("a model is not named by a plain name");
  const auto place = [&](const fs::path& given, const std::string& name) {
    return given.empty() ? path.parent_path() / name : given;
  };
  result.source = place(files.source, result.source_name);
  result.target = place(files.target, result.target_name);
  while (!text.empty()) {
    if (!text.starts_with(kLemma)) return foreign("the certificate is not whole");
    text.remove_prefix(kLemma.size());
    const std::size_t next = std::min(text.find("\nlemma\n"), text.size() - 1) + 1;
    TESSERA_TRY(certify::Certificate lemma,
                certify::parse_certificate(std::string(text.substr(0, next))));
    result.lemmas.push_back(std::move(lemma));
    text.remove_prefix(next);
  }
  return result;
}

/// The lemmas of a certificate, by the text of the windows. Each is replayed.
Expected<std::map<std::string, rules::CertifiedRule>> replayed(
    const std::vector<certify::Certificate>& certificates) {
  std::map<std::string, rules::CertifiedRule> lemmas;
  for (const certify::Certificate& certificate : certificates) {
    TESSERA_TRY(rules::CertifiedRule shown, rules::check_certificate(certificate, {}));
    if (!lemmas.emplace(certificate.subject.rule, std::move(shown)).second)
      return foreign("a lemma is there twice");
  }
  return lemmas;
}

}  // namespace

Expected<prove::SweepResult> prove_models_with_certificate(const fs::path& source,
                                                           const fs::path& target,
                                                           prove::SweepOptions options,
                                                           const fs::path& certificate) {
  std::map<std::string, std::string> lemmas;  // certificates, by the text of the windows
  std::string why_not;                        // a lemma has no certificate
  const std::uint64_t seed = options.seed;
  const prove::SweepOptions plain = options;
  const auto without = [&](const std::string& why) {
    why_not = why;
    return prove::Verdict(prove::Unknown{why});
  };
  options.prover = [&](const Graph& a, const Graph& b, const prove::Options& how) {
    prove::Verdict verdict = prove::prove(a, b, how);
    auto* proved = std::get_if<prove::Proved>(&verdict);
    if (proved == nullptr || !proved->guard.empty()) return verdict;
    const auto made = rules::certified(lemma_of(a, b), *proved);
    if (!made) return without(made.error().message);
    // Assumptions are about all numbers, not about the values of the weights.
    const auto shown = rules::check_certificate(*made, {});
    if (!shown) return without(shown.error().message);
    proved->assumptions = shown->assumptions;
    lemmas[made->subject.rule] = to_text(*made);
    return verdict;
  };
  TESSERA_TRY(prove::SweepResult result, prove_models(source, target, options));
  const auto* proved = std::get_if<prove::Proved>(&result.verdict);
  if (proved == nullptr && !why_not.empty()) {
    // The verdict does not depend on whether a certificate is wanted.
    TESSERA_TRY(result, prove_models(source, target, plain));
    if (std::holds_alternative<prove::Proved>(result.verdict))
      return Diagnostic{.id = "certificate-unavailable",
                        .message = "the models are proved equal, but a step has no certificate",
                        .note = why_not,
                        .help = "prove them without --certificate"};
  }
  if (proved == nullptr) return result;
  TESSERA_TRY(Statement statement, statement_of(source, target));
  statement.seed = seed;
  statement.assumptions.insert(proved->assumptions.begin(), proved->assumptions.end());
  std::string text(kHeader);
  text += statement.text();
  for (const auto& [rule, lemma] : lemmas) text += std::string(kLemma) + lemma;
  TESSERA_TRY_DONE(
      write_file(certificate, [&](std::ostream& out) { out << certify::sealed(text); }));
  return result;
}

bool is_model_certificate(std::string_view text) {
  return text.starts_with(kHeader);
}

Expected<std::string> check_model_certificate(const fs::path& path, const ModelFiles& files) {
  TESSERA_TRY(const CertificateFile file, read_certificate(path, files));
  TESSERA_TRY(Statement statement, statement_of(file.source, file.target));
  statement.source.name = file.source_name;
  statement.target.name = file.target_name;
  statement.seed = file.seed;

  TESSERA_TRY(const auto lemmas, replayed(file.lemmas));
  std::set<std::string> used;
  prove::SweepOptions options{.seed = statement.seed};
  options.prover = [&](const Graph& a, const Graph& b,
                       const prove::Options& how) -> prove::Verdict {
    const auto here = lemmas.find(to_text(rules::statement_of(lemma_of(a, b))));
    if (here == lemmas.end()) return prove::Unknown{"there is no lemma"};
    const bool is_named =
        std::ranges::any_of(here->second.assumptions, [](const prove::Assumption& assumption) {
          return assumption.kind == prove::Assumption::Kind::Constant;
        });
    if (how.names_constants && !is_named && !prove::nameable_constants(a, b).empty())
      return prove::Unknown{"a constant is read in two ways"};
    used.insert(here->first);
    return prove::Proved{{}, {}, here->second.assumptions};
  };
  TESSERA_TRY(const prove::SweepResult result, prove_models(file.source, file.target, options));
  const auto* proved = std::get_if<prove::Proved>(&result.verdict);
  if (proved == nullptr) return foreign("the lemmas do not show that the models are equal");
  if (used.size() != lemmas.size()) return foreign("a lemma is not about these models");
  statement.assumptions.insert(proved->assumptions.begin(), proved->assumptions.end());
  if (statement.text() != file.statement)
    return foreign("the certificate is about other models, or assumes something else",
                   statement.words());
  return statement.words();
}

Expected<prove::CallMeanings> meanings_of_models(const fs::path& certificate,
                                                 const ModelFiles& files) {
  TESSERA_TRY(const CertificateFile file, read_certificate(certificate, files));
  RuleBook lemmas;
  for (const certify::Certificate& lemma : file.lemmas) {
    TESSERA_TRY(std::vector<rules::Rule> parsed, rules::parse_rules(lemma.subject.rule));
    std::ranges::move(parsed, std::back_inserter(lemmas.rules));
  }
  prove::CallMeanings meanings = meanings_of(lemmas);
  for (const fs::path& path : {file.source, file.target}) {
    TESSERA_TRY(const Model model, load_model(path));
    TESSERA_TRY_DONE(prove::add_calls(model.graph, meanings));
  }
  return meanings;
}

}  // namespace tessera
