#include "app/plan/plan_search.h"

#include <algorithm>
#include <optional>

#include "app/plan/excluded_layouts.h"
#include "app/plan/grid_choice.h"
#include "app/plan/measure_layouts.h"
#include "app/plan/open_choice.h"
#include "app/plan/plan.h"
#include "app/plan/plan_comparison.h"
#include "app/plan/plan_lanes.h"
#include "app/plan/plan_page.h"
#include "app/plan/plan_ports.h"
#include "app/plan/tapes_text.h"
#include "app/plan/traced_run.h"
#include "app/run/json_line.h"
#include "app/train/report_end.h"
#include "app/verbs/main_verb.h"
#include "comm/text_of_rank_0.h"
#include "config/config.h"
#include "core/launcher.h"
#include "core/middle.h"
#include "core/text.h"
#include "io/file.h"
#include "plan/network_on_paper.h"
#include "plan/priced_blocks.h"
#include "plan/run_plan.h"
#include "plan/searched_settings.h"
#include "plan/unequal_stages.h"

namespace mindpipe {
namespace {

using Fate = LayoutCandidate::Fate;

std::string seconds_of(std::int64_t nanoseconds) {
  return human_seconds(1e-9 * static_cast<double>(nanoseconds));
}

/// What a layout has of a setting: chosen blocks are one value, whichever they are.
std::string value_of(const SearchedSetting& setting, const LayoutChoice& layout) {
  const std::string value = setting.value(layout);
  return value.starts_with('[') ? "[...]" : value;
}

/// Where the time of a step goes, in the mean of all stages.
std::string shares_text(const PlannedStep& planned) {
  const Timeline& expected = planned.expected;
  double busy = 0, sums = 0, passes_end = 0;
  for (std::size_t rank = 0; rank < expected.busy.size(); ++rank) {
    busy += static_cast<double>(expected.busy[rank]);
    sums += static_cast<double>(expected.sums[rank]);
    for (std::size_t i = 0; i < expected.spans[rank].size(); ++i)
      if (is_pass(planned.program.ranks[rank][i]))
        passes_end = std::max(passes_end, static_cast<double>(expected.spans[rank][i].end));
  }
  const auto step = static_cast<double>(expected.step),
             all = step * static_cast<double>(expected.busy.size()), behind = 1 - passes_end / step;
  return fmt::format(
      "where the step goes, in the mean of all stages: work {:.1f} %, tensor sums {:.1f} %, idle {:.1f} %; "
      "{:.1f} % of it lies behind the last pass, where sums over data end and weights are updated\n",
      100 * (busy - sums) / all, 100 * sums / all, 100 * (1 - busy / all), 100 * behind);
}

/// "1.20 s, 3.1 % longer", or of another goal than time "1.20 s, costs 3.1 % more"; "1.16 s, as good" where
/// the simpler layout was taken.
std::string worse(const StepPrice& price, const LayoutCandidate& other, const LayoutCandidate& best) {
  const bool is_known = other.step > 0;
  const double more = (is_known ? other.cost(price) : other.least_cost(price)) / best.cost(price) - 1;
  const std::string step = (is_known ? "" : "at least ") + seconds_of(is_known ? other.step : other.bound);
  if (is_known && more < equal_costs - 1) return step + ", as good";
  return fmt::format(fmt::runtime(price.is_time() ? "{}, {:.1f} % longer" : "{}, costs {:.1f} % more"), step,
                     100 * more);
}

/// What else a layout has otherwise than the best, behind one of its settings.
std::string differing(const LayoutChoice& best, const LayoutChoice& other, const std::string& but) {
  std::vector<std::string> words;
  for (const SearchedSetting& one : searched_settings())
    if (one.is_compared && one.key != but && value_of(one, best) != value_of(one, other))
      words.push_back(fmt::format("{}={}", one.key, value_of(one, other)));
  return words.empty() ? "" : " (with " + join(words, " ") + ")";
}

/// "  grid.tensor=1: ...": that no layout with a value was found to fit, where memory is why.
std::string too_large_text(const LayoutSearch& search, const SearchedSetting& setting,
                           const std::string& value, std::int64_t limit) {
  std::int64_t least = 0;
  for (const LayoutCandidate& one : search.all) {
    if (one.fate != LayoutCandidate::Fate::too_large || value_of(setting, one.layout) != value) continue;
    const std::int64_t bytes = one.least_need(limit);
    if (least == 0 || bytes < least) least = bytes;
  }
  return least == 0 ? ""
                    : fmt::format("  {}={}: none was found that fits; the smallest takes {} or more\n",
                                  setting.key, value, human_bytes(static_cast<double>(least)));
}

/// For each value of a free setting that the best layout does not have, the best layout that has it.
std::string others_text(const Config& config, const SearchFreedom& free, LayoutSearch& search,
                        PricedBlocks& blocks) {
  const LayoutCandidate best = search.all[search.best.front()];
  std::string text;
  for (const SearchedSetting& setting : searched_settings()) {
    if (!(free.*setting.free) || !setting.is_compared) continue;
    std::set<std::string> told{value_of(setting, best.layout)};
    for (std::size_t i = 0; i < search.all.size(); ++i) {
      const std::string value = value_of(setting, search.all[i].layout);
      if (!told.insert(value).second) continue;
      const int place = best_with(search, config, blocks, [&](const LayoutChoice& layout) {
        return value_of(setting, layout) == value;
      });
      if (place < 0) {
        text += too_large_text(search, setting, value, config.memory.device_limit);
        continue;
      }
      const LayoutCandidate& found = search.all[place];
      text += fmt::format("  {}={}: {}{}\n", setting.key, value, worse(search.price, found, best),
                          differing(best.layout, found.layout, setting.key));
    }
  }
  return text.empty() ? "" : "why not another value, with the best layout found that has it\n" + text;
}

/// Whether a layout keeps the bits of another one.
std::string bits_text(const Config& config, const SearchFreedom& free, const LayoutChoice& best) {
  const ReproducibleConfig& shards = config.reproducible;
  std::string keep;
  if (free.tensor && shards.tensor_follows && best.grid.tensor > 1)
    keep += fmt::format(" reproducible.tensor={}", best.grid.tensor);
  if (free.data && shards.data_follows && best.grid.data > 1)
    keep += fmt::format(" reproducible.data={}", best.grid.data);
  return keep.empty() ? "bits: the same as of every layout of this configuration\n"
                      : fmt::format(
                            "bits: logical shards follow the grid here; with{} other grids that can "
                            "share these give the same bits\n",
                            keep);
}

bool is_of_subnets(const LayoutSearch& search) { return search.all[search.best.front()].subnets.has_value(); }

std::string top_text(const SearchFreedom& free, const LayoutSearch& search, int top) {
  std::string text = fmt::format("{:>11} {:>11}  the best of those simulated, each with its best cut\n",
                                 is_of_subnets(search) ? "a subnet" : "step", "memory");
  for (const int place : best_of_each(search, top)) {
    const LayoutCandidate& one = search.all[place];
    text += fmt::format("{:>11} {:>11}  {}\n", seconds_of(one.step),
                        human_bytes(static_cast<double>(one.memory)), words_of(one.layout, free));
  }
  return text;
}

/// How the layout that the configuration has compares, where it has a whole one.
std::string own_text(const Config& config, int ranks, const StepPrice& price, const LayoutCandidate& best) {
  LayoutCandidate own{.layout = layout_of(config)};
  for (const Axis axis : axes)
    if (own.layout.grid[axis] == 0) return "";
  if (num_ranks(own.layout.grid) != ranks) return "";
  simulate_layout(config, own);
  if (own.fate == Fate::refused) return "the configuration as it stands is refused: " + own.refusal + "\n";
  return fmt::format("the configuration as it stands{}: {} {}, so this is {:.2f} times as fast{}\n",
                     own.fate == Fate::too_large ? " needs more than memory.device_limit" : "",
                     own.subnets ? "a subnet takes" : "step", seconds_of(own.step),
                     static_cast<double>(own.step) / static_cast<double>(best.step),
                     price.is_time() ? ""
                                     : fmt::format(" and takes {:.3f} of what that takes of the objective",
                                                   best.cost(price) / own.cost(price)));
}

std::string name_of_fate(const LayoutCandidate& one) {
  switch (one.fate) {
    case Fate::slower:
      return "slower";
    case Fate::too_large:
      return "too large";
    case Fate::simulated:
      return "simulated";
    case Fate::refused:
      return "refused";
  }
  return "";
}

std::string json_of(const LayoutCandidate& one) {
  const LayoutChoice& layout = one.layout;
  JsonLine line;
  if (layout.grid.supernet > 1 || one.subnets) line.add("supernet", layout.grid.supernet);
  if (one.subnets) line.add("subnet_cuts", name_of(layout.subnet_cuts)).add("idle", one.subnets->idle);
  line.add("pipeline", layout.grid.pipeline).add("data", layout.grid.data).add("tensor", layout.grid.tensor);
  line.add("schedule", name_of(layout.schedule)).add("chunks", layout.chunks).add("cuts", layout.cuts);
  line.add("zero", layout.zero).add("recompute", layout.recompute.text());
  if (layout.swap.any()) line.add("swap", layout.swap.text());
  line.add("sequence_parallel", layout.sequence_parallel).add("micro_batch", layout.micro_batch);
  line.add("outcome", name_of_fate(one));
  line.add("bound_ns", one.bound).add("least_memory", one.least_memory);
  line.add("least_work_ns", one.least_work);
  if (one.step > 0) line.add("step_ns", one.step).add("work_ns", one.work);
  if (one.memory > 0) line.add("memory", one.memory);
  if (!one.refusal.empty()) line.add("refusal", one.refusal);
  return line.text();
}

}  // namespace

std::string search_text(const Config& config, int ranks, const SearchFreedom& free, LayoutSearch& search,
                        PricedBlocks& blocks, int top, const std::string& spent) {
  if (search.best.empty()) fail_for_want(config, ranks, free, search);
  const LayoutCandidate best = search.all[search.best.front()];
  const Config chosen = with_layout(config, best.layout);
  const RunPlan plan = make_run_plan(chosen);
  const double step = 1e-9 * static_cast<double>(best.step);
  const std::string others = others_text(config, free, search, blocks);
  rank_again(search, config, top, blocks);  // that simulated some more
  if (best.subnets)
    return subnet_search_text(chosen, plan, ranks, best, words_of(best.layout, free)) + spent +
           own_text(config, ranks, search.price, best) + bits_text(config, free, best.layout) + '\n' +
           top_text(free, search, top) + '\n' + others + excluded_text(config, search);
  return fmt::format(
             "{}: {} parameters on {} rank{}, priced for {}\n{}\n  {}\n\n"
             "step {} (simulated), {} {}s/s\n{}",
             config.model.kind, plan.parameters, ranks, ranks == 1 ? "" : "s", prices_text(config, plan),
             links_text(chosen, ranks), words_of(best.layout, free), seconds_of(best.step),
             human_count(static_cast<double>(config.train.batch * plan.counted.of_sample) / step),
             plan.counted.what, range_text(chosen, plan)) +
         spent + own_text(config, ranks, search.price, best) + shares_text(plan.training) +
         binding_text(config, plan) + tapes_text(config, plan, best.layout, free) +
         ports_text(chosen, port_costs_of(plan, chosen)) + bits_text(config, free, best.layout) + '\n' +
         top_text(free, search, top) + '\n' + others + excluded_text(config, search) +
         (free.pipeline && free.data && free.tensor ? unequal_text(chosen, ranks) : "");
}

std::string search_json(const Config& config, int ranks, const SearchFreedom& free,
                        const LayoutSearch& search, const std::string& plans) {
  std::string text =
      fmt::format("{{\"model\": {}, \"ranks\": {}, \"device\": {},\n",
                  json_string(name_of(config.model.kind)), ranks, json_string(device_name(config)));
  if (!search.best.empty()) {
    const LayoutCandidate& best = search.all[search.best.front()];
    text += fmt::format("\"settings\": {},\n\"chosen\": {},\n", json_string(words_of(best.layout, free)),
                        json_of(best));
  }
  if (!plans.empty()) text += "\"plans\": [" + plans + "],\n";
  text += "\"refused\": {";
  std::string between;
  for (const auto& [key, refusal] : search.refused) {
    text += fmt::format("{}{}: [{}, {}]", std::exchange(between, ", "), json_string(key), refusal.first,
                        json_string(refusal.second));
  }
  text += "},\n\"candidates\": [";
  between = "\n";
  for (const LayoutCandidate& one : search.all) text += std::exchange(between, ",\n") + json_of(one);
  return text + "\n]}\n";
}

namespace {

/// Runs the best few layouts in this job, puts the fastest first, and says how far off their plans were. The
/// layout of a traced run stays the best unless another is surely faster.
std::string measure(const Arguments& arguments, const Config& config, const SearchFreedom& free,
                    LayoutSearch& search, const std::optional<TracedRun>& traced) {
  std::vector<int> places = best_of_each(search, arguments.layouts.measure);
  if (traced) {
    LayoutCandidate own{.layout = layout_of(traced->config)};
    simulate_layout(traced->priced, own);
    search.all.push_back(std::move(own));  // the last, so that no place of another changes
    places.push_back(static_cast<int>(search.all.size()) - 1);
    search.best.push_back(places.back());
  }
  std::vector<LayoutChoice> layouts;
  for (const int place : places) layouts.push_back(search.all[place].layout);
  const std::vector<std::vector<double>> seconds =
      measured_steps(arguments, config, layouts, traced.has_value());
  std::string text =
      fmt::format("{:>11} {:>11}  steps simulated and measured in this job\n", "simulated", "measured");
  std::size_t fastest = 0;
  for (std::size_t i = 0; i < places.size(); ++i) {
    text += fmt::format("{:>11} {:>11}  {}{}\n", seconds_of(search.all[places[i]].step),
                        human_seconds(upper_middle(seconds[i])), words_of(layouts[i], free),
                        traced && i + 1 == places.size() ? " (as it ran)" : "");
    if (upper_middle(seconds[i]) < upper_middle(seconds[fastest])) fastest = i;
  }
  const bool stays = traced && !surely_faster(seconds[fastest], seconds.back());
  if (stays) fastest = places.size() - 1;
  search.best.erase(std::find(search.best.begin(), search.best.end(), places[fastest]));
  search.best.insert(search.best.begin(), places[fastest]);
  if (stays) return text + "no other is surely faster here than the layout that ran: keep it\n";
  return text + (fastest == 0 ? "the best on paper is the fastest here too\n"
                              : fmt::format("take the fastest here: {}\n", words_of(layouts[fastest], free)));
}

}  // namespace

int plan_search(const Arguments& arguments, const Config& given) {
  const SearchArguments& asked = arguments.layouts;
  const int job = launch().ranks, ranks = arguments.ranks > 0 ? arguments.ranks : job;
  MP_REQUIRE(
      arguments.ranks > 0 || job > 1 || asked.measure > 0, Exit::usage,
      "plan --search: for how many ranks? (give --ranks N; under mpirun or srun it is the job's number)");
  MP_REQUIRE(asked.measure == 0 || ranks == job, Exit::usage,
             "plan --measure runs layouts of {} ranks, and this job has {} (start {})", ranks, job, ranks);
  MP_REQUIRE(
      asked.measure == 0 || (asked.most_ranks == 0 && given.plan.batches.empty()), Exit::usage,
      "plan --measure runs layouts of the ranks and the batch that the job has (leave plan.batches and the "
      "range of --ranks out)");
  if (launch().rank != 0 && asked.measure == 0) return 0;
  WrittenKeys written;
  Config config = read_config(arguments.config, arguments.overrides, written);
  const SearchFreedom free = freedom_of(config, written);
  take_open_batches(config, written.open);
  const PlanGoal goal(config);
  std::optional<MpiSession> session;  // open from here on, for ranks to wait until the prices are written
  std::optional<TracedRun> traced;
  if (!asked.from.empty()) {
    traced = traced_run(config, ranks, free, asked.from);
    if (asked.measure > 0) {
      int argc = arguments.argc;
      char** argv = arguments.argv;
      session.emplace(argc, argv);
      any_rank({session->world(), session->rank(), session->size()}, false);
    }
  }
  std::vector<ComparedPlan> plans = compare_plans(traced ? traced->priced : config, ranks, asked.most_ranks,
                                                  goal, free, std::max(asked.top, asked.measure));
  const int best = best_plan(plans, goal);
  ComparedPlan& chosen = best < 0 ? plans.back() : plans[best];
  // Every rank that measures ranks layouts alike.
  std::string text = comparison_text(plans, goal, free, config.train.batch) +
                     search_text(chosen.config, chosen.size.ranks, free, chosen.search, chosen.blocks,
                                 asked.top, spent_text(chosen, goal));
  MP_REQUIRE(best >= 0, Exit::bad_configuration, "no layout of {} ranks is allowed or fits", ranks);
  config.train.batch = chosen.size.batch;
  if (asked.measure > 0) text += '\n' + measure(arguments, config, free, chosen.search, traced);
  if (launch().rank != 0) return 0;
  if (!are_alone(asked.json)) print(text);
  if (!asked.json.empty())
    write_figures(asked.json, search_json(chosen.config, chosen.size.ranks, free, chosen.search,
                                          comparison_json(plans, goal, free)));
  if (!asked.html.empty()) replace_file(asked.html, plan_page(plans, goal, free, text));
  if (!asked.output.empty()) replace_file(asked.output, to_yaml(with_layout(config, chosen.best().layout)));
  return 0;
}

}  // namespace mindpipe
