#include "runtime/gather_texts.h"

#include <algorithm>
#include <cstring>

#include "core/clock.h"

namespace mindpipe {

std::int64_t clock_shift(bool is_first, const SumOverGroup& sum) {
  // Every node has a clock of its own. All ranks leave the same collective at about the same time: what their
  // clocks say then, against the first rank's, is the shift. Of several such moments the middle one counts.
  // Below a tenth of a second it is taken for the collective's own spread: ranks of one node share their
  // clock, and clocks of different nodes began to count at different boots.
  constexpr std::size_t moments = 5;
  constexpr std::int64_t least = 100'000'000;
  std::vector<std::int64_t> mine;
  for (std::size_t k = 0; k < moments; ++k) {
    std::vector<std::int64_t> one{1};
    sum(one);
    mine.push_back(now_ns());
  }
  std::vector<std::int64_t> shifts = is_first ? mine : std::vector<std::int64_t>(moments, 0);
  sum(shifts);
  for (std::size_t k = 0; k < moments; ++k) shifts[k] -= mine[k];
  std::nth_element(shifts.begin(), shifts.begin() + moments / 2, shifts.end());
  const std::int64_t shift = shifts[moments / 2];
  return std::abs(shift) < least ? 0 : shift;
}

void gather_texts(const std::string& own, int rank, int ranks, const SumOverGroup& sum,
                  const std::function<void(const std::string&)>& write) {
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(ranks), 0);
  sizes[rank] = static_cast<std::int64_t>(own.size());
  sum(sizes);
  constexpr std::size_t numbers_at_once = 1 << 16, each = sizeof(std::int64_t);
  for (int from = 0; from < ranks; ++from) {
    const auto size = static_cast<std::size_t>(sizes[from]);
    for (std::size_t first = 0; first < size; first += numbers_at_once * each) {
      const std::size_t count = std::min(size - first, numbers_at_once * each);
      std::vector<std::int64_t> numbers((count + each - 1) / each, 0);
      if (rank == from) std::memcpy(numbers.data(), own.data() + first, count);
      sum(numbers);
      write(std::string(reinterpret_cast<const char*>(numbers.data()), count));
    }
  }
}

}  // namespace mindpipe
