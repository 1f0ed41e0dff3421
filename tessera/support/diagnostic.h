#pragma once

#include <string>

namespace tessera {

/// Why an input or the machine does not allow what was asked. The message names the value that was
/// found, the note what was expected, the help what to do; lower case, no full stop.
struct Diagnostic {
  /// A file and, inside it, the thing that is meant (a node, a value, a line); either may be empty.
  struct Where {
    std::string file = {};
    std::string item = {};
    bool operator==(const Where&) const = default;
  };

  std::string id;
  Where where = {};
  std::string message;
  std::string note = {};
  std::string help = {};

  bool operator==(const Diagnostic&) const = default;
};

/// The printed form, without a final line break:
///
///   resnet.onnx: Conv_12: error[onnx-unsupported-attribute]: auto_pad=X is not supported
///     note: ...
///     help: ...
std::string to_string(const Diagnostic& diagnostic);

/// The same diagnostic with the blanks of its place filled in; what it already says is kept.
Diagnostic located(Diagnostic diagnostic, const Diagnostic::Where& where);

}  // namespace tessera
