#include "app/plan/plan_lanes.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "app/plan/grid_choice.h"
#include "core/text.h"
#include "plan/moves_on_paper.h"
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
  std::int64_t memory = 0;  ///< memory of the rank that needs the most
  double lost = 0;          ///< to moves, a part of the time
  double ratio = 0;         ///< how long moves take, in passes
  bool fits = true;         ///< into memory.device_limit
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
  choice.lost = lost_to_moves(config, plan);
  choice.ratio = move_ratio(plan.outline, network_on_paper(config));
  choice.fits = config.memory.device_limit == 0 || choice.memory <= config.memory.device_limit;
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

struct Choices {
  std::vector<Choice> all;           ///< the fastest first
  std::vector<std::string> refused;  ///< in words
};

Choices all_choices(const Config& config, int ranks) {
  const int places = ranks / (config.grid.data * config.grid.tensor);
  Choices found;
  for (int lanes = 1; lanes <= places; ++lanes)
    for (const SubnetCuts cuts : {SubnetCuts::home, SubnetCuts::own}) {
      if (places % lanes != 0 || (cuts == SubnetCuts::own && lanes == places)) continue;
      if (const auto choice = tried(config, lanes, places / lanes, cuts, ranks)) found.all.push_back(*choice);
      else found.refused.push_back(words_of({.lanes = lanes, .stages = places / lanes, .cuts = cuts}));
    }
  std::stable_sort(found.all.begin(), found.all.end(),
                   [](const Choice& a, const Choice& b) { return a.each < b.each; });
  return found;
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

/// "2 lanes are 1.61 times as fast on paper as one of them alone"
std::string gain_text(const std::string& what, double times, const std::string& other) {
  const std::string by = times < 0.1 ? fmt::format("{:.2g}", times) : fmt::format("{:.2f}", times);
  return fmt::format("{} are {} times as fast on paper as {}{}\n", what, by, other,
                     times < 0.995 ? ": plan --simulate compares other layouts" : "");
}

}  // namespace

std::string lanes_text(const Config& config, int ranks) {
  const auto [choices, refused] = all_choices(config, ranks);
  if (choices.size() < 2) return "";
  std::string text =
      "\nlanes x stages of as many ranks, on paper\n"
      "lanes  stages  cuts   subnets/s  over one stage     idle   owners    rooms    moves   memory of a "
      "rank\n";
  for (const Choice& choice : choices)
    text += fmt::format(
        "{:<6} {:<7} {:<5} {:>10.4g} {:>15.2f} {:>7.1f}% {:>7.1f}% {:>7.1f}% {:>7.1f}% {:>18}{}\n",
        choice.lanes, choice.stages, name_of(choice.cuts), 1 / choice.each, choice.speed_up,
        100 * choice.idle, 100 * choice.because[static_cast<int>(WaitReason::owner)],
        100 * choice.because[static_cast<int>(WaitReason::room)], 100 * choice.lost,
        human_bytes(static_cast<double>(choice.memory)), choice.fits ? "" : ", too much");
  if (!refused.empty()) text += fmt::format("refused: {}\n", join(refused, "; "));
  text += fmt::format(
      "moves: the part of the time that they cost; a subnet's units on a stage are under way {:.2f} times as "
      "long as its passes there take (r)\n",
      choices.front().ratio);
  const auto best =
      std::find_if(choices.begin(), choices.end(), [](const Choice& choice) { return choice.fits; });
  const auto own = std::find_if(choices.begin(), choices.end(), [&](const Choice& choice) {
    return choice.lanes == config.grid.supernet && choice.cuts == config.supernet.cuts;
  });
  if (best == choices.end()) return text + "none of them fits into memory.device_limit\n";
  if (own == choices.end()) return text;
  const double gain = own->each / best->each - 1;
  if (own->fits && gain < 0.005) return text + "this configuration is as fast as any of them\n";
  text += fmt::format("take grid.supernet={} grid.pipeline={} supernet.cuts={}: ", best->lanes, best->stages,
                      best->cuts);
  if (!own->fits) return text + "this configuration does not fit into memory.device_limit\n";
  return text + fmt::format("{:.0f} % faster than this configuration; {}\n", 100 * gain, reason(*best, *own));
}

MovesText moves_text(const Config& config, const RunPlan& plan) {
  const Outline& outline = plan.outline;
  if (!outline.has_moves()) return {};
  const MovesOnPaper moves = moves_on_paper(config, plan);
  MovesText found{.is_warning =
                      moves.over_one_lane < 0.995 || moves.over_one_cut < 0.97 || !moves.are_hidden()};
  if (outline.lanes > 1)
    found.text += gain_text(fmt::format("{} lanes", outline.lanes), moves.over_one_lane, "one of them alone");
  if (outline.own_cuts)
    found.text += gain_text("cuts of subnets' own", moves.over_one_cut, "one cut for all");
  found.text += fmt::format(
      "moves: a subnet's units on a stage are under way {:.2f} times as long as its passes there take (r), "
      "and {:.0f} % of them come from another rank; on paper that costs {:.1f} % of the time",
      moves.ratio, 100 * moves.elsewhere, 100 * moves.lost);
  const RoomsOnPaper& paper = plan.subnets->paper;
  const std::string cut =
      fmt::format("at a drain up to {} go home, in {}\n", human_bytes(static_cast<double>(paper.home)),
                  human_seconds(1e-9 * static_cast<double>(paper.until_home)));
  if (moves.are_hidden()) {
    found.text += ": passes hide it\n" + cut;
    return found;
  }
  const int batch = batch_that_hides_moves(config, plan);
  found.text +=
      batch > 0 ? fmt::format(": passes do not hide it; train.batch={} would, with micro-batches as they are",
                              batch)
                : fmt::format(
                      ": passes do not hide it, nor would they with a batch of {}; take fewer lanes, "
                      "supernet.cuts=home, or faster links",
                      8 * config.train.batch);
  found.text += fmt::format(" (train.batch is {}, and this is {:.2f} times as fast as one stage)\n",
                            config.train.batch, paper.speed_up());
  found.text += cut;
  return found;
}

}  // namespace mindpipe
