#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cuda/gpu_description.cpp"  // over the runtime of cuda_on_host, which answers as an H200 does
#include "plans/attention_planner.h"

namespace mindpipe::cuda {
namespace {

TEST(GpuDescriptionOfTheRuntime, HasTheMembersOfDataDevices) {
  const auto here = nlohmann::json::parse(gpu_description(0));
  auto wanted = nlohmann::json::parse(find_gpu("h200")->properties);
  wanted["deviceName"] = "fibers on the host";
  wanted["totalGlobalMem"] = 1 << 30;
  wanted["pciDeviceId"] = 0;  // nothing is at that place of the bus
  EXPECT_EQ(here, wanted);
  EXPECT_EQ(gpu_description(0).find('\n'), std::string::npos);
}

}  // namespace
}  // namespace mindpipe::cuda
