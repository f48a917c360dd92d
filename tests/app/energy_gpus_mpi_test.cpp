// ranks: 4, alone
// undisturbed: watts are measured
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "app/energy/run_energy.h"
#include "config/config.h"
#include "energy/made_powercap.h"
#include "runtime/ranks.h"

// What the ranks of a node agree on before its leader reads: which GPUs they compute on, each once, and what
// power each node allows.
namespace mindpipe {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

/// Four ranks on one machine with made GPUs.
class GpusOfANode : public testing::Test {
 protected:
  GpusOfANode() : world_(all_ranks()), places_(all_places(world_.comm, place_of_this_rank(1))) {
    setenv("MADE_NVML_GPUS", "4", 1);
    // Whoever opens NVML from here on gets this library.
    EXPECT_NE(dlopen(MINDPIPE_MADE_NVML, RTLD_NOW), nullptr) << dlerror();
    config_.energy.meter = EnergyMeter::nvml;
  }
  ~GpusOfANode() override {
    for (const char* name :
         {"MADE_NVML_GPUS", "MADE_NVML_FENCE", "MADE_NVML_HAS_NO_COUNTER", "MADE_NVML_PROCESSES"})
      unsetenv(name);
  }
  JobNode node(const std::optional<std::string>& visible, int number = 0) const {
    return node_of_rank(world_, places_, {number, visible, ""});
  }
  static std::vector<std::pair<std::string, int>> gpus_of(const JobNode& node) {
    std::vector<std::pair<std::string, int>> gpus;
    for (const UsedGpu& gpu : node.gpus) gpus.emplace_back(gpu.uuid, gpu.ranks);
    return gpus;
  }
  /// Watts that the leader's meter sees, of GPUs of 300 W each.
  double watts_of(const JobNode& node) const {
    setenv("MADE_NVML_HAS_NO_COUNTER", "1", 1);
    const OpenedMeters opened = open_meters(config_.energy, config_.device, node);
    const double before = opened.meters.at(0)->joules();
    const std::int64_t start = now_ns();
    usleep(100'000);
    return (opened.meters[0]->joules() - before) / seconds_since(start);
  }
  std::string refusal(const JobNode& node) const {
    try {
      open_meters(config_.energy, config_.device, node);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
  std::string caps_of(const JobNode& node) const {
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    say_caps(world_, config_.energy, places_, node);
    std::fflush(nullptr);
    return testing::internal::GetCapturedStdout() + testing::internal::GetCapturedStderr();
  }
  bool leads() const { return world_.rank == 0; }

  World world_;
  std::vector<RankPlace> places_;
  Config config_;
  const std::string gpu_[4] = {"GPU-2f3a0000-made", "GPU-2f3a0001-made", "GPU-90bc0002-made",
                               "GPU-90bc0003-made"};
};

using Found = std::pair<std::string, int>;

TEST_F(GpusOfANode, AreAllMeteredWhereEachRankSeesItsOwn) {
  const JobNode here = node(std::to_string(3 - world_.rank));
  EXPECT_THAT(gpus_of(here),
              ElementsAre(Found{gpu_[3], 1}, Found{gpu_[2], 1}, Found{gpu_[1], 1}, Found{gpu_[0], 1}));
  EXPECT_EQ(here.leader, 0);
  if (leads()) {
    EXPECT_NEAR(watts_of(here), 1200, 100);
  }
  // By ids, or by numbers of one list.
  EXPECT_EQ(gpus_of(node(gpu_[3 - world_.rank].substr(0, 12))), gpus_of(here));
  EXPECT_EQ(gpus_of(node("3,2,1,0", world_.rank)), gpus_of(here));
}

TEST_F(GpusOfANode, AreMeteredOnceWhereRanksShareThem) {
  setenv("MADE_NVML_PROCESSES", "2", 1);
  const JobNode two = node(world_.rank < 2 ? "0" : gpu_[2]);
  EXPECT_THAT(gpus_of(two), ElementsAre(Found{gpu_[0], 2}, Found{gpu_[2], 2}));
  if (leads()) {
    EXPECT_NEAR(watts_of(two), 600, 60);
    const OpenedMeters opened = open_meters(config_.energy, config_.device, two);
    EXPECT_FALSE(opened.meters[0]->is_divided());
    EXPECT_EQ(opened.meters[0]->describe(), "GPU 0 (its power, integrated), GPU 2 (its power, integrated)");
  }
}

TEST_F(GpusOfANode, AreMeteredOnceWhereThereAreFewerThanRanks) {
  setenv("MADE_NVML_GPUS", "3", 1);
  EXPECT_THAT(gpus_of(node(std::nullopt, world_.rank)),
              ElementsAre(Found{gpu_[0], 2}, Found{gpu_[1], 1}, Found{gpu_[2], 1}));
}

TEST_F(GpusOfANode, ThatCannotBeToldAreRefusedOrSaid) {
  const JobNode blind = node(world_.rank == 2 ? "-1" : "0,1,2,3", world_.rank);
  if (leads()) {
    EXPECT_THAT(refusal(blind),
                HasSubstr("energy.meter is nvml: the GPU of rank 2: CUDA_VISIBLE_DEVICES is \"-1\""));
    config_.energy.meter = EnergyMeter::automatic;
    const OpenedMeters opened = open_meters(config_.energy, config_.device, blind);
    EXPECT_TRUE(opened.meters.empty());
    EXPECT_THAT(opened.left_out, HasSubstr("the GPU of rank 2"));
    config_.energy.meter = EnergyMeter::nvml;
  }
  // A job step from which each rank reaches one GPU alone.
  setenv("MADE_NVML_FENCE", std::to_string(world_.rank).c_str(), 1);
  const JobNode fenced = node("0");
  EXPECT_EQ(fenced.gpus.size(), 4u);
  if (leads()) {
    EXPECT_THAT(refusal(fenced),
                AllOf(HasSubstr("may not read the meter of " + gpu_[1] + ", on which rank 1"),
                      HasSubstr("--gpu-bind=none")));
  }
}

TEST_F(GpusOfANode, AreNotClaimedWhereNoneComputes) {
  const JobNode none = node("0,1,2,3", -1);
  EXPECT_FALSE(none.computes_on_gpus);
  EXPECT_TRUE(none.gpus.empty());
  EXPECT_THAT(refusal(none), HasSubstr("device.kind is cpu, so no rank of this node computes on a GPU"));
  EXPECT_EQ(gpu_of_rank(config_.device, places_, world_.rank).number, -1);
}

TEST_F(GpusOfANode, AndItsLimitsAreSaidForEachNodeThatDiffers) {
  const bool is_first = world_.rank < 2;
  for (int rank = 0; rank < 4; ++rank) std::strcpy(places_[rank].host, rank < 2 ? "first" : "second");
  const MadePowercap tree;
  tree.zone("intel-rapl:0", "package-0", 0);
  tree.put("intel-rapl:0", "constraint_0_name", "long_term");
  tree.put("intel-rapl:0", "constraint_0_power_limit_uw", is_first ? "225000000" : "150000000");
  config_.energy.powercap = tree.root;
  const JobNode here = node(std::to_string(world_.rank));
  EXPECT_EQ(here.gpus.size(), 2u);
  EXPECT_EQ(here.leader, is_first ? 0 : 2);
  const std::string apart = caps_of(here);
  tree.put("intel-rapl:0", "constraint_0_power_limit_uw", "225000000");
  const std::string alike = caps_of(node(std::nullopt, -1));
  if (!leads()) return;
  EXPECT_THAT(
      apart,
      AllOf(HasSubstr(
                "power that is allowed on first: package-0: 225 W (long_term); GPU 0: 700 W; GPU 1: 700 W\n"),
            HasSubstr("power that is allowed on second: package-0: 150 W (long_term); GPU 2: 700 W")));
  EXPECT_THAT(alike,
              AllOf(HasSubstr("allowed on first and 1 more node like it: package-0: 225 W (long_term)\n"),
                    Not(HasSubstr("second"))));
}

}  // namespace
}  // namespace mindpipe
