#pragma once

#include <string>

namespace tessera {

/// Error about an input or the machine, as a value. The message names the value that was found, the
/// note what was expected, the help what to do; lower case, no full stop.
struct Diagnostic {
  /// Location: a file and an item inside it (a node, a value, a line); either may be empty.
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

/// Printed form, without a final line break:
///
///   resnet.onnx: Conv_12: error[onnx-unsupported-attribute]: auto_pad=X is not supported
///     note: ...
///     help: ...
std::string to_string(const Diagnostic& diagnostic);

/// Fills in the empty fields of the diagnostic's location; fields that are set are kept.
Diagnostic located(Diagnostic diagnostic, const Diagnostic::Where& where);

}  // namespace tessera
