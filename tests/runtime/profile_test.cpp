#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "config/profile.h"
#include "core/check.h"
#include "plan/run_plan.h"
#include "runtime/block_timer.h"
#include "runtime/small_models.h"

namespace mindpipe {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Config one_thread(Config c) {
  c.device.threads = 1;
  return resolve(c);
}

std::string written(const std::string& name, const std::string& text) {
  const std::string path = testing::TempDir() + name;
  std::ofstream(path) << text;
  return path;
}

/// A price for each block of a model: block b takes b + 1 ms forward, twice as long backward.
Profile made_profile(const Config& config) {
  Profile profile{.machine = "a made one", .program = "none", .factor = 3, .update = 1e9, .clear = 2e9};
  CostModel costs(config, make_layout(config, {}));
  for (int block = 0; block < static_cast<int>(costs.model().blocks().size()); ++block)
    profile.passes.try_emplace(costs.work_of(block),
                               MeasuredPass{.forward = 1e-3 * (block + 1),
                                            .input = 2e-3 * (block + 1),
                                            .block = costs.model().blocks()[block].name});
  return profile;
}

TEST(Profile, ReadsBackBitForBit) {
  Profile profile = made_profile(one_thread(gpt2_style()));
  profile.latency = 1.0 / 3e6;
  const std::string path = written("profile.yaml", text_of(profile));
  EXPECT_EQ(text_of(read_profile(path)), text_of(profile));
}

TEST(Profile, EqualWorkHasEqualDigestsAndOtherWorkHasOthers) {
  const Config c = one_thread(gpt2_style());
  CostModel costs(c, make_layout(c, {}));
  EXPECT_EQ(costs.work_of(1), costs.work_of(3)) << "attention of two layers";
  EXPECT_NE(costs.work_of(1), costs.work_of(2)) << "attention and MLP";
  Config wider = gpt2_style();
  wider.model.gpt.mlp_width = 2 * c.model.gpt.mlp_width;
  wider = one_thread(wider);
  CostModel other(wider, make_layout(wider, {}));
  EXPECT_EQ(costs.work_of(1), other.work_of(1));
  EXPECT_NE(costs.work_of(2), other.work_of(2));
}

TEST(Profile, PlansTakeItsPricesAndEstimateWhatItLacks) {
  Config c = one_thread(gpt2_style());
  Profile profile = made_profile(c);
  CostModel described(c, make_layout(c, {}));
  const Outline on_paper = described.outline();
  const std::uint64_t attention = described.work_of(1);
  c.device.profile = written("whole.yaml", text_of(profile));
  CostModel measured(c, make_layout(c, {}));
  const Outline outline = measured.outline();
  EXPECT_EQ(outline.cost(1).forward, 2'000'000);
  EXPECT_EQ(outline.cost(1).backward, 4'000'000);
  EXPECT_EQ(outline.units[1].update, static_cast<std::int64_t>(outline.units[1].gradients / 4 * 28));
  EXPECT_EQ(measured.known().estimated, 0);

  profile.passes.erase(attention);
  c.device.profile = written("part.yaml", text_of(profile));
  CostModel partly(c, make_layout(c, {}));
  const Outline estimated = partly.outline();
  EXPECT_NEAR(static_cast<double>(estimated.cost(1).forward),
              3.0 * static_cast<double>(on_paper.cost(1).forward), 2);
  EXPECT_EQ(estimated.cost(2).forward, 3'000'000);
  EXPECT_GT(partly.known().estimated, 0);
  EXPECT_LT(partly.known().estimated, 1);
}

TEST(Profile, RefusesWhatIsNoProfileByLineAndKey) {
  const std::string text = text_of(made_profile(one_thread(gpt2_style())));
  const auto complaint = [&](const std::string& from, const std::string& to) {
    std::string broken = text;
    broken.replace(broken.find(from), from.size(), to);
    try {
      read_profile(written("broken.yaml", broken));
    } catch (const Error& error) {
      EXPECT_EQ(error.code, Exit::bad_data);
      return std::string(error.what());
    }
    return std::string("taken");
  };
  EXPECT_THAT(complaint("update: 1", "update: 0"), AllOf(HasSubstr("broken.yaml:9"), HasSubstr("update")));
  EXPECT_THAT(complaint("forward: ", "forwards: "), HasSubstr("forwards is not a setting"));
  EXPECT_THAT(complaint("factor: 3\n", ""), HasSubstr("factor is missing"));
  EXPECT_THAT(complaint("  w", "  x"), HasSubstr("is no digest"));
  EXPECT_NE(complaint("passes:", "passes"), "taken");
}

TEST(Profile, CutOffBehindAnyLineIsRefused) {
  const std::string text = text_of(made_profile(one_thread(gpt2_style())));
  for (std::size_t end = text.find('\n'); end + 1 < text.size(); end = text.find('\n', end + 1)) try {
      read_profile(written("cut.yaml", text.substr(0, end + 1)));
      FAIL() << "taken: " << text.substr(0, end + 1);
    } catch (const Error& error) {
      EXPECT_EQ(error.code, Exit::bad_data) << error.what();
    }
}

TEST(BlockTimer, TimesEveryBlockOfEveryKindOfModel) {
  for (const Config& model : {gpt2_style(), llama_style()})
    for (const int tensor : {1, 2}) {
      Config c = model;
      c.grid.tensor = tensor;
      c = one_thread(c);
      CostModel costs(c, make_layout(c, {}));
      BlockTimer timer(c, {}, costs);
      for (int block = 0; block < static_cast<int>(costs.model().blocks().size()); ++block) {
        const MeasuredPass pass = timer.time(block, [](int passes, double) { return passes < 3; });
        EXPECT_GT(pass.forward, 0);
        EXPECT_GT(pass.input, 0);
        EXPECT_LT(pass.forward + pass.input, 10);
        EXPECT_EQ(pass.block, costs.model().blocks()[block].name);
      }
      EXPECT_GT(timer.clear_rate(), 1e8);
      EXPECT_GT(timer.update_rate(), 1e8);
    }
}

}  // namespace
}  // namespace mindpipe
