// thorough ranks: 2 4
#include "backend_over.h"
#include "comm/fault_points.h"
#include "runtime/parity_compare.h"

// What may go wrong as a block moves, one mistake at a time: each is noticed, at once or by another bit. What
// the lists themselves may have wrong, the checker refuses: tests/program/wrong_moves_test.cpp.
namespace mindpipe {
namespace {

constexpr int moving = 2, all_steps = 5, moved_block = 4;

/// A block moves from stage 1 to stage 0 in the third step.
Config moving_run(int ranks) {
  Config c = tiny(Style::llama, 1, 2, 2, 8);
  text_model(c).width = 128;  // shares are cut within units
  text_model(c).mlp_width = 256;
  c.grid = {1, 2, ranks / 2, 1};
  c.train.zero = ranks > 2 ? 1 : 0;
  c.train.clip = 0.05;
  c.schedule.cuts = {moved_block};
  c.repartition.at = {{moving + 1, {moved_block + 1}}};
  return resolve(c);
}

/// Who makes a mistake: all ranks of both stages, those of the old home or the new one, or one data rank of
/// the new one alone.
enum class Maker { all, old_home, new_home, one_rank };

struct Mistake {
  std::string name;  ///< the name of what is left out, or of a mistake that leaves nothing out
  Maker maker = Maker::all;
  int step = moving;
  int counts = 1;  ///< homes that count the squares of the moving block, in the moving step
  bool takes_neighbours_moments = false;
};

bool makes(Maker maker, const Coord& at, const Config& config) {
  if (maker == Maker::old_home) return at.pipeline == 1;
  return maker == Maker::all ||
         (at.pipeline == 0 && (maker == Maker::new_home || at.data + 1 == config.grid.data));
}

/// A device below, which may count the squares of the block that moves several times, or never.
class MiscountingBackend final : public BackendOver {
 public:
  using BackendOver::BackendOver;
  void know(const Model& model) {
    for (int unit = 0; unit < static_cast<int>(model.units().size()); ++unit) {
      const std::int64_t params = std::ssize(model.units()[unit]->params());
      const std::vector<int>& moved = model.blocks()[moved_block].units;
      if (std::find(moved.begin(), moved.end(), unit) != moved.end())
        moved_.emplace_back(tensors_, tensors_ + params);
      tensors_ += params;
    }
  }
  void count(int times) { times_ = times; }
  void sum_spans(const SumSpansOperands& operands) override {
    device_->sum_spans(operands);
    if (times_ == 1 || operands.totals.count() != tensors_) return;
    std::vector<double> squares(static_cast<std::size_t>(tensors_));
    device_->download(operands.totals, squares.data());
    for (const auto& [begin, end] : moved_)
      for (std::int64_t i = begin; i < end; ++i) squares[static_cast<std::size_t>(i)] *= times_;
    device_->upload(squares.data(), operands.totals);
  }

 private:
  std::int64_t tensors_ = 0;
  std::vector<std::pair<std::int64_t, std::int64_t>> moved_;  ///< tensors, from and to
  int times_ = 1;
};

/// Puts the moments of the next block in place of those that are to move.
void take_neighbours_moments(Worker& worker) {
  const auto& blocks = worker.stage().model().blocks();
  const Residency& residency = worker.residency();
  for (const char* moment : {"m", "v"}) {
    const Tensor mine = residency.newest(blocks[moved_block].units.front(), moment),
                 next = residency.newest(blocks[moved_block + 1].units.front(), moment);
    const std::int64_t count = std::min(mine.count(), next.count());
    ASSERT_GT(count, 0);
    worker.backend().copy(next.range(0, count), mine.range(0, count));
  }
}

struct Moving : ::testing::TestWithParam<Mistake> {
  const World world = all_ranks();

  /// Whether a run with a mistake is another one, or ends.
  bool is_noticed(const Mistake& mistake) const {
    const Config config = moving_run(world.size);
    const Outcome wanted = outcome_of(alone(config), {}, all_steps);
    MiscountingBackend* counter = nullptr;
    Worker worker(config, world, make_run_plan(config),
                  [&](const Config& c, Memory& memory, int threads, const World& ranks) {
                    auto device =
                        std::make_unique<MiscountingBackend>(make_backend(c, memory, threads, ranks));
                    counter = device.get();
                    return device;
                  });
    counter->know(worker.stage().model());
    share_processors(worker);
    const bool here = makes(mistake.maker, worker.layout().coord, config);
    Outcome got;
    BatchFeed feed(worker.config(), worker.layout());
    for (int step = 0; step < all_steps; ++step) {
      const bool now = step == mistake.step && here;
      set_mutation(now ? mistake.name : "");
      counter->count(now ? mistake.counts : 1);
      if (now && mistake.takes_neighbours_moments) take_neighbours_moments(worker);
      bool is_found = false;
      try {
        const StepScalars scalars = worker.run(feed.at(step)).value();
        got.losses.push_back(scalars.loss);
        got.norms.push_back(scalars.gradient_norm);
      } catch (const Error&) {
        if (step < mistake.step) throw;
        is_found = true;
      }
      set_mutation("");
      if (!on_all_ranks(!is_found)) return true;
    }
    const Evaluation found = worker.evaluator().evaluate(feed.at(all_steps));
    got.evaluation = found.losses;
    got.evaluated = found.targets;
    got.hits = found.hits;
    got.state = worker.state().digest();
    return !on_all_ranks(difference(got, wanted).empty());
  }
};

TEST_F(Moving, NothingIsNoticedWhereThereIsNoMistake) { EXPECT_FALSE(is_noticed({"nothing.at_all"})); }

TEST_P(Moving, AMistakeIsNoticed) { EXPECT_TRUE(is_noticed(GetParam())); }

std::string message(Payload payload) { return fmt::format("message.{}.1>0", static_cast<int>(payload)); }

INSTANTIATE_TEST_SUITE_P(
    Of, Moving,
    ::testing::Values(Mistake{"moves.version"}, Mistake{"moves.master"}, Mistake{"moves.moment"},
                      Mistake{"moves.unit"}, Mistake{"moves.unit", Maker::one_rank},  // a share left behind
                      Mistake{"moves.decide", Maker::new_home},                 // squares that nobody counts
                      Mistake{"moves.applied"},                                 // steps counted from zero
                      Mistake{"gradients.clear", Maker::new_home, moving + 1},  // accumulators with old sums
                      Mistake{"squares of no home", Maker::old_home, moving, 0},
                      Mistake{"squares of both homes", Maker::old_home, moving, 2},
                      Mistake{"moments of the neighbour", Maker::old_home, moving, 1, true},
                      Mistake{message(Payload::unit_state)}, Mistake{message(Payload::unit_gradient)}));

}  // namespace
}  // namespace mindpipe
