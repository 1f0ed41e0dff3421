#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tessera/driver/tune_model.h"
#include "tessera/support/markup.h"

namespace tessera {
namespace {

constexpr double kWidth = 320, kHeight = 180, kMargin = 34;

struct Dot {
  double x, y;
};

/// Scatter plot with logarithmic y, and x as it is or logarithmic.
std::string plot(std::vector<Dot> dots, const std::string& x_title, bool log_x) {
  std::erase_if(dots, [&](const Dot& d) { return !(d.y > 0) || (log_x && !(d.x > 0)); });
  if (dots.empty()) return "";
  for (Dot& dot : dots) {
    dot.y = std::log(dot.y);
    if (log_x) dot.x = std::log(dot.x);
  }
  const auto [left, right] = std::ranges::minmax(dots, {}, &Dot::x);
  const auto [low, high] = std::ranges::minmax(dots, {}, &Dot::y);
  const auto scaled = [](double v, double from, double to, double length) {
    return to > from ? (v - from) / (to - from) * length : length / 2;
  };
  std::string svg = fmt::format(
      "<svg width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" font-size=\"10\">"
      "<rect x=\"{2}\" y=\"6\" width=\"{3}\" height=\"{4}\" fill=\"none\" stroke=\"#999\"/>",
      kWidth, kHeight, kMargin, kWidth - kMargin - 6, kHeight - kMargin - 6);
  for (const Dot& dot : dots)
    svg +=
        fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2\" fill=\"#36c\"/>",
                    kMargin + 4 + scaled(dot.x, left.x, right.x, kWidth - kMargin - 14),
                    kHeight - kMargin - 4 - scaled(dot.y, low.y, high.y, kHeight - kMargin - 14));
  svg += fmt::format(
      "<text x=\"2\" y=\"16\">{:.2f}</text><text x=\"2\" y=\"{}\">{:.2f}</text>"
      "<text x=\"{}\" y=\"{}\">{}: {:.2f} to {:.2f}</text></svg>",
      std::exp(high.y), kHeight - kMargin, std::exp(low.y), kMargin, kHeight - 14, x_title,
      log_x ? std::exp(left.x) : left.x, log_x ? std::exp(right.x) : right.x);
  return svg;
}

}  // namespace

std::string tune_page(const TunedModel& tuned, const std::string& title) {
  std::string page = fmt::format(
      "<!doctype html><meta charset=\"utf-8\"><title>tuning of {0}</title>"
      "<style>body{{font-family:sans-serif}}td,th{{padding:2px 8px;text-align:left}}</style>"
      "<h1>Tuning of {0}</h1><p>target {1}, {2} tasks, {3:.1f} s; {4:.3f} ms with default "
      "schedules, {5:.3f} ms with the chosen ones</p>"
      "<table><tr><th>task<th>uses<th>default ms<th>ratio<th>trials<th>failed<th>schedule</tr>",
      markup_text(title), tuned.target, tuned.tasks.size(), tuned.result.seconds,
      1e3 * tuned.default_seconds(), 1e3 * tuned.tuned_seconds());
  std::string plots;
  for (std::size_t i = 0; i < tuned.tasks.size(); ++i) {
    const tune::Task& task = tuned.tasks[i];
    const tune::TaskResult& result = tuned.result.tasks[i];
    page +=
        fmt::format("<tr><td>{}<td>{:.0f}<td>{:.4f}<td>{:.3f}<td>{}<td>{}<td><code>{}</code></tr>",
                    markup_text(task.what), task.uses, 1e3 * result.default_seconds, result.ratio,
                    result.trials.size() + result.known, result.failed,
                    markup_text(lower::to_text(result.chosen.value_or(task.usual))));
    if (result.trials.empty()) continue;
    std::vector<Dot> over_time, against;
    for (const tune::Trial& trial : result.trials) {
      over_time.push_back({trial.at, trial.ratio});
      against.push_back({trial.predicted, trial.ratio});
    }
    plots += fmt::format("<h3>{} <small>{}</small></h3>{} {}", markup_text(task.what), task.key,
                         plot(std::move(over_time), "seconds", false),
                         plot(std::move(against), "predicted ratio", true));
  }
  return page + "</table><p>Vertical axes: measured time over the default.</p>" + plots;
}

}  // namespace tessera
