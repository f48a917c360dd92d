// ranks: 1 2, alone
#include <gtest/gtest.h>
#include <mpi.h>

#include <cstring>
#include <map>

#include "backend_over.h"
#include "runtime/parity.h"
#include "runtime/ranks.h"

// The accumulators of all shards, taken before they are folded and added by hand in the order that the
// checker proves, are the gradients of a run.
namespace mindpipe {
namespace {

using Numbers = std::vector<float>;

/// A device below, which keeps what is in accumulators each time that their squares are summed: behind the
/// last backward of a shard, before it is folded.
class ShardKeeper final : public BackendOver {
 public:
  using BackendOver::BackendOver;
  void sum_squares(const SumSquaresOperands& o) override {
    Numbers& now = kept_[{o.x.data, o.x.count()}].emplace_back(static_cast<std::size_t>(o.x.count()));
    device_->download(o.x, now.data());
    device_->sum_squares(o);
  }

  /// What stood at a place and was as long, one after the other.
  std::vector<Numbers> at(const Tensor& place) const {
    const auto found = kept_.find({place.data, place.count()});
    return found == kept_.end() ? std::vector<Numbers>{} : found->second;
  }

 private:
  std::map<std::pair<void*, std::int64_t>, std::vector<Numbers>> kept_;
};

Numbers sum_of(const Numbers& a, const Numbers& b) {
  Numbers sum(a.size());
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = a[i] + b[i];
  return sum;
}
/// Neighbours first, an odd one carried up.
Numbers by_hand(std::vector<Numbers> sums) {
  while (sums.size() > 1) {
    std::vector<Numbers> next;
    for (std::size_t i = 0; i + 1 < sums.size(); i += 2) next.push_back(sum_of(sums[i], sums[i + 1]));
    if (sums.size() % 2 == 1) next.push_back(sums.back());
    sums = std::move(next);
  }
  return sums.front();
}

/// The numbers of all ranks' shards, in the order of ranks.
std::vector<Numbers> of_all_ranks(const std::vector<Numbers>& mine, const World& world) {
  std::vector<Numbers> all;
  for (int rank = 0; rank < world.size; ++rank)
    for (Numbers shard : mine) {
      if (world.size > 1)
        MPI_Bcast(shard.data(), static_cast<int>(shard.size()), MPI_FLOAT, rank, world.comm);
      all.push_back(std::move(shard));
    }
  return all;
}

struct SmallRun {
  Style style;
  int tensor, data, of_shard;
  ScheduleKind schedule;
  Precision precision = Precision::f32;
};
constexpr auto f1b = ScheduleKind::one_forward_one_backward;
const SmallRun small_runs[] = {{Style::gpt2, 1, 2, 2, f1b},
                               {Style::gpt2, 2, 4, 1, ScheduleKind::gpipe, Precision::bf16},
                               {Style::llama, 2, 6, 1, ScheduleKind::zero_bubble},
                               {Style::transformer, 1, 8, 1, f1b},
                               {Style::bert, 2, 4, 2, ScheduleKind::gpipe},
                               {Style::post_norm, 1, 6, 1, f1b, Precision::bf16},
                               {Style::vit, 2, 2, 3, ScheduleKind::zero_bubble},
                               {Style::evolved, 1, 4, 1, f1b},
                               {Style::wide_resnet, 1, 2, 2, ScheduleKind::gpipe},
                               {Style::subnet, 2, 6, 1, ScheduleKind::zero_bubble}};

/// Learned numbers of a run whose gradients were compared.
std::int64_t compared(const SmallRun& run, const World& world) {
  Config config = tiny(run.style, run.tensor, run.data, run.of_shard, 4);
  config.schedule.kind = run.schedule;
  config.train.precision = run.precision;
  config.train.noise_every = 1;
  config.grid.data = world.size;
  config = resolve(config);
  ShardKeeper* keeper = nullptr;
  Worker worker(
      config, world.size == 1 ? World{} : world, make_run_plan(config),
      [&](const Config& c, Memory& memory, int threads, const World& w) -> std::unique_ptr<Backend> {
        auto made = std::make_unique<ShardKeeper>(make_backend(c, memory, threads, w));
        keeper = made.get();
        return made;
      });
  share_processors(worker);
  BatchFeed feed(worker.config(), worker.layout(), nullptr);
  const auto shards = static_cast<std::size_t>(worker.layout().local_data_shards());
  worker.steps().run(feed.at(0));
  std::int64_t count = 0;
  for (const auto& unit : worker.stage().model().units())
    for (int p = 0; p < static_cast<int>(unit->params().size()); ++p) {
      if (!unit->params()[p].is_learned()) continue;
      for (int part = 0; part < unit->local_shards(p); ++part) {
        std::vector<Numbers> uses;
        const auto place = [&](int use) {
          return unit->gradients().root(use).range(unit->flat_offset(p, part), unit->shard_shape(p).count());
        };
        for (int use = 0; use < unit->uses(); ++use) {
          std::vector<Numbers> leaves = keeper->at(place(use));
          EXPECT_GE(leaves.size(), shards) << tensor_name(*unit, p);
          if (leaves.size() < shards) return 0;
          leaves.resize(shards);  // behind them the sum itself is looked at
          uses.push_back(by_hand(of_all_ranks(leaves, world)));
        }
        Numbers gradient = uses[0];
        for (std::size_t use = 1; use < uses.size(); ++use) gradient = sum_of(gradient, uses[use]);
        Numbers got(gradient.size());
        worker.backend().download(place(0), got.data());
        EXPECT_EQ(std::memcmp(got.data(), gradient.data(), got.size() * sizeof(float)), 0)
            << tensor_name(*unit, p) << " of " << name_of(run.style);
        count += std::ssize(got);
      }
    }
  return count;
}

TEST(HandSums, OfAllShardsAreTheGradientsOfTenRuns) {
  const World world = all_ranks();
  for (const SmallRun& run : small_runs) {
    SCOPED_TRACE(name_of(run.style));
    const std::int64_t numbers = compared(run, world);
    EXPECT_GT(numbers, 1000);
    if (world.rank == 0) std::cout << name_of(run.style) << ": " << numbers << " numbers\n";
  }
}

}  // namespace
}  // namespace mindpipe
