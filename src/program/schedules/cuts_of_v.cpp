#include "program/schedules/cuts_of_v.h"

#include <algorithm>
#include <limits>

#include "program/make_program.h"
#include "program/schedules/order_in_slab.h"
#include "program/schedules/pass_clock.h"

namespace mindpipe {
namespace {

/// Micro-batches that the inner clock looks at, four a stage up to so many in all, but two a stage at least:
/// more of them only repeat what these do.
constexpr int most_micro_batches = 64;
/// Passes of all cuts that one climb tries, if that is enough to look at all short runs twice.
constexpr std::int64_t passes_looked_at = 2'000'000;

/// A step, and how much dearer it is for tapes beyond a limit: a percent of them, of one stage, is as bad as
/// so many percent of time.
double price_of(std::int64_t step, std::int64_t beyond, std::int64_t limit, double weight) {
  return static_cast<double>(step) * (1 + weight * static_cast<double>(beyond) / static_cast<double>(limit));
}

/// The cuts that are tried for one order.
class CutsOfV {
 public:
  CutsOfV(const Outline& outline, ScheduleKind schedule, const Network& network)
      : outline_(outline), network_(network) {
    const int enough = std::max(2 * outline.stages, std::min(4 * outline.stages, most_micro_batches));
    outline_.micro_batches = std::min(outline.micro_batches, enough);
    outline_.shards = 1;
    limit_ = most_tapes(outline_, schedule);
    order_ = make_order(schedule, request_of(outline_));
  }

  /// Tapes have gaps between them where they lie in memory, so cuts for fewer are tried, too.
  std::vector<int> best() {
    std::vector<int> best = outline_.first_block;
    double least = price_in_slab();
    for (const int percent : {100, 95, 90, 85}) {
      const std::vector<int> before = outline_.first_block;
      climb(limit_ * percent / 100);
      if (outline_.first_block == before) continue;
      const double price = price_in_slab();
      if (price >= least) continue;
      least = price;
      best = outline_.first_block;
    }
    return best;
  }

 private:
  /// A step that is known not to be better is not run.
  double price_by_clock(std::int64_t limit, double least) const {
    const PassClock clock(outline_, PriceList(outline_, network_));
    if (static_cast<double>(clock.longest_work()) >= least) return least;
    const PassClock::Run run = clock.run(order_, {.most_tapes = limit});
    return price_of(run.step, run.beyond, limit, 1);
  }
  double price_in_slab() const {
    const OrderInSlab lies = in_slab(order_, outline_, PriceList(outline_, network_), limit_, Fit::rough);
    return price_of(lies.step, std::max<std::int64_t>(0, lies.bytes - limit_), limit_, 3);
  }

  /// Moves runs of boundaries that follow each other by a block, while it gets better: the short ones first,
  /// and with them those between the two chunks of a stage.
  void climb(std::int64_t limit) {
    double least = price_by_clock(limit, std::numeric_limits<double>::max());
    const int chunks = outline_.all_chunks();
    std::int64_t left =
        std::max<std::int64_t>(6 * chunks, passes_looked_at / (2 * chunks * outline_.micro_batches));
    const auto improve = [&](int begin, int end) {
      bool improved = false;
      for (const int way : {-1, 1}) {
        const std::vector<int> before = outline_.first_block;
        if (left <= 0 || !move(begin, end, way)) continue;
        const double tried = price_by_clock(limit, least);
        --left;
        improved |= tried < least;
        if (tried < least) least = tried;
        else outline_.first_block = before;
      }
      return improved;
    };
    for (int length = 1; length < chunks && left > 0;) {
      bool improved = false;
      for (int begin = 1; begin + length <= chunks; ++begin) improved |= improve(begin, begin + length);
      for (int stage = 0; length == 1 && stage + 1 < outline_.stages; ++stage)
        improved |= improve(stage + 1, chunks - stage);
      length = improved ? 1 : length + 1;
    }
  }

  /// Moves the boundaries before some chunks; whether all chunks keep a block.
  bool move(int begin, int end, int way) {
    std::vector<int>& first = outline_.first_block;
    const bool leaves_some = way < 0 ? first[begin] - 1 > first[begin - 1] : first[end - 1] + 1 < first[end];
    for (int chunk = begin; leaves_some && chunk < end; ++chunk) first[chunk] += way;
    return leaves_some;
  }

  Outline outline_;  ///< with the cuts that are tried
  const Network& network_;
  std::int64_t limit_ = 0;
  Order order_;
};

}  // namespace

std::vector<int> cuts_of_v(const Outline& outline, ScheduleKind schedule, const Network& network) {
  const bool is_searched = schedule == ScheduleKind::searched;
  return CutsOfV(outline, is_searched ? ScheduleKind::zero_bubble_v : schedule, network).best();
}

}  // namespace mindpipe
