#include "comm/text_of_rank_0.h"

#include <cstdint>
#include <limits>

namespace mindpipe {

std::string text_of_rank_0(const World& world, const std::string& text) {
  if (world.comm == MPI_COMM_NULL) return text;
  MP_CHECK(text.size() <= std::numeric_limits<int>::max(), "{} bytes to compare", text.size());
  auto size = static_cast<std::int64_t>(text.size());
  MPI_CHECK(MPI_Bcast(&size, 1, MPI_INT64_T, 0, world.comm));
  std::string there = text;
  there.resize(static_cast<std::size_t>(size));
  MPI_CHECK(MPI_Bcast(there.data(), static_cast<int>(size), MPI_BYTE, 0, world.comm));
  return there;
}

bool is_first_with(const World& world, bool problem) {
  if (world.comm == MPI_COMM_NULL) return problem;
  const int mine = problem ? world.rank : world.size;
  int first = mine;
  MPI_CHECK(MPI_Allreduce(&mine, &first, 1, MPI_INT, MPI_MIN, world.comm));
  if (first < world.size && first != world.rank) MPI_CHECK(MPI_Barrier(world.comm));
  return problem;
}

bool any_rank(const World& world, bool holds) {
  int any = holds ? 1 : 0;
  if (world.comm != MPI_COMM_NULL)
    MPI_CHECK(MPI_Allreduce(MPI_IN_PLACE, &any, 1, MPI_INT, MPI_MAX, world.comm));
  return any != 0;
}

}  // namespace mindpipe
