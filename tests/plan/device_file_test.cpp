#include "config/device_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "config/config.h"
#include "core/check.h"
#include "plan/cost_model.h"
#include "plan/network_on_paper.h"
#include "plans/attention_planner.h"

namespace mindpipe {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string written(const std::string& text) {
  const std::string path = testing::TempDir() + "device_of_test.yaml";
  std::ofstream(path) << text;
  return path;
}

Config described_by(const std::string& description) {
  return read_config(std::string(MINDPIPE_SOURCE_DIR) + "/configs/gpt2-124m.yaml",
                     {"device.kind=cuda", "device.description=" + description, "grid.data=1"});
}

/// Seconds of a forward and a backward of one block.
double seconds_of(const Config& config, int block) {
  return CostModel(config, make_layout(config, {})).described_seconds(block);
}

TEST(DescribedDevice, HasNoneOfItsReserveForProducts) {
  const auto with_reserve = [](int reserved, const std::string& device) {
    Config config = described_by(device);
    config.device.reserved_multiprocessors = reserved;
    return config;
  };
  const DeviceDescription whole = describe_device("h100"), rest = description_of(with_reserve(33, "h100"));
  EXPECT_NEAR(rest.flops_bf16, 0.75 * whole.flops_bf16, 1e-9 * whole.flops_bf16) << "33 of 132";
  EXPECT_NEAR(rest.flops_f32, 0.75 * whole.flops_f32, 1e-9 * whole.flops_f32);
  EXPECT_EQ(rest.bytes, whole.bytes);
  EXPECT_GT(seconds_of(with_reserve(33, "h100"), 1), 1.1 * seconds_of(with_reserve(0, "h100"), 1));
  EXPECT_EQ(description_of(with_reserve(33, "core")).flops_f32, describe_device("core").flops_f32)
      << "nobody says how many it has";
  try {
    description_of(with_reserve(108, "a100"));
    ADD_FAILURE() << "nothing is left";
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Exit::bad_configuration);
    EXPECT_THAT(error.what(), HasSubstr("device.reserved_multiprocessors is 108, and the GPU has 108"));
  }
}

// nvidia-smi counts what the driver and the check bits of the memory take too.
TEST(DescribedGpus, HaveTheMemoryThatARuntimeGivesAndNotThatOfNvidiaSmi) {
  const std::map<std::string, std::pair<std::int64_t, std::int64_t>> mib{
      {"a100", {81920, 40}}, {"h100", {81559, 50}}, {"h200", {143771, 60}}};  // by nvidia-smi; second cache
  ASSERT_EQ(described_gpus().size(), mib.size());
  for (const GpuDescription& gpu : described_gpus()) {
    const auto properties = nlohmann::json::parse(gpu.properties);
    const auto [of_smi, cache] = mib.at(gpu.name);
    const double share = properties.at("totalGlobalMem").get<double>() / static_cast<double>(of_smi << 20);
    EXPECT_LT(share, 1) << gpu.name;
    EXPECT_GT(share, 0.98) << gpu.name;
    EXPECT_EQ(properties.at("l2CacheSize"), cache << 20) << gpu.name;
    EXPECT_EQ(properties.at("multiProcessorCount"), gpu.multiprocessors) << gpu.name;
  }
}

TEST(DeviceFile, SaysWhatIsOtherwiseThanABundledDevice) {
  const Config config = described_by(written("like: a100\nbytes: 2e12\nlinks: {rate_between_nodes: 9e9}\n"));
  const DeviceDescription device = description_of(config), bundled = describe_device("a100");
  EXPECT_EQ(device.bytes, 2e12);
  EXPECT_EQ(device.flops_bf16, bundled.flops_bf16);
  EXPECT_EQ(device.launch, bundled.launch);
  EXPECT_EQ(links_on_paper(config).bytes_between_nodes, 9e9);
  EXPECT_EQ(links_on_paper(config).bytes, bundled.links.bytes);
  EXPECT_EQ(device_on_paper(config), "a100") << "whose power and plans of attention hold";
  EXPECT_EQ(device_name(config), config.device.description);
}

TEST(DeviceFile, SmallProductsReachLessOfTheRate) {
  DeviceDescription device = describe_device("a100");
  EXPECT_EQ(device.efficiency(16, 16, 16), 1);
  device.half_rate = 128;
  EXPECT_NEAR(device.efficiency(128, 1e12, 1e12), 0.5, 1e-6);
  EXPECT_NEAR(device.efficiency(128, 128, 128), 0.125, 1e-12);
  const Config plain = described_by("a100"), slow = described_by(written("like: a100\nhalf_rate: 512\n"));
  constexpr int mlp = 2;
  EXPECT_GT(seconds_of(slow, mlp), 1.2 * seconds_of(plain, mlp));
}

TEST(DeviceFile, ScoresThatGoToMemoryMakeAttentionLongerAndKeepItsDigest) {
  const Config plain = described_by("a100"),
               scores = described_by(written("like: a100\nattention_scores: 4\n"));
  constexpr int attention = 1, mlp = 2;
  const ModelConfig& model = plain.model;
  const double bytes = 4.0 * 2.3 * plain.train.micro_batch * model.gpt.heads * model.gpt.context *
                       model.gpt.context * (plain.train.precision == Precision::bf16 ? 2 : 4);
  EXPECT_NEAR(seconds_of(scores, attention) - seconds_of(plain, attention),
              bytes / describe_device("a100").bytes, 0.3 * bytes / describe_device("a100").bytes);
  EXPECT_EQ(seconds_of(scores, mlp), seconds_of(plain, mlp));
  EXPECT_EQ(CostModel(scores, make_layout(scores, {})).work_of(attention),
            CostModel(plain, make_layout(plain, {})).work_of(attention))
      << "a profile holds beside any description";
}

TEST(DeviceFile, RefusesByLineAndKeyWhatNoDeviceHas) {
  const auto complaint = [](const std::string& text) {
    try {
      description_of(described_by(written(text)));
    } catch (const Error& error) {
      EXPECT_EQ(error.code, text.find("like: b200") == 0 ? Exit::bad_configuration : Exit::bad_data);
      return std::string(error.what());
    }
    return std::string("taken");
  };
  EXPECT_THAT(complaint("like: a100\nbytes: 0\n"),
              AllOf(HasSubstr("device_of_test.yaml:2: bytes is '0'"), HasSubstr("above 0")));
  EXPECT_THAT(complaint("like: a100\nlinks: {rate: 0}\n"), HasSubstr("links.rate is '0'"));
  EXPECT_THAT(complaint("like: a100\nlinks: 5\n"),
              HasSubstr("device_of_test.yaml:2: links is '5'; it is a section, with settings like "));
  EXPECT_THAT(complaint("like: a100\nflops: 1e12\n"), HasSubstr("flops is not a setting"));
  EXPECT_THAT(complaint("bytes: 1e12\n"), HasSubstr("like is missing"));
  EXPECT_THAT(complaint("like: b200\n"), HasSubstr("bundled devices: h200"));
}

}  // namespace
}  // namespace mindpipe
