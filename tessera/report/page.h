#pragma once

#include <string>

#include "tessera/report/event_log.h"

namespace tessera::report {

/// Report of a log as one HTML file, without external files; with `other`, also a comparison of the
/// two. The page contains the logs as they are, and the layout of the graphs.
std::string page(const EventLog& log, const EventLog* other = nullptr);

/// Event log of a page.
Expected<EventLog> event_log_of_page(std::string_view html);

}  // namespace tessera::report
