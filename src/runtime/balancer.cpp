#include "runtime/balancer.h"

#include <algorithm>
#include <utility>

#include "config/config.h"
#include "core/text.h"
#include "plan/memory_limits.h"

namespace mindpipe {
namespace {

Balance balance_of(const Worker& worker) {
  const Config& config = worker.config();
  const RunPlan& plan = worker.plan();
  return {plan.outline,
          plan.network,
          config.schedule.kind,
          {.every = config.repartition.every, .room = config.repartition.room}};
}

/// How long the compute queue of this rank has worked since its beginning.
std::int64_t work_of(Worker& worker) {
  const TimeSpent& spent = worker.steps().spent();
  return spent.forward + spent.backward + spent.update;
}

double seconds_of(std::int64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-9; }

std::vector<int> inner(const std::vector<int>& cut) { return {cut.begin() + 1, cut.end() - 1}; }

/// Plans moves, on a thread of its own: what it reads is its own.
std::vector<PlannedMove> planned(const Config& config, const RunPlan& present, const Balancing& balancing) {
  std::vector<CutAt> at;
  for (const std::vector<int>& cut : balancing.cuts)
    at.push_back({static_cast<int>(balancing.first_step + std::ssize(at)), inner(cut)});
  return plan_moves(config, present, at);
}

}  // namespace

Balancer::Balancer(Worker& worker)
    : worker_(worker), every_(worker.config().repartition.every), balance_(balance_of(worker)) {}

/// All ranks of a stage report, and the slowest is heard.
void Balancer::say(std::int64_t done, std::span<std::uint64_t> mine) {
  reported_.reset();
  if (is_due(done)) {
    const std::int64_t worked = work_of(worker_);
    mine[static_cast<std::size_t>(worker_.layout().coord.pipeline)] =
        static_cast<std::uint64_t>(std::max<std::int64_t>(1, (worked - worked_) * every_ / steps_));
    mean_seconds_ = seconds_ / static_cast<double>(steps_);
    worked_ = worked;
    steps_ = 0;
    seconds_ = 0;
    reported_ = done;
  }
  const std::uint64_t digest = decided_ ? decided_->balancing.digest() : 0;
  mine[mine.size() - 2] = digest;
  mine[mine.size() - 1] = ~digest;
}

std::optional<Balancer::News> Balancer::hear(std::span<const std::uint64_t> all, double seconds) {
  ++steps_;
  seconds_ += seconds;
  // An agreement tells the largest of what its ranks say. The largest digest and the largest complement,
  // which is that of the smallest digest, belong together where all digests are equal, and nowhere else.
  MP_REQUIRE(all[all.size() - 2] == ~all[all.size() - 1], Exit::peer_failed,
             "the ranks have decided differently which blocks to move, though they have heard the same "
             "numbers (start again without the machine that computes something else)");
  if (decided_) return take(*std::exchange(decided_, std::nullopt));
  if (!reported_) return {};
  return decide(all.first(all.size() - 2));
}

std::optional<Balancer::News> Balancer::decide(std::span<const std::uint64_t> worked) {
  const std::vector<std::int64_t> report(worked.begin(), worked.end());
  std::optional<News> news;
  if (moving_ && *reported_ - every_ >= moving_->last_step) {
    news = std::exchange(moving_, std::nullopt);
    news->is_measured = true;
    news->measured = mean_seconds_;
    news->sentence =
        fmt::format("since step {} a step takes {}, and took {} before; planned were {} and {}",
                    news->last_step + 1, human_seconds(news->measured), human_seconds(news->measured_before),
                    human_seconds(news->planned), human_seconds(news->planned_before));
  }
  std::optional<Balancing> found = balance_.hear(*reported_, report);
  if (!found || found->first_step > worker_.config().train.steps) return news;
  if (found->cuts.back() == too_large_) {
    balance_ = balance_of(worker_);
    return news;
  }
  decided_ =
      Decided{*found, std::async(std::launch::async, planned, worker_.config(), worker_.plan(), *found)};
  return news;
}

std::optional<Balancer::News> Balancer::take(Decided decided) {
  const Balancing& balancing = decided.balancing;
  News news{.sentence = to_string(balancing),
            .first_step = balancing.first_step,
            .last_step = balancing.first_step + std::ssize(balancing.cuts) - 1,
            .planned_before = seconds_of(balancing.before),
            .planned = seconds_of(balancing.after),
            .measured_before = mean_seconds_};
  std::vector<PlannedMove> moves = decided.moves.get();
  const MemoryConfig& limits = worker_.config().memory;
  const auto all_are = [&](const MemoryConfig& within) {
    return std::all_of(moves.begin(), moves.end(), [&](const PlannedMove& move) {
      return is_within(move.during, within) && is_within(move.after, within);
    });
  };
  if (!all_are(limits)) {
    too_large_ = balancing.cuts.back();
    balance_ = balance_of(worker_);
    news.stays = true;
    news.sentence += fmt::format("; but the cut stays, since a rank would need more than memory.{}_limit",
                                 all_are({.device_limit = limits.device_limit}) ? "host" : "device");
  } else {
    worker_.go_on_with(std::move(moves));
    moving_ = news;
  }
  return news;
}

void Balancer::begin_anew() {
  decided_.reset();
  moving_.reset();
  reported_.reset();
  worker_.go_on_with({});
  balance_ = balance_of(worker_);
  worked_ = work_of(worker_);
  steps_ = 0;
  seconds_ = 0;
}

}  // namespace mindpipe
