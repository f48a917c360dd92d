#include "trace/causes.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>

#include "core/middle.h"
#include "trace/even_stages.h"
#include "trace/link_delays.h"
#include "trace/micro_batch_lengths.h"
#include "trace/rank_speeds.h"
#include "trace/trace_parts.h"

namespace mindpipe {
namespace {

constexpr double link_slower = 1.5, sure_of_micro_batches = 2;

/// Looks for causes in the times of a trace, by what each rank and each link took by itself.
class Search {
 public:
  Search(const StepTrace& trace, const ReplayGraph& graph, const ReplayTimes& measured,
         const WorkModel& model, const Durations& paper, Counted counted, const TracedPorts* traffic)
      : trace_(trace),
        graph_(graph),
        measured_(measured),
        model_(model),
        paper_(paper),
        counted_(counted),
        traffic_(traffic),
        period_(period_of(measured)),
        speeds_(model) {}

  std::vector<Cause> search(std::vector<Cause>* suspected) {
    find_slow_ranks();
    find_slow_stage();
    find_micro_batches();
    find_jitter();
    find_slow_links();
    find_slow_hosts();
    find_contention();
    for (std::vector<Cause>* causes : {&found_, &suspected_})
      std::stable_sort(causes->begin(), causes->end(),
                       [](const Cause& a, const Cause& b) { return a.saves > b.saves; });
    std::erase_if(suspected_, [&](const Cause& suspect) { return is_accused(suspect.rank); });
    if (suspected != nullptr) *suspected = std::move(suspected_);
    return std::move(found_);
  }

 private:
  std::int64_t period_of(const ReplayTimes& times) const {
    return replayed_period(graph_, times, static_cast<int>(measured_.rows.size()), counted_);
  }
  std::size_t steps() const { return model_.steps(); }
  int stage_of(int rank) const { return coord_at(graph_.grid(), rank).pipeline; }

  bool is_worth_saying(std::int64_t saves) const {
    return static_cast<double>(saves) >= worth_saying * static_cast<double>(period_);
  }
  /// Accuses a cause if a step without it is shorter enough.
  void accuse(const Cause& cause, const ReplayTimes& without) { accuse(cause, without, found_); }
  void accuse(Cause cause, const ReplayTimes& without, std::vector<Cause>& among) {
    cause.saves = period_ - period_of(without);
    if (is_worth_saying(cause.saves)) among.push_back(cause);
  }

  bool is_accused(int rank) const {
    return std::any_of(found_.begin(), found_.end(), [&](const Cause& cause) { return cause.rank == rank; });
  }

  /// In how many steps something holds, and since when.
  template <class Holds>
  void count_steps(Cause& cause, const Holds& holds) const {
    int count = 0;
    for (std::size_t step = 0; step < steps(); ++step) {
      if (!holds(step)) continue;
      if (count++ == 0) cause.since = trace_.steps[step];
    }
    cause.share = static_cast<double>(count) / static_cast<double>(steps());
  }

  void find_slow_ranks() {
    for (int rank = 0; rank < graph_.ranks() && model_.compares(); ++rank) {
      const double usual = speeds_.usual(rank);
      Cause cause{.kind = Cause::slow_rank, .rank = rank, .stage = stage_of(rank), .factor = usual};
      count_steps(cause, [&](std::size_t step) { return speeds_.of_steps(rank)[step] >= slower; });
      std::vector<double> factors(steps(), usual);
      if (!speeds_.is_slow(rank)) {
        for (std::size_t step = 0; step < steps(); ++step) factors[step] = beside_replica(rank, step);
        const double sure = std::max(slower, speeds_.beyond_noise(speeds_.noise(rank), rank, 1));
        std::vector<double> slow;
        for (double& factor : factors)
          if (factor >= sure) slow.push_back(factor);
          else factor = 1;
        if (slow.empty()) continue;
        cause.kind = Cause::sometimes_slow;
        cause.factor = median_of(slow);
        count_steps(cause, [&](std::size_t step) { return factors[step] > 1; });
      }
      const bool is_sure = cause.kind == Cause::slow_rank ||
                           std::llround(cause.share * static_cast<double>(steps())) >= fewest_steps;
      ReplayTimes without = measured_;
      for (std::size_t step = 0; step < steps(); ++step)
        for (int action = graph_.first_of(rank); action < graph_.first_of(rank + 1); ++action)
          if (model_.works().of(action) >= 0)
            scale_computed(without.rows[step], without, action, 1 / factors[step]);
      accuse(cause, without, is_sure ? found_ : suspected_);
    }
  }

  /// How many times as long as its peers a rank computes in a step, beyond what its whole replica does: long
  /// sequences make all stages of a replica slow.
  double beside_replica(int rank, std::size_t step) const {
    Coord at = coord_at(graph_.grid(), rank);
    std::vector<double> of_replica;
    for (at.pipeline = 0; at.pipeline < graph_.grid().pipeline; ++at.pipeline)
      of_replica.push_back(speeds_.of_steps(rank_at(graph_.grid(), at))[step]);
    const double own = speeds_.of_steps(rank)[step];
    return of_replica.size() == 1 ? own : own / lower_middle(of_replica);
  }

  /// Peers' time of a stage: a rank that is slow beside them does not make its stage slow.
  double own_time(int work) const {
    std::vector<double> of_ranks;
    for (int rank = 0; rank < graph_.ranks(); ++rank) {
      if (stage_of(rank) != model_.works().at(work).stage) continue;
      std::vector<double> of_steps;
      for (std::size_t step = 0; step < steps(); ++step) of_steps.push_back(model_.middle(step, rank, work));
      of_ranks.push_back(median_of(of_steps));
    }
    return model_.has_peers() ? lower_middle(of_ranks) : model_.G(work);
  }

  /// A stage is slow where it takes longer beside the others than on paper, or where other cuts would make
  /// the step shorter. One that is longer by less than a block, as the best cut may leave it, is not. Where
  /// neither paper nor blocks are known, who takes longer than the others is.
  void find_slow_stage() {
    const int stages = graph_.grid().pipeline;
    if (stages < 2) return;
    std::vector<double> time(stages, 0);
    for (int work = 0; work < model_.works().count(); ++work)
      if (is_pass(action_of(model_.works().at(work).kind))) {
        const int stage = model_.works().at(work).stage;
        const int rank = rank_at(graph_.grid(), {0, 0, stage, 0});
        time[stage] += own_time(work) * static_cast<double>(speeds_.count(rank, work));
      }
    const int slowest = static_cast<int>(std::max_element(time.begin(), time.end()) - time.begin());
    const double mean = std::accumulate(time.begin(), time.end(), 0.0) / stages;
    const double factor = beside_others(time, slowest);
    if (!(factor >= slower)) return;
    const auto with_stages = [&](const auto& scale) {
      ReplayTimes without = measured_;
      for (ReplayRow& row : without.rows)
        for (int action = 0; action < graph_.actions(); ++action)
          if (is_pass(graph_.at(action)))
            scale_computed(row, without, action, scale(graph_.stage_of(action)));
      return period_ - period_of(without);
    };
    Cause cause{.kind = Cause::slow_stage, .stage = slowest, .factor = factor, .since = trace_.steps.front()};
    const std::optional<double> of_paper = beside_paper(graph_, paper_, time, slowest);
    if (of_paper ? *of_paper >= slower : !has_blocks_to_move(model_)) {
      // What a stage gives away the others take, so that less can be saved than it costs, or nothing.
      const std::int64_t costs = with_stages([&](int stage) { return stage == slowest ? 1 / factor : 1; });
      const std::int64_t moved = with_stages([&](int stage) { return mean / time[stage]; });
      cause.saves = moved > 0 ? moved : costs;
      if (is_worth_saying(costs)) found_.push_back(cause);
      return;
    }
    const std::vector<double> even = even_stages(model_, time);
    cause.saves = with_stages([&](int stage) { return even[stage] / time[stage]; });
    if (is_worth_saying(cause.saves)) found_.push_back(cause);
  }

  /// Micro-batches differ where all stages agree that one takes longer than another.
  void find_micro_batches() {
    std::map<std::pair<std::size_t, int>, std::map<int, double>> logs;  // of each step and replica
    std::vector<double> rest, beside_others;
    for (std::size_t step = 0; step < steps(); ++step)
      for (int action = 0; action < graph_.actions(); ++action) {
        const int work = model_.works().of(action), rank = graph_.rank_of(action);
        const int micro_batch = graph_.at(action).micro_batch;
        if (work < 0 || micro_batch < 0) continue;
        const double M = model_.M(step, action);
        logs[{step, coord_at(graph_.grid(), rank).data}][micro_batch] = std::log(M);
        rest.push_back(std::log(model_.computed(step, action) / (model_.W(rank, work) * model_.G(work) * M)));
      }
    for (const auto& [replica, of_micro_batches] : logs) {
      double mean = 0;
      for (const auto& [number, log] : of_micro_batches)
        mean += log / static_cast<double>(of_micro_batches.size());
      for (const auto& [number, log] : of_micro_batches) beside_others.push_back(log - mean);
    }
    if (beside_others.empty()) return;
    const double of_each = static_cast<double>(rest.size()) / static_cast<double>(beside_others.size());
    const double by_noise = spread_of(rest) / std::sqrt(of_each), spread = spread_of(beside_others);
    if (spread < sure_of_micro_batches * by_noise || spread < worth_saying) return;
    const MicroBatchLengths lengths(graph_, model_);
    ReplayTimes without = measured_;
    for (std::size_t step = 0; step < steps(); ++step)
      for (int action = 0; action < graph_.actions(); ++action)
        if (model_.works().of(action) >= 0 && graph_.at(action).micro_batch >= 0)
          scale_computed(without.rows[step], without, action, 1 / lengths.of(step, action));
    accuse({.kind = Cause::micro_batches, .factor = std::exp(spread), .since = trace_.steps.front()},
           without);
  }

  /// The rank whose passes scatter more than those of the others.
  void find_jitter() {
    for (int rank = 0; rank < graph_.ranks(); ++rank) {
      if (graph_.ranks() < 3 || speeds_.noise(rank) < more_spread * lower_middle(speeds_.noises()) ||
          speeds_.noise(rank) < worth_saying)
        continue;
      if (is_accused(rank)) continue;
      // What each action takes beside its work and micro-batch; the middle of these is what the rank usually
      // takes.
      const MicroBatchLengths lengths(graph_, model_, rank);
      const auto beside = [&](std::size_t step, int action) {
        return model_.computed(step, action) /
               (model_.G(model_.works().of(action)) * lengths.of(step, action));
      };
      std::vector<double> all;
      const auto each = [&](const auto& see) {
        for (std::size_t step = 0; step < steps(); ++step)
          for (int action = graph_.first_of(rank); action < graph_.first_of(rank + 1); ++action)
            if (model_.works().of(action) >= 0) see(step, action);
      };
      each([&](std::size_t step, int action) { all.push_back(beside(step, action)); });
      const double usual = median_of(all);
      ReplayTimes without = measured_;
      each([&](std::size_t step, int action) {
        scale_computed(without.rows[step], without, action, usual / beside(step, action));
      });
      accuse({.kind = Cause::jitter,
              .rank = rank,
              .stage = stage_of(rank),
              .factor = 1 + speeds_.noise(rank),
              .since = trace_.steps.front()},
             without);
    }
  }

  /// Time that messages wait at ports is no link's fault.
  void find_slow_links() {
    const ReplayTimes alone = traffic_ == nullptr ? measured_ : traffic_->of_links();
    const LinkDelays times(graph_, alone, paper_);
    std::map<StageLink, std::vector<StageLink>> slow;
    for (const auto& [link, of_steps] : times.ratios()) {
      const auto count =
          std::count_if(of_steps.begin(), of_steps.end(), [](double ratio) { return ratio >= link_slower; });
      if (static_cast<double>(count) >= in_most_steps * static_cast<double>(steps()))
        slow[{link.from, link.to, -1}].push_back(link);
    }
    const int replicas = graph_.grid().data * graph_.grid().tensor;
    for (const auto& [pair, links] : slow) {
      if (2 * std::ssize(links) > replicas) accuse_link(pair, links, times);
      else
        for (const StageLink& link : links) accuse_link(link, {link}, times);
    }
  }

  void accuse_link(const StageLink& name, const std::vector<StageLink>& links, const LinkDelays& times) {
    std::vector<double> factors;
    for (const StageLink& link : links) {
      std::vector<double> of_steps = times.ratios().at(link);
      factors.push_back(median_of(of_steps));
    }
    ReplayTimes without = measured_;
    for (const auto& [receive, peers] : times.usual()) {
      const StageLink link = times.link_of(receive);
      if (std::find(links.begin(), links.end(), link) == links.end()) continue;
      for (ReplayRow& row : without.rows)
        for (const int member : graph_.members(graph_.meeting_of(receive)))
          if (row.eager[member] == 0)
            row.lasts[member] = std::min<std::int64_t>(row.lasts[member], std::llround(peers));
    }
    Cause cause{.kind = Cause::slow_link, .stage = name.from, .peer = name.to, .factor = median_of(factors)};
    if (name.replica >= 0) {
      const int tensors = graph_.grid().tensor;
      cause.rank = rank_at(graph_.grid(), {name.replica % tensors, name.replica / tensors, name.from, 0});
    }
    count_steps(cause,
                [&](std::size_t step) { return times.ratios().at(links.front())[step] >= link_slower; });
    accuse(cause, without);
  }

  /// A rank whose host takes longer between actions than others do.
  void find_slow_hosts() {
    const std::vector<std::int64_t> usual = usual_lags(graph_, measured_);
    for (int rank = 0; rank < graph_.ranks(); ++rank) {
      Cause cause{.kind = Cause::host, .rank = rank, .stage = stage_of(rank)};
      const auto excess = [&](std::size_t step) {
        std::int64_t more = 0, at_begin = 0;
        for (int action = graph_.first_of(rank); action < graph_.first_of(rank + 1); ++action) {
          const std::int64_t own =
              std::max<std::int64_t>(0, measured_.rows[step].lag[action] - usual[lag_class(graph_, action)]);
          if (graph_.wait_of(action).is_for_nothing()) at_begin = std::max(at_begin, own);
          else if (graph_.at(action).queue == Queue::compute) more += own;
        }
        return static_cast<double>(more + at_begin);
      };
      const double much = worth_saying * static_cast<double>(period_);
      count_steps(cause, [&](std::size_t step) { return excess(step) >= much; });
      if (cause.share < in_most_steps) continue;
      ReplayTimes without = measured_;
      for (ReplayRow& row : without.rows)
        for (int action = graph_.first_of(rank); action < graph_.first_of(rank + 1); ++action)
          row.lag[action] = std::min(row.lag[action], usual[lag_class(graph_, action)]);
      accuse(cause, without);
    }
  }

  /// Which class of traffic loses time while another is under way.
  void find_contention() {
    if (traffic_ == nullptr) return;
    for (const PairCost& pair : traffic_->costs(counted_).pairs)
      if (is_worth_saying(pair.cost))
        found_.push_back({.kind = Cause::contention,
                          .waits = pair.waits,
                          .holds = pair.holds,
                          .summed = pair.summed,
                          .since = trace_.steps.front(),
                          .saves = pair.cost});
  }

  const StepTrace& trace_;
  const ReplayGraph& graph_;
  const ReplayTimes& measured_;
  const WorkModel& model_;
  const Durations& paper_;
  Counted counted_;
  const TracedPorts* traffic_;
  std::int64_t period_;
  RankSpeeds speeds_;
  std::vector<Cause> found_, suspected_;
};

}  // namespace

std::vector<Cause> causes_of(const StepTrace& trace, const ReplayGraph& graph, const ReplayTimes& measured,
                             const WorkModel& model, const Durations& paper, Counted counted,
                             const TracedPorts* traffic, std::vector<Cause>* suspected) {
  if (static_cast<int>(trace.steps.size()) < fewest_steps) return {};
  return Search(trace, graph, measured, model, paper, counted, traffic).search(suspected);
}

}  // namespace mindpipe
