#include "comm/part_length.h"

#include <algorithm>
#include <vector>

#include "core/check.h"

namespace mindpipe {

void require_one_part_length(const World& world, std::int64_t part_bytes) {
  if (world.size == 1) return;
  std::vector<std::int64_t> all(static_cast<std::size_t>(world.size));
  MPI_CHECK(MPI_Allgather(&part_bytes, 1, MPI_INT64_T, all.data(), 1, MPI_INT64_T, world.comm));
  const auto other = std::find_if(all.begin(), all.end(), [&](std::int64_t of) { return of != all[0]; });
  MP_REQUIRE(
      other == all.end(), Exit::bad_configuration,
      "rank 0 cuts sums and messages into parts of {} bytes, and rank {} into parts of {}: the two ends "
      "of a transfer would not match; device.links and the file that device.profile names must say the "
      "same on all machines",
      all[0], other - all.begin(), *other);
}

}  // namespace mindpipe
