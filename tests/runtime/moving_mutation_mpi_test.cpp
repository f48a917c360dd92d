// thorough ranks: 2 4
#include "comm/fault_points.h"
#include "runtime/parity_compare.h"

// What may go wrong as a block moves, one mistake at a time: each is noticed, at once or by another bit. What
// the lists themselves may have wrong, the checker refuses: tests/program/wrong_moves_test.cpp.
namespace mindpipe {
namespace {

constexpr int moving = 2, all_steps = 5;

/// A block moves from stage 1 to stage 0 in the third step.
Config moving_run(int ranks) {
  Config c = tiny(Style::llama, 1, 2, 2, 8);
  text_model(c).width = 128;  // shares are cut within units
  text_model(c).mlp_width = 256;
  c.grid = {1, 2, ranks / 2, 1};
  c.train.zero = ranks > 2 ? 1 : 0;
  c.train.clip = 0.05;
  c.schedule.cuts = {4};
  c.repartition.at = {{moving + 1, {5}}};
  return resolve(c);
}

/// Who makes a mistake: all ranks of both stages, those of the new home, or one data rank of it alone.
enum class Maker { all, new_home, one_rank };

struct Mistake {
  std::string name;
  Maker maker = Maker::all;
  int step = moving;
};

bool makes(Maker maker, const Coord& at, const Config& config) {
  return maker == Maker::all ||
         (at.pipeline == 0 && (maker == Maker::new_home || at.data + 1 == config.grid.data));
}

struct Moving : ::testing::TestWithParam<Mistake> {
  const World world = all_ranks();

  /// Whether a run with a mistake is another one, or ends.
  bool is_noticed(const Mistake& mistake) const {
    const Config config = moving_run(world.size);
    const Outcome wanted = outcome_of(alone(config), {}, all_steps);
    Worker worker(config, world);
    share_processors(worker);
    const bool here = makes(mistake.maker, worker.layout().coord, config);
    Outcome got;
    BatchFeed feed(worker.config(), worker.layout());
    for (int step = 0; step < all_steps; ++step) {
      set_mutation(step == mistake.step && here ? mistake.name : "");
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
                      Mistake{message(Payload::unit_state)}, Mistake{message(Payload::unit_gradient)}));

}  // namespace
}  // namespace mindpipe
