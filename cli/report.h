#pragma once

#include <string>

#include "cli/native_runner.h"
#include "cli/store_flags.h"
#include "tessera/driver/step_profile.h"
#include "tessera/report/event_log.h"

namespace tessera::cli {

/// Flags of the commands that write a report.
struct ReportFlags {
  std::string page = {}, events = {};
  bool is_asked() const { return !page.empty() || !events.empty(); }
};
void add_report_flags(CLI::App& command, ReportFlags& flags);

/// Writes the page and the event log, as far as they are asked for.
Expected<Done> write_report(const report::EventLog& log, const ReportFlags& flags);

/// Flags of a profile.
struct ProfileFlags {
  int runs = 20;
};
/// Times the steps of a prepared model, beside the cost model's estimates.
Expected<StepProfile> profile_model(const NativeRunner& native, const CompileFlags& compile,
                                    const ProfileFlags& flags, Context& context);

/// A prepared model and what was measured of it.
struct MeasuredModel {
  const Source& source;
  std::string file = {};
  const NativeRunner& native;
  const CompileFlags& compile;
  const StepProfile* profile = nullptr;
};
/// Adds compilation, program and profile to a log.
Expected<Done> add_measured_model(report::EventLog& log, const MeasuredModel& model,
                                  Context& context);

}  // namespace tessera::cli
