#pragma once

#include <string>
#include <string_view>

namespace tessera {

/// Text for an element or attribute of HTML or SVG: special characters are escaped.
inline std::string markup_text(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '&': result += "&amp;"; break;
      case '"': result += "&quot;"; break;
      default: result += c;
    }
  }
  return result;
}

}  // namespace tessera
