#include "app/plan/plan_lanes.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "app/plan/plan.h"
#include "app/plan/plan_subnets.h"
#include "config/config.h"
#include "core/text.h"
#include "plan/moves_on_paper.h"
#include "plan/network_on_paper.h"
#include "supernet/sampler.h"

namespace mindpipe {
namespace {

using Fate = LayoutCandidate::Fate;

std::string words_of(const LayoutChoice& layout) {
  return fmt::format("{} x {}{}", layout.grid.supernet, layout.grid.pipeline,
                     layout.subnet_cuts == SubnetCuts::own ? ", own cuts" : "");
}

double part_for(const LayoutCandidate& choice, WaitReason reason) {
  return choice.subnets->because[static_cast<int>(reason)];
}

struct Choices {
  std::vector<LayoutCandidate> all;  ///< the fastest first
  std::vector<std::string> refused;  ///< in words
};

/// All lanes x stages of so many ranks, with one cut and with cuts of subnets' own, each of them planned.
Choices all_choices(const Config& config, int ranks) {
  const SearchFreedom free{.pipeline = true, .supernet = true, .subnet_cuts = true};
  Choices found;
  for (LayoutCandidate& one : search_layouts(config, ranks, free, std::numeric_limits<int>::max()).all)
    if (one.subnets) found.all.push_back(std::move(one));
    else found.refused.push_back(words_of(one.layout));
  std::stable_sort(found.all.begin(), found.all.end(),
                   [](const LayoutCandidate& a, const LayoutCandidate& b) { return a.step < b.step; });
  return found;
}

/// Why one is faster than another: what its ranks wait less for.
std::string reason(const LayoutCandidate& best, const LayoutCandidate& other) {
  const SubnetFigures &mine = *best.subnets, &others = *other.subnets;
  constexpr std::array<const char*, wait_reasons> names{"what others have yet to send",
                                                        "older subnets' updates and moves", "rooms"};
  std::size_t most = 0;
  for (std::size_t k = 1; k < names.size(); ++k)
    if (others.because[k] - mine.because[k] > others.because[most] - mine.because[most]) most = k;
  return fmt::format(
      "its ranks stand idle {:.1f} % of the time, those of {} {:.1f} %: {:.1f} instead of {:.1f} % for {}",
      100 * mine.idle, words_of(other.layout), 100 * others.idle, 100 * mine.because[most],
      100 * others.because[most], names[most]);
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
  for (const LayoutCandidate& choice : choices) {
    const SubnetFigures& figures = *choice.subnets;
    text += fmt::format(
        "{:<6} {:<7} {:<5} {:>10.4g} {:>15.2f} {:>7.1f}% {:>7.1f}% {:>7.1f}% {:>7.1f}% {:>18}{}\n",
        choice.layout.grid.supernet, choice.layout.grid.pipeline, name_of(choice.layout.subnet_cuts),
        1e9 / static_cast<double>(choice.step), figures.speed_up, 100 * figures.idle,
        100 * part_for(choice, WaitReason::owner), 100 * part_for(choice, WaitReason::room),
        100 * figures.lost, human_bytes(static_cast<double>(choice.memory)),
        choice.fate == Fate::too_large ? ", too much" : "");
  }
  if (!refused.empty()) text += fmt::format("refused: {}\n", join(refused, "; "));
  text += fmt::format(
      "moves: the part of the time that they cost; a subnet's units on a stage are under way {:.2f} times as "
      "long as its passes there take (r)\n",
      choices.front().subnets->ratio);
  const auto best = std::find_if(choices.begin(), choices.end(), [](const LayoutCandidate& choice) {
    return choice.fate == Fate::simulated;
  });
  const auto own = std::find_if(choices.begin(), choices.end(), [&](const LayoutCandidate& choice) {
    return choice.layout.grid.supernet == config.grid.supernet &&
           choice.layout.subnet_cuts == config.supernet.cuts;
  });
  if (best == choices.end()) return text + "none of them fits into memory.device_limit\n";
  if (own == choices.end()) return text;
  const double gain = static_cast<double>(own->step) / static_cast<double>(best->step) - 1;
  const bool fits = own->fate == Fate::simulated;
  if (fits && gain < 0.005) return text + "this configuration is as fast as any of them\n";
  text += fmt::format("take grid.supernet={} grid.pipeline={} supernet.cuts={}: ", best->layout.grid.supernet,
                      best->layout.grid.pipeline, best->layout.subnet_cuts);
  if (!fits) return text + "this configuration does not fit into memory.device_limit\n";
  return text + fmt::format("{:.0f} % faster than this configuration; {}\n", 100 * gain, reason(*best, *own));
}

std::string subnet_search_text(const Config& chosen, const RunPlan& plan, int ranks,
                               const LayoutCandidate& best, const std::string& words) {
  const SubnetFigures& figures = *best.subnets;
  return fmt::format(
      "{}: {} parameters on {} rank{}, priced for {}\n{}\n  {}\n\n"
      "{:.4g} subnets/s (simulated), {:.2f} times as fast as one stage\n"
      "where the time goes, in the mean of all ranks: work {:.1f} %, idle {:.1f} %: {:.1f} % until older "
      "subnets have updated a unit or moved it, {:.1f} % for rooms; moves cost {:.1f} %\n"
      "a rank needs {} at most{}\n{}\n",
      chosen.model.kind, plan.parameters, ranks, ranks == 1 ? "" : "s", text_of_prices(chosen),
      links_text(chosen, ranks), words, 1e9 / static_cast<double>(best.step), figures.speed_up,
      100 * (1 - figures.idle), 100 * figures.idle, 100 * part_for(best, WaitReason::owner),
      100 * part_for(best, WaitReason::room), 100 * figures.lost,
      human_bytes(static_cast<double>(best.memory)),
      chosen.memory.device_limit > 0
          ? fmt::format(" of memory.device_limit={}",
                        human_bytes(static_cast<double>(chosen.memory.device_limit)))
          : "",
      cost_of_window(plan.subnets->paper));
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
