#include "tessera/support/diagnostic.h"

#include <fmt/format.h>

namespace tessera {
namespace {

/// Escapes control characters: names come from files, and a terminal would interpret them.
std::string printable(const std::string& text) {
  std::string result;
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if ((code < 0x20 && c != '\n' && c != '\t') || code == 0x7f)
      result += fmt::format("\\x{:02x}", code);
    else
      result += c;
  }
  return result;
}

}  // namespace

std::string to_string(const Diagnostic& diagnostic) {
  std::string text;
  if (!diagnostic.where.file.empty()) text += diagnostic.where.file + ": ";
  if (!diagnostic.where.item.empty()) text += diagnostic.where.item + ": ";
  text += fmt::format("error[{}]: {}", diagnostic.id, diagnostic.message);
  if (!diagnostic.note.empty()) text += "\n  note: " + diagnostic.note;
  if (!diagnostic.help.empty()) text += "\n  help: " + diagnostic.help;
  return printable(text);
}

Diagnostic located(Diagnostic diagnostic, const Diagnostic::Where& where) {
  if (diagnostic.where.file.empty()) diagnostic.where.file = where.file;
  if (diagnostic.where.item.empty()) diagnostic.where.item = where.item;
  return diagnostic;
}

}  // namespace tessera
