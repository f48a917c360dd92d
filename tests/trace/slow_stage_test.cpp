// thorough
#include <gtest/gtest.h>

#include "trace/causes.h"
#include "trace/made_run.h"

namespace mindpipe {
namespace {

constexpr int steps = 12;

/// A drawn grid, schedule and noise, and how stages are cut.
class CutDraw {
 public:
  explicit CutDraw(std::uint64_t seed) : random_(seed) {
    stages_ = 2 + below(3);
    data_ = 1 + below(3);
    micro_batches_ = stages_ * (1 + below(2));
    schedule_ = below(2) == 0 ? ScheduleKind::one_forward_one_backward : ScheduleKind::gpipe;
    blocks_ = 2 + below(3);
    noise_ = between(0.002, 0.02);
    long_messages_ = below(2) == 0;
  }

  int below(int end) { return static_cast<int>(random_() % static_cast<std::uint64_t>(end)); }
  double between(double least, double most) {
    return std::uniform_real_distribution<double>(least, most)(random_);
  }
  int stages() const { return stages_; }
  int blocks() const { return blocks_; }

  MadeRun run(const std::function<void(Outline&)>& change) const {
    MadeRun run = made_run({.tensor = 1, .data = data_, .pipeline = stages_, .supernet = 1}, micro_batches_,
                           schedule_, 1, false, blocks_, [&](Outline& outline) {
                             change(outline);
                             if (long_messages_)
                               for (BoundaryBytes& cut : outline.cuts) cut = {20'000'000, 0, 20'000'000, 0};
                           });
    run.noise = noise_;
    return run;
  }
  std::vector<Cause> causes(const MadeRun& run, bool on_paper) {
    const ReplayGraph graph(run.grid, run.plan.program);
    const StepTrace trace = trace_of(run, graph, draw_times(run, graph, steps, {}, random_));
    const ReplayTimes measured = measured_times(trace, graph);
    const TracedPorts traffic(trace, graph, measured);
    const Durations paper = on_paper ? run.paper : Durations();
    return causes_of(trace, graph, measured, WorkModel(graph, measured, paper), paper,
                     Counted::behind_the_first, &traffic);
  }
  static std::int64_t period(MadeRun run) {
    run.noise = run.travel = 0;
    const ReplayGraph graph(run.grid, run.plan.program);
    std::mt19937_64 random(1);
    return replay(graph, draw_times(run, graph, steps, {}, random), steps).period();
  }

 private:
  std::mt19937_64 random_;
  int stages_, data_, micro_batches_, blocks_;
  ScheduleKind schedule_;
  double noise_;
  bool long_messages_;
};

TEST(SlowStage, IsNoneWhereNoBlockIsLeftToGiveAway) {
  for (int seed = 0; seed < 500; ++seed) {
    CutDraw draw(11000 + seed);
    const double head = draw.between(1.1, 1.95);
    const std::vector<Cause> found = draw.causes(draw.run([&](Outline& outline) {
      BlockCost& last = outline.blocks.back()[0];
      for (std::int64_t* time : {&last.forward, &last.backward, &last.backward_input, &last.backward_weight})
        *time = std::llround(head * static_cast<double>(*time));
    }),
                                                 seed % 2 == 0);
    EXPECT_TRUE(found.empty()) << "seed " << seed << " kind " << static_cast<int>(found[0].kind) << " stage "
                               << found[0].stage << " factor " << found[0].factor;
  }
}

TEST(SlowStage, IsWhoHasBlocksOfOthersAndCostsWhatAnEvenCutWouldSave) {
  constexpr int runs = 100;
  int tried = 0, right = 0;
  std::string wrong;
  for (int seed = 0; tried < runs; ++seed) {
    CutDraw draw(12000 + seed);
    const int cut = 1 + draw.below(draw.stages() - 1), by = draw.below(2) == 0 ? 1 : -1;
    const MadeRun uneven = draw.run([&](Outline& outline) { outline.first_block[cut] += by; });
    const std::int64_t costs = CutDraw::period(uneven) - CutDraw::period(draw.run([](Outline&) {}));
    if (50 * costs < CutDraw::period(uneven)) continue;  // others wait for it in vain
    ++tried;
    const std::vector<Cause> found = draw.causes(uneven, seed % 2 == 0);
    const bool named =
        !found.empty() && found[0].kind == Cause::slow_stage && found[0].stage == (by > 0 ? cut - 1 : cut);
    const std::int64_t off = named ? std::abs(found[0].saves - costs) : costs;
    if (named && off <= std::max<std::int64_t>(costs * 15 / 100, 1'000'000)) ++right;
    else
      wrong +=
          fmt::format("\nseed {}: stage {} of {}, {} blocks each, {} ns was found as kind {} stage {}, {} ns",
                      seed, by > 0 ? cut - 1 : cut, draw.stages(), draw.blocks(), costs,
                      found.empty() ? -1 : static_cast<int>(found[0].kind),
                      found.empty() ? -1 : found[0].stage, found.empty() ? 0 : found[0].saves);
  }
  EXPECT_GE(right, runs * 95 / 100) << wrong;
}

}  // namespace
}  // namespace mindpipe
