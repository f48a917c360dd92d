#include "trace/summary.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace mindpipe {
namespace {

// Shares of the steps above which a finding is worth a sentence.
constexpr double much_bubble = 0.15, much_tensor = 0.10, much_data = 0.05, much_copy = 0.05,
                 much_update = 0.20, much_other = 0.10, much_scalars = 0.10;
constexpr double uneven = 1.15;  // the busiest stage against the mean of all

double share(std::int64_t part, std::int64_t whole) {
  return whole <= 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}
double percent(double share) { return 100 * share; }

TimeSpent sum_of(const std::vector<TimeSpent>& stages) {
  TimeSpent sum;
  for (const TimeSpent& s : stages)
    for (std::int64_t TimeSpent::*time :
         {&TimeSpent::forward, &TimeSpent::backward, &TimeSpent::update, &TimeSpent::scalars,
          &TimeSpent::wait_pipeline, &TimeSpent::wait_data, &TimeSpent::wait_tensor, &TimeSpent::wait_copy,
          &TimeSpent::wait_scalars, &TimeSpent::steps})
      sum.*time += s.*time;
  return sum;
}

std::string uneven_stages(const std::vector<TimeSpent>& stages, const RunFacts& facts) {
  const auto passes = [](const TimeSpent& s) { return s.forward + s.backward; };
  std::int64_t all = 0;
  for (const TimeSpent& s : stages) all += passes(s);
  const auto busiest =
      std::max_element(stages.begin(), stages.end(),
                       [&](const TimeSpent& a, const TimeSpent& b) { return passes(a) < passes(b); });
  const double ratio = all == 0 ? 1
                                : static_cast<double>(passes(*busiest)) * static_cast<double>(stages.size()) /
                                      static_cast<double>(all);
  if (ratio <= uneven) return "";
  return fmt::format("stage {} computes {:.0f} % more than the mean of the stages, and all wait for it; {}",
                     busiest - stages.begin(), percent(ratio - 1),
                     facts.own_cuts ? "give it fewer blocks in schedule.cuts, or leave schedule.cuts out"
                                    : "give it fewer blocks with schedule.cuts, or take fewer stages");
}

std::string bubble(const TimeSpent& all, int stages, const RunFacts& facts) {
  // Waits in the sum of scalars are the end of the pipeline: stages that are done early wait there.
  const double waits = share(all.wait_pipeline + all.wait_scalars, all.steps);
  if (waits <= much_bubble) return "";
  std::string what = fmt::format("stages wait for each other {:.0f} % of the time; ", percent(waits));
  if (facts.micro_batches < 4 * stages)
    what += fmt::format(
        "more than {} micro-batches a step would fill the pipeline (a smaller train.micro_batch or a larger "
        "train.batch)",
        facts.micro_batches);
  else what += "with this many micro-batches fewer stages and a larger grid.data would waste less";
  if (!row_of(facts.schedule).has_chunks && !row_of(facts.schedule).splits_backward)
    what += "; schedule.kind: zb-h1 or zb-v, or interleaved with schedule.chunks: 2, shortens what is left";
  return what;
}

}  // namespace

std::string table_of(const std::vector<TimeSpent>& stages, const std::vector<double>& expected) {
  std::string text =
      "share of the steps' time, in percent\n"
      "                                           | waiting for                                       |\n"
      "stage    forward  backward  update scalars | pipeline    data  tensor    copy scalars    other |  "
      "bubble";
  text += expected.empty() ? "\n" : "  simulated\n";
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const TimeSpent& s = stages[i];
    const auto of = [&](std::int64_t time) { return percent(share(time, s.steps)); };
    text += fmt::format(
        "{:<7} {:>8.1f} {:>9.1f} {:>7.1f} {:>7.1f} | {:>8.1f} {:>7.1f} {:>7.1f} {:>7.1f} {:>7.1f} {:>8.1f} | "
        "{:>7.1f}",
        i, of(s.forward), of(s.backward), of(s.update), of(s.scalars), of(s.wait_pipeline), of(s.wait_data),
        of(s.wait_tensor), of(s.wait_copy), of(s.wait_scalars), of(s.steps - s.work() - s.waiting()),
        percent(s.bubble()));
    text += expected.empty() ? "\n" : fmt::format(" {:>10.1f}\n", percent(expected[i]));
  }
  return text;
}

std::string table_of_subnets(const std::vector<TimeSpent>& ranks, const std::vector<SubnetWaits>& waits,
                             int stages) {
  const bool has_lanes = std::ssize(ranks) > stages;
  std::string text = fmt::format(
      "share of the time, in percent{}\n"
      "                                   | waiting for                                   |\n"
      "stage    forward  backward  update | owners   rooms   input    plan  tensor   other\n",
      has_lanes ? ", of each lane (lane.stage)" : "");
  for (int i = 0; i < std::ssize(ranks); ++i) {
    const TimeSpent& s = ranks[i];
    const SubnetWaits& w = waits[i];
    const std::string name = has_lanes ? fmt::format("{}.{}", i / stages, i % stages) : std::to_string(i);
    const auto of = [&](std::int64_t time) { return percent(share(time, s.steps)); };
    const std::int64_t known = s.work() + w.owner + w.room + w.input + w.plan + s.wait_tensor;
    text += fmt::format(
        "{:<7} {:>8.1f} {:>9.1f} {:>7.1f} | {:>6.1f} {:>7.1f} {:>7.1f} {:>7.1f} {:>7.1f} {:>7.1f}\n", name,
        of(s.forward), of(s.backward), of(s.update), of(w.owner), of(w.room), of(w.input), of(w.plan),
        of(s.wait_tensor), of(std::max<std::int64_t>(0, s.steps - known)));
  }
  return text;
}

std::vector<std::string> advice_on(const std::vector<TimeSpent>& stages, const RunFacts& facts) {
  std::vector<std::string> notes;
  const TimeSpent all = sum_of(stages);
  if (stages.empty() || all.steps <= 0) return notes;
  const bool one_stage = stages.size() == 1;
  const auto add = [&](const std::string& note) {
    if (!note.empty()) notes.push_back(note);
  };
  const auto add_if = [&]<class... Parts>(bool found, fmt::format_string<Parts...> note, Parts&&... parts) {
    if (found) notes.push_back(fmt::format(note, std::forward<Parts>(parts)...));
  };
  const auto of_steps = [&](std::int64_t time) { return share(time, all.steps); };
  const double tensor = of_steps(all.wait_tensor), data = of_steps(all.wait_data),
               copy = of_steps(all.wait_copy), update = of_steps(all.update),
               scalars = of_steps(all.scalars + (one_stage ? all.wait_scalars : 0)),
               other = of_steps(all.steps - all.work() - all.waiting());
  if (!one_stage) add(uneven_stages(stages, facts));
  if (!one_stage) add(bubble(all, static_cast<int>(stages.size()), facts));
  add_if(facts.tensor > 1 && tensor > much_tensor,
         "passes wait {:.0f} % of the time for tensor sums; a smaller grid.tensor{} exchanges less, and its "
         "ranks should share a node",
         percent(tensor), facts.data == 1 ? " with a larger grid.data" : "");
  const std::string sums_early = names_with<ScheduleKind>(&ScheduleRow::sums_early, " or ");
  add_if(facts.data > 1 && data > much_data,
         "sums of gradients stand still {:.0f} % of the time with nothing left to compute beside them; more "
         "micro-batches (a larger train.batch){} hide them",
         percent(data),
         one_stage || row_of(facts.schedule).sums_early ? "" : ", or schedule.kind: " + sums_early + ",");
  add_if(copy > much_copy,
         "{:.0f} % of the time passes with waiting for copies between memories; raise memory.device_limit, "
         "or take more stages",
         percent(copy));
  add_if(update > much_update,
         "updates take {:.0f} % of the time; {}a larger train.batch updates less often for the same tokens",
         percent(update),
         facts.data > 1 && !facts.sharded_optimizer ? "train.zero: 1 shares them among the replicas; " : "");
  add_if(scalars > much_scalars,
         "the gradient's norm and the sums of scalars take {:.0f} % of the time; a larger train.batch needs "
         "them less often",
         percent(scalars));
  add_if(other > much_other,
         "{:.0f} % of the time goes to nothing of these (filling gradients with zeros, messages begun, ranks "
         "that share a processor); fewer ranks on this machine or a larger train.micro_batch make it less",
         percent(other));
  return notes;
}

}  // namespace mindpipe
