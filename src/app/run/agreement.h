#pragma once
#include <set>
#include <string>

#include "app/run/run_arithmetic.h"
#include "comm/mpi.h"
#include "config/kinds.h"

namespace mindpipe {

struct Config;

// Bits are promised among equals. A rank that is not like rank 0 fails with code 78 and says what differs.

/// Same binary, same settings (device.threads aside), same faults to try (`injections`), same contents of the
/// files of prices and kernels on every rank. Before anything depends on the grid, which is one of the
/// settings. `open`: those that are left to a search. Collective.
void require_same_settings(const World& world, const Config& config, const std::string& injections = "",
                           const std::set<std::string>& open = {});
/// The class of instruction sets that have equal bits: a backend's description begins with the set. A unit
/// for bf16 counts for bf16.
std::string arithmetic_of(const std::string& description, Precision precision);
/// Same arithmetic: says the first part that differs. Collective.
void require_same_arithmetic(const World& world, const RunArithmetic& here);

}  // namespace mindpipe
