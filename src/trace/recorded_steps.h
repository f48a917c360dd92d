#pragma once
#include <algorithm>
#include <cstdint>

namespace mindpipe {

/// How many of the last steps are held, of which so many are shown: none but the one under way where none
/// are; else a dozen, since fewer are too few to be replayed and diagnosed, and up to 28 where the steps of
/// all ranks have so few actions that the trace stays below 16 MiB: who is slow in every seventh step is slow
/// in four of these.
inline std::int64_t recorded_steps(int shown, std::int64_t actions_of_all_ranks) {
  constexpr std::int64_t fewest = 12, most = 28, most_times = 1 << 20;
  if (shown == 0) return 1;
  const std::int64_t fitting = most_times / std::max<std::int64_t>(1, actions_of_all_ranks);
  return std::max<std::int64_t>(shown, std::clamp(fitting, fewest, most));
}

}  // namespace mindpipe
