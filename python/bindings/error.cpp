#include "python/bindings/error.h"

#include <nanobind/stl/string.h>

namespace nb = nanobind;

namespace tessera::python {
namespace {

constexpr const char* kDocumentation =
    "A diagnostic: the input or the machine does not allow what was asked.\n\n"
    "Attributes: id (for scripts), message, note (what was expected), help (what to do), file and\n"
    "item (where). str(error) is the text that the command line prints.";

/// A string of Python; bytes of the input that are no UTF-8 are replaced.
nb::object text_of(const std::string& text) {
  return nb::steal(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
}

/// Sets the Python error indicator to an Error with the fields of a diagnostic as attributes.
void set_error(nb::handle type, const DiagnosticError& error) {
  const Diagnostic& diagnostic = error.diagnostic();
  const nb::object exception = type(text_of(error.what()));
  exception.attr("id") = text_of(diagnostic.id);
  exception.attr("message") = text_of(diagnostic.message);
  exception.attr("note") = text_of(diagnostic.note);
  exception.attr("help") = text_of(diagnostic.help);
  exception.attr("file") = text_of(diagnostic.where.file);
  exception.attr("item") = text_of(diagnostic.where.item);
  PyErr_SetObject(type.ptr(), exception.ptr());
}

}  // namespace

void bind_errors(nb::module_& module) {
  PyObject* const type =
      PyErr_NewExceptionWithDoc("tessera.Error", kDocumentation, PyExc_RuntimeError, nullptr);
  if (type == nullptr) throw nb::python_error();
  module.attr("Error") = nb::steal(type);
  // The module holds the type for as long as exceptions are translated.
  nb::register_exception_translator(
      [](const std::exception_ptr& thrown, void* payload) {
        try {
          std::rethrow_exception(thrown);
        } catch (const DiagnosticError& error) {
          set_error(nb::handle(static_cast<PyObject*>(payload)), error);
        }
      },
      type);
}

}  // namespace tessera::python
