#include "app/plan/profile_origin.h"

#include <cstdint>
#include <vector>

#include "app/verbs/doctor.h"
#include "config/sections/device.h"
#include "core/check.h"
#include "core/sha256.h"
#include "core/text.h"
#include "hardware.h"
#include "io/file.h"

namespace mindpipe {
namespace {

std::string instructions_here(const DeviceConfig& device) {
  if (device.kind == DeviceKind::cuda) return gpu_devices();
  return device.instructions == "auto" ? instruction_sets() : device.instructions;
}

std::string digest_of_kernels(const std::string& file) {
  constexpr std::int64_t most = std::int64_t{16} << 20;
  if (file.empty()) return "";
  const std::string table = read_text_if_there(file, most).value_or("");
  Sha256 sum;
  sum.add(table.data(), table.size());
  return to_string(sum.end());
}

}  // namespace

ProfileOrigin origin_here(const DeviceConfig& device) {
  return {fmt::format("{}, {}", processor_here(), device.kind), instructions_here(device),
          digest_of_kernels(device.kernels), device.threads};
}

std::string foreign_in(const Profile& profile, const ProfileOrigin& here) {
  std::vector<std::string> differences;
  const auto compare = [&](const char* what, const std::string& there, const std::string& mine) {
    const auto shown = [](const std::string& text) { return text.empty() ? "none" : text; };
    if (there != mine)
      differences.push_back(fmt::format("{}: {} there, {} here", what, shown(there), shown(mine)));
  };
  compare("machine", profile.machine, here.machine);
  compare("instructions", profile.instructions, here.instructions);
  compare("table of device.kernels", profile.kernels, here.kernels);
  if (here.threads > 0)
    compare("threads of a rank", std::to_string(profile.threads), std::to_string(here.threads));
  return join(differences, "; ");
}

void require_own_profile(const DeviceConfig& device, bool foreign) {
  if (device.profile.empty() || foreign || !row_of(device.kind).computes) return;
  const std::string differences = foreign_in(read_profile(device.profile), origin_here(device));
  MP_REQUIRE(differences.empty(), Exit::bad_configuration,
             "device.profile: {} was measured elsewhere ({}); measure here with mindpipe-train profile, or "
             "take it all the same with --foreign-profile",
             device.profile, differences);
}

}  // namespace mindpipe
