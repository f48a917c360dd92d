#pragma once
#include <algorithm>
#include <cstdint>

namespace mindpipe {

/// What rooms may cost: a time at most one part in so many longer than the best.
struct LittleLonger {
  std::int64_t best = 0;
  int parts = 100;
  bool holds(std::int64_t time) const { return time >= 0 && time <= best + best / parts; }
};

/// How the fewest rooms of a group are looked for: halving what is between, or doubling from the least on,
/// which tries fewer and finds them to a factor of two.
enum class Search : std::uint8_t { halving, doubling };

/// The fewest rooms of a group, from `least` to `most`, that cost little, if all above them do, too; at most
/// `most`, which is not tried. time(count): what it takes with so many, below 0 where everything stands
/// still.
template <class Time>
int fewest(int least, int most, Search search, const LittleLonger& bound, const Time& time) {
  while (least < most) {
    const int count = search == Search::doubling ? least : least + (most - least) / 2;
    if (!bound.holds(time(count))) least = search == Search::doubling ? std::min(2 * count, most) : count + 1;
    else if (search == Search::doubling) return count;
    else most = count;
  }
  return most;
}

}  // namespace mindpipe
