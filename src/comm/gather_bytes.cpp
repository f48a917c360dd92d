#include "comm/gather_bytes.h"

#include <limits>
#include <numeric>

namespace mindpipe {

std::vector<std::vector<std::byte>> gather_bytes(const World& world, const std::vector<std::byte>& mine) {
  if (world.comm == MPI_COMM_NULL || world.size == 1) return {mine};
  MP_CHECK(mine.size() <= std::numeric_limits<int>::max(), "{} bytes to gather", mine.size());
  const int count = static_cast<int>(mine.size()), all_ranks = world.rank == 0 ? world.size : 0;
  std::vector<int> counts(all_ranks), begins(all_ranks);
  MPI_CHECK(MPI_Gather(&count, 1, MPI_INT, counts.data(), 1, MPI_INT, 0, world.comm));
  std::exclusive_scan(counts.begin(), counts.end(), begins.begin(), 0);
  std::vector<std::byte> all(all_ranks == 0 ? 0 : static_cast<std::size_t>(begins.back()) + counts.back());
  MPI_CHECK(MPI_Gatherv(mine.data(), count, MPI_BYTE, all.data(), counts.data(), begins.data(), MPI_BYTE, 0,
                        world.comm));
  std::vector<std::vector<std::byte>> parts;
  for (int rank = 0; rank < all_ranks; ++rank)
    parts.emplace_back(all.begin() + begins[rank], all.begin() + begins[rank] + counts[rank]);
  return parts;
}

std::vector<std::string> gather_texts(const World& world, const std::string& mine) {
  const auto* begin = reinterpret_cast<const std::byte*>(mine.data());
  std::vector<std::string> texts;
  for (const std::vector<std::byte>& bytes : gather_bytes(world, {begin, begin + mine.size()}))
    texts.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return texts;
}

std::vector<std::string> exchange_texts(const World& world, const std::string& mine) {
  if (world.comm == MPI_COMM_NULL || world.size == 1) return {mine};
  const int count = static_cast<int>(mine.size());
  std::vector<int> counts(static_cast<std::size_t>(world.size)), begins(counts.size());
  MPI_CHECK(MPI_Allgather(&count, 1, MPI_INT, counts.data(), 1, MPI_INT, world.comm));
  std::exclusive_scan(counts.begin(), counts.end(), begins.begin(), 0);
  std::string all(static_cast<std::size_t>(begins.back() + counts.back()), ' ');
  MPI_CHECK(MPI_Allgatherv(mine.data(), count, MPI_CHAR, all.data(), counts.data(), begins.data(), MPI_CHAR,
                           world.comm));
  std::vector<std::string> texts;
  for (std::size_t rank = 0; rank < counts.size(); ++rank)
    texts.push_back(
        all.substr(static_cast<std::size_t>(begins[rank]), static_cast<std::size_t>(counts[rank])));
  return texts;
}

}  // namespace mindpipe
