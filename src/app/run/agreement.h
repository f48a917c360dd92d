#pragma once
#include <string>

#include "comm/mpi.h"
#include "config/config.h"

namespace mindpipe {

// Bits are promised among equals. A rank that is not like rank 0 fails with code 78 and says what differs.

/// Same binary, same settings (device.threads aside), same contents of device.kernels on every rank. Before
/// anything depends on the grid, which is one of the settings. Collective.
void require_same_settings(const World& world, const Config& config);
/// The instruction set: a backend's description begins with it. A unit for bf16 counts for bf16.
std::string arithmetic_of(const std::string& description, Precision precision);
/// Same instruction set. Collective.
void require_same_arithmetic(const World& world, const std::string& description, Precision precision);

}  // namespace mindpipe
