#include "app/plan_lanes.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "app/grid_choice.h"
#include "core/text.h"
#include "plan/move_ratio.h"
#include "plan/network_on_paper.h"
#include "supernet/sampler.h"

namespace mindpipe {
namespace {

/// One way to divide a supernet's ranks, and what it gives on paper.
struct Choice {
  int lanes = 1, stages = 1;
  SubnetCuts cuts = SubnetCuts::home;
  double each = 0, speed_up = 0;  ///< seconds a subnet; over one stage
  double idle = 0;                ///< the mean of all ranks, a part of the time
  std::array<double, wait_reasons> because{};
  std::int64_t memory = 0;  ///< of the rank that needs the most
  double ratio = 0;         ///< r: how long a subnet-stage's moves take, in passes; 0: nothing moves
};

std::string words_of(const Choice& choice) {
  return fmt::format("{} x {}{}", choice.lanes, choice.stages,
                     choice.cuts == SubnetCuts::own ? ", own cuts" : "");
}

Choice choice_of(const Config& config, const RunPlan& plan) {
  const RoomsOnPaper& paper = plan.subnets->paper;
  Choice choice{.lanes = plan.outline.lanes,
                .stages = plan.outline.stages,
                .cuts = config.supernet.cuts,
                .each = paper.seconds_each(),
                .speed_up = paper.speed_up()};
  const double all = static_cast<double>(paper.time) * static_cast<double>(paper.busy.size());
  for (std::size_t rank = 0; rank < paper.busy.size(); ++rank) {
    choice.idle += static_cast<double>(paper.time - paper.busy[rank]) / all;
    for (int k = 0; k < wait_reasons; ++k)
      choice.because[k] += static_cast<double>(paper.idle[rank][k]) / all;
  }
  for (int stage = 0; stage < plan.outline.stages; ++stage)
    choice.memory = std::max(choice.memory, total_of(plan.most_memory(stage)));
  if (choice.lanes > 1 || choice.cuts == SubnetCuts::own)
    choice.ratio = move_ratio(plan.outline, network_on_paper(config));
  return choice;
}

/// What a choice gives; nothing where it is refused.
std::optional<Choice> tried(const Config& config, int lanes, int stages, SubnetCuts cuts, int ranks) {
  Config other = config;
  other.grid.supernet = lanes;
  other.grid.pipeline = stages;
  other.supernet.cuts = cuts;
  try {
    const Config known = on_paper(other, ranks);
    return choice_of(known, make_run_plan(known));
  } catch (const Error& error) {
    if (error.code == Exit::internal) throw;  // a mistake, no refusal
    return std::nullopt;
  }
}

std::vector<Choice> all_choices(const Config& config, int ranks) {
  const int places = ranks / (config.grid.data * config.grid.tensor);
  std::vector<Choice> choices;
  for (int lanes = 1; lanes <= places; ++lanes)
    for (const SubnetCuts cuts : {SubnetCuts::home, SubnetCuts::own}) {
      if (places % lanes != 0 || (cuts == SubnetCuts::own && lanes == places)) continue;
      if (const auto choice = tried(config, lanes, places / lanes, cuts, ranks)) choices.push_back(*choice);
    }
  std::stable_sort(choices.begin(), choices.end(),
                   [](const Choice& a, const Choice& b) { return a.each < b.each; });
  return choices;
}

/// Why one is faster than another: what its ranks wait less for.
std::string reason(const Choice& best, const Choice& other) {
  constexpr std::array<const char*, wait_reasons> names{"what others have yet to send",
                                                        "older subnets' updates and moves", "rooms"};
  std::size_t most = 0;
  for (std::size_t k = 1; k < names.size(); ++k)
    if (other.because[k] - best.because[k] > other.because[most] - best.because[most]) most = k;
  return fmt::format(
      "its ranks stand idle {:.1f} % of the time, those of {} {:.1f} %: {:.1f} instead of {:.1f} % for {}",
      100 * best.idle, words_of(other), 100 * other.idle, 100 * best.because[most], 100 * other.because[most],
      names[most]);
}

/// How long moves take beside passes, times the part of all subnets whose units come from another lane.
double shown_moves(const Config& config, const Outline& outline) {
  return move_ratio(outline, network_on_paper(config)) * (outline.lanes - 1) / outline.lanes;
}

/// How many times as fast as one of them alone these lanes are on paper.
double over_one_lane(const Config& config, const RunPlan& plan) {
  Outline alone = plan.outline;
  alone.lanes = 1;
  const std::vector<Subnet> subnets = first_subnets(config);
  const auto time_of = [&](const Outline& outline) {
    return static_cast<double>(
        simulate_rooms(outline, network_on_paper(config), plan.subnets->paper.rules, subnets).time);
  };
  return time_of(alone) / time_of(plan.outline);
}

}  // namespace

std::string lanes_text(const Config& config, int ranks) {
  const std::vector<Choice> choices = all_choices(config, ranks);
  if (choices.size() < 2) return "";
  std::string text =
      "\nlanes x stages of as many ranks, on paper\n"
      "lanes  stages  cuts   subnets/s  over one stage     idle   owners    rooms      r   memory of a "
      "rank\n";
  for (const Choice& choice : choices)
    text += fmt::format("{:<6} {:<7} {:<5} {:>10.4g} {:>15.2f} {:>7.1f}% {:>7.1f}% {:>7.1f}% {:>6} {:>18}\n",
                        choice.lanes, choice.stages, name_of(choice.cuts), 1 / choice.each, choice.speed_up,
                        100 * choice.idle, 100 * choice.because[static_cast<int>(WaitReason::owner)],
                        100 * choice.because[static_cast<int>(WaitReason::room)],
                        choice.ratio > 0 ? fmt::format("{:.2f}", choice.ratio) : "-",
                        human_bytes(static_cast<double>(choice.memory)));
  text += "r: how long a subnet-stage's units are under way beside how long its passes take\n";
  const Choice& best = choices.front();
  const auto own = std::find_if(choices.begin(), choices.end(), [&](const Choice& choice) {
    return choice.lanes == config.grid.supernet && choice.cuts == config.supernet.cuts;
  });
  if (own == choices.end()) return text;
  const double gain = own->each / best.each - 1;
  if (gain < 0.005) return text + "this configuration is as fast as any of them\n";
  return text + fmt::format(
                    "take grid.supernet={} grid.pipeline={} supernet.cuts={}: {:.0f} % faster than this "
                    "configuration; {}\n",
                    best.lanes, best.stages, best.cuts, 100 * gain, reason(best, *own));
}

bool lanes_pay(const Config& config, const RunPlan& plan) {
  return shown_moves(config, plan.outline) < 1 && over_one_lane(config, plan) >= 1;
}

std::string moves_text(const Config& config, const RunPlan& plan) {
  const Outline& outline = plan.outline;
  if (outline.lanes == 1) return "";
  const double shown = shown_moves(config, outline), over_one = over_one_lane(config, plan);
  std::string text = fmt::format(
      "{} lanes are {:.2f} times as fast on paper as one of them alone{}\n"
      "moves: a subnet-stage's units are under way {:.2f} times as long as its passes take (r), and {} of {} "
      "subnets find them in another lane",
      outline.lanes, over_one, over_one < 1 ? " (plan --simulate compares other layouts)" : "",
      shown * outline.lanes / (outline.lanes - 1), outline.lanes - 1, outline.lanes);
  if (shown < 1) return text + ": passes hide them\n";
  const int batch =
      static_cast<int>(std::ceil(config.train.batch * shown / outline.micro_batches)) * outline.micro_batches;
  return text +
         fmt::format(
             ": passes do not hide them; a batch of {} would (train.batch is {}). On paper this is {:.2f} "
             "times as fast as one stage\n",
             batch, config.train.batch, plan.subnets->paper.speed_up());
}

}  // namespace mindpipe
