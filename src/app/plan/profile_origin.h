#pragma once
#include <string>

#include "config/profile.h"

namespace mindpipe {

struct DeviceConfig;

/// What measured prices hold for, beside a model.
struct ProfileOrigin {
  std::string machine;       ///< processor, and the kind of device
  std::string instructions;  ///< instruction sets that kernels use, or the GPU
  std::string kernels;       ///< digest of the table of device.kernels; empty: there is none
  int threads = 0;           ///< threads of a rank; 0: as many as are free where it runs
};
ProfileOrigin origin_here(const DeviceConfig& device);

/// In what a profile's origin is not this one: "machine: X there, Y here; ..."; empty: in nothing.
std::string foreign_in(const Profile& profile, const ProfileOrigin& here);

/// Refuses a device.profile of another machine, unless `foreign`. An emulated device imitates any.
void require_own_profile(const DeviceConfig& device, bool foreign);

}  // namespace mindpipe
