#include "app/plan/plan.h"

#include <algorithm>
#include <ctime>

#include "app/energy/energy_text.h"
#include "app/plan/dry_run.h"
#include "app/plan/grid_choice.h"
#include "app/plan/open_choice.h"
#include "app/plan/plan_moves.h"
#include "app/plan/plan_ports.h"
#include "app/plan/plan_schedules.h"
#include "app/plan/plan_search.h"
#include "app/plan/plan_subnets.h"
#include "app/plan/profile_origin.h"
#include "app/plan/proof_text.h"
#include "app/run/json_line.h"
#include "app/run/version.h"
#include "app/train/report_end.h"
#include "app/verbs/main_verb.h"
#include "app/verbs/verbs.h"
#include "config/config.h"
#include "core/launcher.h"
#include "core/text.h"
#include "io/file.h"
#include "plan/memory_limits.h"
#include "plan/network_on_paper.h"
#include "plan/step_range.h"

namespace mindpipe {

std::string blocks_of_stage(const Outline& outline, int rank) {
  std::string blocks;
  for (int chunk = 0; chunk < outline.all_chunks(); ++chunk)
    if (outline.rank_of(chunk) == rank)
      blocks += fmt::format("{}{}-{}", blocks.empty() ? "" : ",", outline.first_block[chunk],
                            outline.first_block[chunk + 1] - 1);
  return blocks;
}

std::size_t width_of_blocks(const Outline& outline) {
  std::size_t width = 6;
  for (int rank = 0; rank < outline.stages; ++rank)
    width = std::max(width, blocks_of_stage(outline, rank).size());
  return width;
}

namespace {

std::string name_of_pass(const Action& action, int chunks) {
  return fmt::format("{}{}{}", pass_of(action)->letter, action.micro_batch,
                     chunks > 1 ? fmt::format(".{}", action.chunk) : "");
}

/// "F0 F1 B0 ..." of one stage; a backward that is split by blocks counts once.
std::string passes_of(const std::vector<Action>& list, int chunks) {
  constexpr int most = 20;
  std::string text, newest;
  int passes = 0;
  for (const Action& action : list) {
    if (!is_pass(action)) continue;
    const std::string name = name_of_pass(action, chunks);
    if (name == newest) continue;
    if (++passes <= most) text += " " + name;
    newest = name;
  }
  return passes <= most ? text : fmt::format("{} ... ({} in all)", text, passes);
}

/// The order of passes, one line a stage, below a heading.
std::string order_text(const std::string& heading, const PlannedStep& step, const Outline& outline) {
  std::string text =
      fmt::format("\n{}{}\n", heading, outline.chunks > 1 ? " (behind the point: of which chunk)" : "");
  for (std::size_t rank = 0; rank < step.program.ranks.size(); ++rank)
    text += fmt::format("{:<6}{}\n", rank, passes_of(step.program.ranks[rank], outline.chunks));
  return text;
}

/// The idle time of a stage, and what its passes spend in sums with the ranks that share their products.
std::string shares_of(const Timeline& expected, int stage) {
  const double sums = 100 * static_cast<double>(expected.sums[stage]) /
                      static_cast<double>(std::max<std::int64_t>(expected.step, 1));
  return fmt::format(" {:>6.1f}% {:>6.1f}%", 100 * expected.bubble(stage), sums);
}

}  // namespace

std::string prices_text(const Config& config, const RunPlan& plan) {
  if (config.device.profile.empty())
    return fmt::format("the device {} (device.description)", device_name(config));
  const Profile profile = read_profile(config.device.profile);
  ProfileOrigin here = origin_here(config.device);
  here.threads = 0;  // the text names those of the profile
  const bool is_foreign = row_of(config.device.kind).computes && !foreign_in(profile, here).empty();
  return fmt::format(
      "{} (device.profile: {}, {} rank{} of {} thread{}{}{}{})", config.device.profile, profile.machine,
      profile.ranks, profile.ranks == 1 ? "" : "s", profile.threads, profile.threads == 1 ? "" : "s",
      is_foreign ? ", another machine than this one" : "",
      profile.program == version() ? "" : ", measured by version " + profile.program,
      plan.known.estimated < 0.0005
          ? ""
          : fmt::format("; it lacks blocks with {:.1f} % of the time of passes, which are estimated: "
                        "mindpipe-train profile with these settings measures them",
                        100 * plan.known.estimated));
}

std::string range_text(const Config& config, const RunPlan& plan) {
  if (!plan.trains_steps()) return "";
  const StepRange range = range_of(config, plan);
  return fmt::format("a step that is measured should lie between {} and {}, nine times of ten\n",
                     human_seconds(1e-9 * static_cast<double>(range.least)),
                     human_seconds(1e-9 * static_cast<double>(range.most)));
}

std::string links_text(const Config& config, int ranks) {
  const LinkDescription links = links_on_paper(config);
  if (ranks == 1) return "";
  const auto one = [](double bytes, double latency) {
    return fmt::format("{:.3g} GB/s after {}", bytes * 1e-9, human_seconds(latency));
  };
  std::string text = fmt::format("links (device.links): {}", one(links.bytes, links.latency));
  if (ranks > links.ranks_per_node)
    text += fmt::format(" within a node of {} ranks, {} between nodes", links.ranks_per_node,
                        one(links.bytes_between_nodes, links.latency_between_nodes));
  return text + "\n";
}

namespace {

/// The groups of a schedule that has some, and whether they were chosen: `given` has those that are written.
std::string groups_text(const Config& given, const RunPlan& plan) {
  if (plan.groups.empty()) return "";
  const auto one = [](const std::vector<int>& groups, const std::vector<int>& written) {
    return fmt::format("[{}]{}", joined(groups), written.empty() ? " (auto)" : "");
  };
  const MicroBatchGroups& written = given.schedule.groups;
  return fmt::format("groups of micro-batches (schedule.groups): forwards {}, backwards {}\n",
                     one(plan.groups.forward, written.forward), one(plan.groups.backward, written.backward));
}

/// What recomputation leaves of a schedule with split backwards.
std::string halves_text(const Config& config) {
  const ChosenBlocks& recomputed = config.train.recompute;
  if (!row_of(config.schedule.kind).splits_backward || !recomputed.any()) return "";
  return fmt::format(
      "blocks that are computed again (train.recompute: {}) put no weight gradients off: their backwards are "
      "whole\n",
      recomputed.text());
}

/// The blocks, tapes and memory of each stage; simulated, its idle time too.
std::string stages_text(const RunPlan& plan, const PlannedStep& step, bool simulate) {
  const Outline& outline = plan.outline;
  const std::size_t width = width_of_blocks(outline);
  std::string text = fmt::format("{:<6} {:<{}}{} {:>6}{}\n", "stage", "blocks", width,
                                 simulate ? "  bubble  tensor" : "", "tapes", memory_head());
  for (int rank = 0; rank < outline.stages; ++rank)
    text += fmt::format("{:<6} {:<{}}{} {:>6}{}\n", rank, blocks_of_stage(outline, rank), width,
                        simulate ? shares_of(step.expected, rank) : "", step.placement.ranks[rank].arenas,
                        memory_row(plan.most_memory(rank)));
  return text;
}

}  // namespace

std::string plan_text(const Config& given, const Config& config, const RunPlan& plan, int ranks,
                      PortChanges* changes) {
  if (plan.subnets) return subnets_text(config, plan, ranks, changes);
  const bool simulate = changes != nullptr;
  const Outline& outline = plan.outline;
  const double step = static_cast<double>(plan.training.expected.step) * 1e-9,
               counted = static_cast<double>(config.train.batch * plan.counted.of_sample);
  std::string text =
      fmt::format("{}: {} parameters, {} rank{} ({}), schedule {}, {} micro-batches a rank\n",
                  config.model.kind, plan.parameters, ranks, ranks == 1 ? "" : "s",
                  to_string(make_layout(config, {}).grid), config.schedule.kind, outline.micro_batches) +
      groups_text(given, plan) + halves_text(config);
  if (simulate)
    text += fmt::format("simulated on paper for {}: step {}, {} {}s/s\n{}{}", prices_text(config, plan),
                        human_seconds(step), human_count(counted / step), plan.counted.what,
                        range_text(config, plan), links_text(config, ranks));
  text += '\n' + stages_text(plan, plan.training, simulate) + host_text(plan) +
          moving_steps_text(config, plan) + roots_text(config, plan) + undivided_text(config) +
          attention_text(config, plan);
  if (simulate)
    return text + time_text(config) +
           fmt::format("evaluation of a batch: {}\n",
                       human_seconds(static_cast<double>(plan.evaluation.expected.step) * 1e-9)) +
           ports_text(config, port_costs_of(plan, config), changes);
  const RunPlan reading = make_run_plan(config, Purpose::reading);
  return text +
         order_text("a step: passes of each stage in order, F forward, B backward, I and W its halves",
                    plan.training, outline) +
         order_text("an evaluation: passes of each stage in order", plan.evaluation, outline) +
         "\nan evaluation lies in the memory of the step; eval by itself needs\n" +
         stages_text(reading, reading.evaluation, false);
}

namespace {

/// The figures of a plan, for programs.
std::string json_of(const Config& config, const RunPlan& plan, int ranks) {
  const Timeline& expected = plan.expected();
  std::vector<double> memory, idle;
  for (int stage = 0; stage < plan.outline.stages; ++stage) {
    memory.push_back(static_cast<double>(total_of(plan.most_memory(stage))));
    if (plan.trains_steps()) idle.push_back(expected.bubble(stage));
  }
  JsonLine line;
  line.add("model", name_of(config.model.kind)).add("ranks", ranks).add("device", device_name(config));
  if (plan.trains_steps()) {
    const StepRange range = range_of(config, plan);
    line.add("step_ns", expected.step).add("step_least_ns", range.least).add("step_most_ns", range.most);
    line.add("idle", idle);
  }
  if (plan.subnets) line.add("subnet_ns", 1e9 * plan.subnets->paper.seconds_each());
  line.add("batch", config.train.batch).add("memory", memory).add("estimated", plan.known.estimated);
  std::string text = line.text();
  text.pop_back();
  return fmt::format("{}, \"ports\": {}}}\n", text, ports_json(port_costs_of(plan, config)));
}

/// energy.duration, or all steps or subnets on paper.
double seconds_of_run(const Config& config, const RunPlan& plan) {
  if (config.energy.duration > 0) return config.energy.duration;
  const double each = plan.subnets ? plan.subnets->paper.seconds_each()
                                   : static_cast<double>(plan.training.expected.step) * 1e-9;
  return each * config.train.steps;
}

}  // namespace

bool are_alone(const std::string& json) { return json == "-"; }

void write_figures(const std::string& json, const std::string& figures) {
  if (are_alone(json)) print(figures);
  else if (!json.empty()) replace_file(json, figures);
}

int plan(const Arguments& arguments, const Config& given) {
  const std::string& json = arguments.layouts.json;
  MP_REQUIRE(json.empty() || arguments.layouts.search || arguments.simulate, Exit::usage,
             "plan --json: figures of what? (add --simulate or --search)");
  require_own_profile(given.device, arguments.foreign_profile);
  if (arguments.layouts.search) return plan_search(arguments, given);
  if (launch().rank != 0) return 0;
  const int ranks = arguments.ranks > 0 ? arguments.ranks : ranks_of_grid(given);
  const Config config = on_paper(given, ranks, arguments.open);
  const RunPlan made = make_run_plan(config);
  if (!are_alone(json)) {
    PortChanges changes(config, open_settings(given, arguments.open, ranks));
    Config written = config;  // of other schedules all groups are chosen that the file leaves open
    written.schedule.groups = given.schedule.groups;
    print(plan_text(given, config, made, ranks, arguments.simulate ? &changes : nullptr));
    print(tapes_chosen(given, config, made, arguments.open));
    if (arguments.simulate && made.trains_steps())
      print(schedules_text(written, made.outline, changes.blocks()));
    print(proof_text(config, made) + "\n");
  }
  if (!json.empty()) write_figures(json, json_of(config, made, ranks));
  if (!config.energy.forecast.empty() && !are_alone(json))
    print(start_text(config.energy, seconds_of_run(config, made), static_cast<double>(std::time(nullptr))));
  require_within(made, config);
  require_stashes(made, config.train.swap);
  return 0;
}

}  // namespace mindpipe
