#pragma once

#include <nanobind/nanobind.h>

#include <exception>
#include <string>

#include "tessera/support/expected.h"

/// Diagnostics as Python exceptions.
namespace tessera::python {

/// A diagnostic on its way to Python, where it is a tessera.Error.
class DiagnosticError : public std::exception {
 public:
  explicit DiagnosticError(Diagnostic diagnostic)
      : diagnostic_(std::move(diagnostic)), text_(to_string(diagnostic_)) {}
  const char* what() const noexcept override { return text_.c_str(); }
  const Diagnostic& diagnostic() const { return diagnostic_; }

 private:
  Diagnostic diagnostic_;
  std::string text_;
};

/// The value of a result, or an exception with its diagnostic.
template <class T>
T value_or_throw(Expected<T> result) {
  if (!result) throw DiagnosticError(std::move(result).error());
  return *std::move(result);
}

/// Defines tessera.Error, and translates DiagnosticError to it.
void bind_errors(nanobind::module_& module);

}  // namespace tessera::python
