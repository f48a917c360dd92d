#include "app/plan/plan_comparison.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "app/plan/grid_choice.h"
#include "app/run/json_line.h"
#include "app/train/report_end.h"
#include "config/config.h"
#include "core/text.h"
#include "plan/searched_settings.h"

namespace mindpipe {
namespace {

std::vector<int> numbers_of_ranks(int first, int last) {
  std::vector<int> numbers;
  for (std::int64_t ranks = first; ranks < std::max(first, last); ranks *= 2)
    numbers.push_back(static_cast<int>(ranks));
  numbers.push_back(std::max(first, last));
  return numbers;
}

/// "  64    512  1.20 s  426k  3.1 J  0.2 g  1.2e-06"
std::string line_of(const ComparedPlan& plan, const PlanGoal& goal, const SearchFreedom& free) {
  const LayoutCandidate& best = plan.best();
  const double worth = goal.worth(plan.size.batch), seconds = 1e-9 * static_cast<double>(best.step),
               joules = goal.joules(best, plan.size);
  std::string text = fmt::format("{:>7} {:>7} {:>11} {:>11} {:>11}", plan.size.ranks, plan.size.batch,
                                 human_seconds(seconds), human_count(worth / seconds),
                                 fmt::format("{:.3g} J", joules / worth));
  if (const auto kilograms = goal.kilograms(joules))
    text += fmt::format(" {:>11}", fmt::format("{:.3g} g", 1000 * *kilograms / worth));
  if (const auto money = goal.money(best, plan.size)) text += fmt::format(" {:>11.3g}", *money / worth);
  return text + "  " + words_of(best.layout, free);
}

std::string head_of(const ComparedPlan& plan, const PlanGoal& goal) {
  const std::string sample = goal.noise_scale() ? "worth/s" : "samples/s";
  std::string text =
      fmt::format("{:>7} {:>7} {:>11} {:>11} {:>11}", "ranks", "batch", "step", sample, "energy");
  if (goal.kilograms(1)) text += fmt::format(" {:>11}", "CO2e");
  if (goal.money(plan.best(), plan.size)) text += fmt::format(" {:>11}", "price");
  return text;
}

/// What half and twice the noise scale would choose, where that is another plan.
std::string noise_text(const std::vector<ComparedPlan>& plans, const PlanGoal& goal) {
  const int best = best_plan(plans, goal);
  std::string text =
      fmt::format("at a noise scale of {:.4g} samples {:.0f} % of each sample counts", *goal.noise_scale(),
                  100 * goal.worth(plans[best].size.batch) / plans[best].size.batch);
  bool differs = false;
  for (const double times : {0.5, 2.0}) {
    const int other = best_plan(plans, goal, times);
    if (other == best) continue;
    text += fmt::format("; at {:.4g} the best is {} ranks with train.batch={}", times * *goal.noise_scale(),
                        plans[other].size.ranks, plans[other].size.batch);
    differs = true;
  }
  return text + (differs ? "\n" : "; half or twice of it would choose the same\n");
}

/// How much further a step of the chosen batch may go than one of the given batch.
std::string rate_text(int given, int chosen, double noise_scale) {
  if (given == chosen) return "";
  const double gain = (1 + noise_scale / given) / (1 + noise_scale / chosen);
  return fmt::format(
      "train.batch {} instead of {}: a step may go {:.2f} times as far, so the rate of SGD times {:.2f}, of "
      "AdamW times {:.2f} (a rule of thumb; nothing is changed)\n",
      chosen, given, gain, gain, std::sqrt(gain));
}

}  // namespace

std::vector<ComparedPlan> compare_plans(const Config& config, int ranks, int most_ranks, const PlanGoal& goal,
                                        const SearchFreedom& free, int wanted) {
  std::set<int> batches(config.plan.batches.begin(), config.plan.batches.end());
  if (batches.empty()) batches.insert(config.train.batch);
  std::vector<ComparedPlan> plans;
  for (const int number : numbers_of_ranks(ranks, most_ranks))
    for (const int batch : batches) {
      ComparedPlan plan{.size = {number, batch, threads_on_paper(config, number)}, .config = config};
      plan.config.train.batch = batch;
      plan.config.device.threads = plan.size.threads;
      plan.search = search_layouts(plan.config, number, free, wanted, goal.price(plan.size), plan.blocks);
      plans.push_back(std::move(plan));
    }
  return plans;
}

int best_plan(const std::vector<ComparedPlan>& plans, const PlanGoal& goal, double times) {
  int best = -1;
  double least = 0;
  for (int place = 0; place < std::ssize(plans); ++place) {
    if (!plans[place].has_layout()) continue;
    const ComparedPlan& plan = plans[place];
    const double cost = goal.of_sample(plan.best(), plan.size, times);
    if (best >= 0 && cost * equal_costs >= least) continue;
    best = place;
    least = cost;
  }
  return best;
}

std::string comparison_text(const std::vector<ComparedPlan>& plans, const PlanGoal& goal,
                            const SearchFreedom& free, int given_batch) {
  const int best = best_plan(plans, goal);
  if (plans.size() == 1 || best < 0) return "";
  std::string text = head_of(plans[best], goal) + "  (each for a sample" +
                     (goal.noise_scale() ? " that a step is worth" : "") + "; energy is estimated)\n";
  for (int place = 0; place < std::ssize(plans); ++place) {
    if (plans[place].has_layout()) text += line_of(plans[place], goal, free);
    else
      text += fmt::format("{:>7} {:>7}  no layout is allowed or fits", plans[place].size.ranks,
                          plans[place].size.batch);
    text += place == best ? "  <- the best\n" : "\n";
  }
  if (goal.noise_scale()) text += noise_text(plans, goal);
  if (goal.noise_scale()) text += rate_text(given_batch, plans[best].size.batch, *goal.noise_scale());
  return text + '\n';
}

std::string spent_text(const ComparedPlan& plan, const PlanGoal& goal) {
  if (!plan.has_layout()) return "";
  const double joules = goal.joules(plan.best(), plan.size);
  std::string text = fmt::format("energy of a {} {:.4g} J (estimated), {:.3g} J a sample",
                                 plan.best().subnets ? "subnet" : "step", joules, joules / plan.size.batch);
  if (const auto kilograms = goal.kilograms(joules))
    text += fmt::format("; {:.3g} g CO2e", 1000 * *kilograms);
  if (const auto money = goal.money(plan.best(), plan.size)) text += fmt::format("; price {:.4g}", *money);
  return text + "\n";
}

std::string comparison_json(const std::vector<ComparedPlan>& plans, const PlanGoal& goal,
                            const SearchFreedom& free) {
  std::string text, between = "\n";
  for (const ComparedPlan& plan : plans) {
    JsonLine line;
    line.add("ranks", plan.size.ranks).add("batch", plan.size.batch);
    if (plan.has_layout()) {
      const LayoutCandidate& best = plan.best();
      const double joules = goal.joules(best, plan.size);
      line.add("settings", words_of(best.layout, free)).add("step_ns", best.step);
      line.add("worth", goal.worth(plan.size.batch)).add("estimated_joules", joules);
      if (const auto kilograms = goal.kilograms(joules)) line.add("kg_co2e", *kilograms);
      if (const auto money = goal.money(best, plan.size)) line.add("price", *money);
    }
    text += std::exchange(between, ",\n") + line.text();
  }
  return text;
}

}  // namespace mindpipe
