#pragma once

#include <string_view>

namespace tessera::report {

/// Files of tessera/report/page/, as they were when this library was built.
std::string_view page_html();
std::string_view page_css();
std::string_view page_js();

}  // namespace tessera::report
