#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "comm/mpi.h"

namespace mindpipe {

/// When rank 0 asked another rank, when that heard and answered, and when the answer was back: each by the
/// clock of the one that saw it.
using PingTimes = std::array<std::int64_t, 4>;

/// Questions of rank 0 to the first rank of each other host, for clocks to be compared. `hosts`: of all
/// ranks; `clock`: this rank's. Gives a rank that was asked what it was asked, others nothing. Collective
/// over the world, host after host in the order of their first ranks.
std::vector<PingTimes> ping_hosts(const World& world, const std::vector<std::string>& hosts,
                                  const std::function<std::int64_t()>& clock);

}  // namespace mindpipe
