#include "app/plan/plan_page.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "app/report/drawing.h"
#include "app/report/pictures.h"
#include "config/config.h"
#include "core/text.h"
#include "plan/run_plan.h"
#include "plan/searched_settings.h"

namespace mindpipe {
namespace {

using namespace pictures;

/// A step of all stages in virtual time; sums over data in a thin row below each.
std::string step_picture(const PlannedStep& step) {
  constexpr double row = 30;
  const int stages = static_cast<int>(step.program.ranks.size());
  const double height = page_top + row * stages + 64, pixels = page_width - page_left - page_right,
               each = pixels / static_cast<double>(step.expected.step);
  std::string text = opening("one step, in virtual time", height);
  for (int stage = 0; stage < stages; ++stage) {
    const double y = page_top + row * stage;
    text += text_at(page_left - 8, y + 15, fmt::format("stage {}", stage), "end") +
            box("idle", page_left, y, pixels, 20);
    Row passes(y, 20, each), sums(y + 21, 5, each);
    const std::vector<Span>& spans = step.expected.spans[stage];
    std::vector<std::size_t> by_start(spans.size());
    std::iota(by_start.begin(), by_start.end(), std::size_t{0});
    std::stable_sort(by_start.begin(), by_start.end(),
                     [&](std::size_t a, std::size_t b) { return spans[a].start < spans[b].start; });
    for (const std::size_t index : by_start) {
      const Action& action = step.program.ranks[stage][index];
      const char* kind = class_of_action(action);
      if (kind == nullptr) continue;
      (action.queue == Queue::bulk ? sums : passes).add(kind, spans[index]);
    }
    text += passes.text() + sums.text();
  }
  const double seconds = 1e-9 * static_cast<double>(step.expected.step);
  text += text_at(page_left, height - 40, "0") +
          text_at(page_width - page_right, height - 40, human_seconds(seconds), "end");
  return text + legend_of_steps(height - 14) + "</svg>\n";
}

/// The memory of the fullest rank of each stage, by class.
std::string memory_picture(const RunPlan& plan, std::int64_t limit) {
  constexpr double row = 26;
  std::int64_t most = limit;
  for (int stage = 0; stage < plan.outline.stages; ++stage)
    most = std::max(most, total_of(plan.most_memory(stage)));
  const double height = page_top + row * plan.outline.stages + 40,
               each = (page_width - page_left - page_right) / static_cast<double>(most);
  std::string text = opening(
      fmt::format("memory of a rank of each stage, up to {}{}", human_bytes(static_cast<double>(most)),
                  limit > 0 ? "; the line is memory.device_limit" : ""),
      height);
  std::vector<std::pair<std::string, std::string>> entries;
  for (int stage = 0; stage < plan.outline.stages; ++stage) {
    const double y = page_top + row * stage;
    double x = page_left;
    text += text_at(page_left - 8, y + 14, fmt::format("stage {}", stage), "end");
    for (std::size_t use = 0; use < memory_classes.size(); ++use) {
      const double bytes = static_cast<double>(plan.most_memory(stage)[use]);
      if (bytes == 0) continue;
      const std::string kind = fmt::format("c{}", use % 8);
      text += box(kind.c_str(), x, y, bytes * each, 18);
      x += bytes * each;
      const std::pair entry{kind, std::string(name_of(memory_classes[use]))};
      if (std::find(entries.begin(), entries.end(), entry) == entries.end()) entries.push_back(entry);
    }
  }
  if (limit > 0)
    text += fmt::format("<path class=\"limit\" d=\"M{:.1f} {:.1f}V{:.1f}\"/>\n",
                        page_left + each * static_cast<double>(limit), page_top - 6,
                        page_top + row * plan.outline.stages);
  return text + legend(entries, height - 14) + "</svg>\n";
}

/// A point of a picture of two axes, with what is said of it.
struct Point {
  double across, up;
  std::string word = {};
  bool is_best = false;
  int series = -1;  ///< points of one are joined, in order; -1: of none
};

/// The points, with lines through those of one `series`. Axes begin at 0, but across where `near` says so.
std::string scatter(const std::string& title, const std::string& across, const std::string& up,
                    const std::vector<Point>& points, double limit_up = 0, bool near = false) {
  constexpr double height = 380, bottom = 64;
  AxisRange x{near ? points.front().across : 0, 0}, y{0, limit_up * 1.05};
  for (const Point& point : points) {
    x = {near ? std::min(x.least, point.across - 0.3) : 0, std::max(x.most, point.across * 1.05)};
    y.most = std::max(y.most, point.up * 1.05);
  }
  const Panel panel{page_left, page_top, page_width - page_right, height - bottom, x, y};
  std::string text = opening(title, height) + lines_across(panel, tick_of(y.length(), 4)) +
                     numbers_below(panel, tick_of(x.length(), 5));
  for (std::size_t i = 1; i < points.size(); ++i)
    if (points[i].series >= 0 && points[i].series == points[i - 1].series)
      text += fmt::format("<path class=\"joined\" d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}\"/>\n",
                          panel.x(points[i - 1].across), panel.y(points[i - 1].up), panel.x(points[i].across),
                          panel.y(points[i].up));
  for (const bool best : {false, true})
    for (const Point& point : points) {
      if (point.is_best != best) continue;
      text += fmt::format("<circle class=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\"/>\n",
                          best ? "best" : "point", panel.x(point.across), panel.y(point.up), best ? 6 : 4);
      if (point.word.empty()) continue;
      const bool at_right = panel.x(point.across) > 0.6 * page_width;
      text += text_at(panel.x(point.across) + (at_right ? -10 : 10), panel.y(point.up) - 8, point.word,
                      at_right ? "end" : "start");
    }
  if (limit_up > 0)
    text += fmt::format("<path class=\"limit\" d=\"M{:.1f} {:.1f}H{:.1f}\"/>\n", page_left, panel.y(limit_up),
                        page_width - page_right);
  return text + text_at(page_width - page_right, height - 14, across, "end") + text_at(page_left, 44, up) +
         "</svg>\n";
}

/// All layouts that were simulated: step against memory, which is known from below where it did not matter.
std::string layouts_picture(const ComparedPlan& plan) {
  std::vector<Point> points;
  const LayoutCandidate& best = plan.best();
  for (const LayoutCandidate& one : plan.search.all)
    if (one.step > 0 && static_cast<double>(one.step) < 3 * static_cast<double>(best.step))
      points.push_back({1e-6 * static_cast<double>(one.step),
                        static_cast<double>(std::max(one.memory, one.least_memory)) / (1 << 30),
                        &one == &best ? "the best" : "", &one == &best});
  return scatter("layouts that were simulated, with steps up to three times the best's", "ms a step",
                 "GiB of a rank", points, static_cast<double>(plan.config.memory.device_limit) / (1 << 30));
}

/// Time and energy for what a step is worth, of each plan. Named are those that no other beats in both.
std::string ranks_picture(const std::vector<ComparedPlan>& plans, const PlanGoal& goal) {
  std::vector<Point> points;
  const int best = best_plan(plans, goal);
  for (int place = 0; place < std::ssize(plans); ++place) {
    const ComparedPlan& plan = plans[place];
    if (!plan.has_layout()) continue;
    const double worth = goal.worth(plan.size.batch);
    points.push_back({1e-6 * static_cast<double>(plan.best().step) / worth,
                      goal.joules(plan.best(), plan.size) / worth,
                      fmt::format("{} ranks, batch {}", plan.size.ranks, plan.size.batch), place == best});
  }
  const std::vector<Point> all = points;
  for (Point& point : points)
    if (std::any_of(all.begin(), all.end(),
                    [&](const Point& other) { return other.across < point.across && other.up < point.up; }))
      point.word.clear();
  return scatter("plans for what a sample is worth: time against energy", "ms a sample",
                 "J a sample (estimated)", points);
}

/// The goal's figure against the batch, at half, once and twice the noise scale; the best of all ranks each.
std::string batches_picture(const std::vector<ComparedPlan>& plans, const PlanGoal& goal) {
  std::vector<Point> points;
  int series = 0;
  for (const double times : {0.5, 1.0, 2.0}) {
    std::map<int, double> least;
    for (const ComparedPlan& plan : plans) {
      if (!plan.has_layout()) continue;
      const double cost = goal.of_sample(plan.best(), plan.size, times);
      const auto [there, is_new] = least.emplace(plan.size.batch, cost);
      if (!is_new) there->second = std::min(there->second, cost);
    }
    const auto best = std::min_element(least.begin(), least.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    for (auto entry = least.begin(); entry != least.end(); ++entry)
      points.push_back({std::log2(entry->first), entry->second / best->second,
                        std::next(entry) == least.end() ? fmt::format("{:g} x the noise scale", times) : "",
                        entry == best, series});
    ++series;
  }
  return scatter("what a batch costs for what it is worth, over the best batch, at three noise scales",
                 "batch, as a power of two", "times the best", points, 0, true);
}

}  // namespace

std::string plan_page(const std::vector<ComparedPlan>& plans, const PlanGoal& goal, const SearchFreedom& free,
                      const std::string& text) {
  const ComparedPlan& best = plans[best_plan(plans, goal)];
  const RunPlan plan = make_run_plan(with_layout(best.config, best.best().layout));
  const std::string title = fmt::format("plan: {} on {} rank{}", best.config.model.kind, best.size.ranks,
                                        best.size.ranks == 1 ? "" : "s");
  std::string page = page_opening(title, words_of(best.best().layout, free));
  if (plan.trains_steps()) page += step_picture(plan.training);
  page += memory_picture(plan, best.config.memory.device_limit) + layouts_picture(best);
  if (plans.size() > 1) page += ranks_picture(plans, goal);
  if (plans.front().size.batch < plans.back().size.batch) page += batches_picture(plans, goal);
  return page + page_closing(text);
}

}  // namespace mindpipe
