#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "tessera/rules/rule.h"
#include "tessera/support/expected.h"
#include "tessera/support/tensor.h"

namespace tessera::testing {

/// Two model files.
struct ModelPair {
  std::filesystem::path source, target;
};

/// A pair of graphs whose truth is known.
struct Entry {
  std::string name;
  /// `true`, or how it is false: `reals` where the sides differ over the reals inside of the domain
  /// of their functions, else what alone makes them differ (`wrap-around`, `rounding`, …).
  std::string truth;
  std::variant<rules::Rule, ModelPair> pair;
  std::vector<Tensor> witness = {};  // inputs that show a difference random ones do not

  bool is_true() const { return truth == "true"; }
};

/// The entries of a folder: `TRUTH/*.rules`, and pairs of models `TRUTH/NAME.a.onnx` and
/// `TRUTH/NAME.b.onnx`. `witnesses.txt` has lines `NAME: EXPRESSION, EXPRESSION`: the inputs, as
/// graphs write them. Two entries of one name, or a witness of none, are a diagnostic.
Expected<std::vector<Entry>> load_corpus(const std::filesystem::path& folder);

/// Reasons by name of an entry. A line that ends in `:` is the reason for the names below it, one
/// on a line; `#` begins a comment.
Expected<std::map<std::string, std::string>> load_known_defects(const std::filesystem::path& file);

/// Takes names off that list.
Expected<Done> prune_known_defects(const std::filesystem::path& file,
                                   const std::set<std::string>& names);

}  // namespace tessera::testing
