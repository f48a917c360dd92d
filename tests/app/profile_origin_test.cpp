#include "app/plan/profile_origin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "config/config.h"
#include "core/check.h"

namespace mindpipe {
namespace {

using testing::HasSubstr;

/// A profile that was measured here.
Profile own_profile(const Config& config) {
  const ProfileOrigin here = origin_here(config.device);
  Profile profile;
  profile.machine = here.machine;
  profile.instructions = here.instructions;
  profile.kernels = here.kernels;
  profile.program = "0.3.0";
  profile.update = profile.clear = 1e9;
  profile.passes[7] = {1e-3, 2e-3, 0, 0.01, "layers.0.mlp"};
  return profile;
}

TEST(ProfileOrigin, IsRefusedWithAllThatDiffersWhereItIsThatOfAnotherMachine) {
  const std::filesystem::path file = std::filesystem::temp_directory_path() / "mindpipe_profile.yaml";
  Config config;
  config.device.profile = file.string();
  const auto refusal = [&](const Profile& profile, bool foreign = false) {
    std::ofstream(file) << text_of(profile);
    try {
      require_own_profile(config.device, foreign);
    } catch (const Error& error) {
      EXPECT_EQ(error.code, Exit::bad_configuration);
      return std::string(error.what());
    }
    return std::string();
  };
  const Profile own = own_profile(config);
  EXPECT_EQ(refusal(own), "");
  Profile other = own;
  other.machine = "an abacus, cpu";
  other.kernels = "00ff";
  EXPECT_THAT(refusal(other), AllOf(HasSubstr("machine: an abacus, cpu there, " + own.machine +
                                              " here; table of device.kernels: 00ff there, none here"),
                                    HasSubstr("--foreign-profile")));
  other = own;
  other.instructions = "beads";
  EXPECT_THAT(refusal(other), HasSubstr("instructions: beads there, " + own.instructions + " here"));
  EXPECT_EQ(refusal(other, true), "") << "it was asked for";
  config.device.threads = 1;
  EXPECT_EQ(refusal(own), "");
  other = own;
  other.threads = 4;
  EXPECT_THAT(refusal(other), HasSubstr("threads of a rank: 4 there, 1 here"));
  config.device.threads = 0;
  EXPECT_EQ(refusal(other), "") << "as many as are free";
  config.device.kind = DeviceKind::emulated;
  EXPECT_EQ(refusal(other), "") << "an emulated device imitates any machine";
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace mindpipe
