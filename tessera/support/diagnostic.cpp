#include "tessera/support/diagnostic.h"

#include <fmt/format.h>

namespace tessera {

std::string to_string(const Diagnostic& diagnostic) {
  std::string text;
  if (!diagnostic.where.file.empty()) text += diagnostic.where.file + ": ";
  if (!diagnostic.where.item.empty()) text += diagnostic.where.item + ": ";
  text += fmt::format("error[{}]: {}", diagnostic.id, diagnostic.message);
  if (!diagnostic.note.empty()) text += "\n  note: " + diagnostic.note;
  if (!diagnostic.help.empty()) text += "\n  help: " + diagnostic.help;
  return text;
}

Diagnostic located(Diagnostic diagnostic, const Diagnostic::Where& where) {
  if (diagnostic.where.file.empty()) diagnostic.where.file = where.file;
  if (diagnostic.where.item.empty()) diagnostic.where.item = where.item;
  return diagnostic;
}

}  // namespace tessera
