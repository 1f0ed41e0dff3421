#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::tune {

/// Candidate of a schedule space.
struct Candidate {
  std::string schedule = {};  // text form, by which measurements are stored
  /// Parameters as logarithms to base 2; the first is the strategy. Schedules of one strategy whose
  /// points differ in one coordinate are neighbours.
  std::vector<double> point = {};
  double cycles = 0;  // analytic estimate, comparable within a strategy; 0: there is none
};

/// Tuning task: a kernel with its schedule space.
struct Task {
  std::string key = {};   // of the store
  std::string what = {};  // for reports
  double uses = 1;        // times that a run of the whole program computes it
  std::vector<Candidate> space = {};
  std::size_t usual = 0;                          // default schedule, in the space
  std::vector<std::vector<float>> features = {};  // of the space; empty where there are none
  /// Predicted logarithm of the time of each candidate; empty: no model ranks the space.
  std::vector<double> predicted = {};
};

/// Position of a schedule in the space of a task.
std::optional<std::size_t> position_of(const Task& task, std::string_view schedule);

}  // namespace tessera::tune
