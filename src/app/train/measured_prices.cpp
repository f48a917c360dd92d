#include "app/train/measured_prices.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "app/train/report_end.h"
#include "config/config.h"
#include "io/file.h"
#include "supernet/sampler.h"

namespace mindpipe {
namespace {

constexpr std::int64_t fewest_subnets = 8;

/// What a rank of the job measured, which runs this list of the program.
struct RankPasses {
  int rank = 0, place = 0;
  PassTimes::Rows rows;
};

/// What ranks measured, with the choices of its subnets.
std::vector<StagePasses> passes_of(const Config& config, const Outline& outline,
                                   const std::vector<RankPasses>& ranks) {
  std::int64_t first = std::numeric_limits<std::int64_t>::max(), last = -1;
  for (const RankPasses& rank : ranks)
    for (const SubnetTimes& times : rank.rows) {
      if (times.subnet < 0) continue;
      first = std::min(first, times.subnet);
      last = std::max(last, times.subnet);
    }
  std::vector<StagePasses> passes;
  if (last < 0) return passes;
  const auto stream = stream_of(config, first);
  std::vector<Subnet> subnets;
  while (std::ssize(subnets) <= last - first) subnets.push_back(stream->next());
  const auto seconds = [&](std::int64_t of_all) {
    return 1e-9 * static_cast<double>(of_all) / outline.micro_batches;
  };
  for (const RankPasses& rank : ranks)
    for (const SubnetTimes& times : rank.rows) {
      if (times.subnet < 0 || times.forward == 0 || times.backward == 0) continue;
      passes.push_back({.stage = outline.stage_of_rank(rank.place),
                        .first = static_cast<int>(times.first),
                        .last = static_cast<int>(times.last),
                        .choice = subnets[static_cast<std::size_t>(times.subnet - first)].choice,
                        .forward = seconds(times.forward),
                        .backward = seconds(times.backward),
                        .update = 1e-9 * static_cast<double>(times.update),
                        .rank = rank.rank,
                        .subnet = times.subnet});
    }
  return passes;
}

/// The prices that some passes had; none: there are too few of them.
std::optional<FittedPrices> prices_of_passes(const Config& config, const Outline& outline,
                                             const std::vector<RankPasses>& ranks) {
  const std::vector<StagePasses> passes = passes_of(config, outline, ranks);
  if (std::ssize(passes) * outline.ranks() < fewest_subnets * outline.stages * std::ssize(ranks))
    return std::nullopt;
  return fit_prices(outline, config.model.supernet.space, passes);
}

/// The word whose price is farthest off that of all others, of those that cost something: "conv-7, 2.1
/// times".
std::string farthest_off(const FittedPrices& prices) {
  constexpr double something = 0.1;  // of the mean price
  std::string text;
  double farthest = 0;
  for (const auto& [word, off] : prices.off) {
    const double distance = std::abs(std::log(off / prices.forwards_off));
    if (prices.candidates.at(word) < something || distance < farthest) continue;
    farthest = distance;
    text = fmt::format("; farthest off is {}, {:.2f} times", word, off);
  }
  return text;
}

std::string slow_stages(const FittedPrices& prices) {
  std::string text;
  for (std::size_t stage = 0; stage < prices.stages.size(); ++stage)
    if (prices.stages[stage] != 1)
      text += fmt::format("; stage {} takes {:.2f} times as long as others", stage, prices.stages[stage]);
  return text;
}

}  // namespace

std::optional<FittedPrices> measured_prices(Worker& worker, bool is_rank_0) {
  const auto rows = of_stages(worker, worker.subnets()->kept()->pass_times().rows());
  if (!is_rank_0) return std::nullopt;
  std::vector<RankPasses> ranks;
  for (int place = 0; place < static_cast<int>(rows.size()); ++place)
    ranks.push_back({rank_that_runs(worker.layout().grid, place), place, rows[place]});
  return prices_of_passes(worker.config(), worker.plan().outline, ranks);
}

std::optional<FittedPrices> prices_in(const StepTrace& trace, const Config& config) {
  std::vector<RankPasses> ranks;
  for (int rank = 0; rank < num_ranks(trace.grid); ++rank) {
    PassTimes times;
    for (std::size_t index = 0; index < trace.list(rank).size(); ++index)
      times.add(trace.list(rank)[index], trace.ranks[rank].steps.front()[index]);
    ranks.push_back({rank, program_rank_at(trace.grid, coord_at(trace.grid, rank)), times.rows()});
  }
  return prices_of_passes(config, make_run_plan(config).outline, ranks);
}

std::string text_of_prices(const FittedPrices& prices) {
  return fmt::format("forwards took {:.2f} times as long as planned, backwards {:.2f} times{}{}",
                     prices.forwards_off, prices.backwards_off, farthest_off(prices), slow_stages(prices));
}

std::string write_measured_prices(Run& run, const std::string& file) {
  const auto prices = measured_prices(run.worker(), run.is_rank_0());
  if (!prices) return "";
  replace_file(file, text_of(*prices, run.config().run.dir));
  return fmt::format("prices: {}; a run with supernet.prices={} is planned by what was measured here\n",
                     text_of_prices(*prices), file);
}

}  // namespace mindpipe
