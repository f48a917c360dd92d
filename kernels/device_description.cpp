#include "device_description.h"

#include <array>

#include "core/check.h"

namespace mindpipe {
namespace {

// What a device reaches on large shapes: an H200, an H100 (whose memory is slower) and an A100 of a cluster,
// eight to a node, each with NVLink to the others and a port of 400 or 200 Gb/s to other nodes; and one
// AVX-512 core of a server of 64, who talk through memory and share a port of 100 Gb/s. "instant" leaves the
// program's own cost.
const std::array devices{
    DeviceDescription{"h200", 50e12, 700e12, 4.0e12, 4e-6, {8, 8e-6, 350e9, 15e-6, 45e9, 50e9}},
    DeviceDescription{"h100", 50e12, 700e12, 2.8e12, 4e-6, {8, 8e-6, 350e9, 15e-6, 45e9, 50e9}},
    DeviceDescription{
        "a100", 18e12, 250e12, 1.6e12, 5e-6, {8, 10e-6, 230e9, 20e-6, 22e9, 22e9}, 0, 0, 163 * 1024},
    DeviceDescription{"core", 0.12e12, 0.12e12, 8e9, 1e-6, {64, 2e-6, 10e9, 5e-6, 1e9, 4e9}},
    DeviceDescription{"instant", 1e30, 1e30, 1e30, 0, {64, 2e-6, 10e9, 5e-6, 1e9, 4e9}},
};

}  // namespace

double DeviceDescription::efficiency(double rows, double columns, double depth) const {
  if (half_rate == 0) return 1;
  return 1 / ((1 + half_rate / rows) * (1 + half_rate / columns) * (1 + half_rate / depth));
}

DeviceDescription describe_device(const std::string& name) {
  std::string known;
  for (const DeviceDescription& device : devices) {
    if (device.name == name) return device;
    known += (known.empty() ? "" : ", ") + device.name;
  }
  fail(Exit::bad_configuration, "device.description is '{}' (bundled devices: {})", name, known);
}

}  // namespace mindpipe
