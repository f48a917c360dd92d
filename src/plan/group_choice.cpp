#include "plan/group_choice.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <set>
#include <tuple>

#include "core/check.h"
#include "plan/step_bound.h"
#include "program/schedules/step_order.h"

namespace mindpipe {
namespace {

/// Steps that are longer by less count as equal: with rooms that are bounded, each may be half a percent
/// longer.
constexpr double equal_steps = 1.005;

/// The most passes of a step, and the most groups of p, with which all groups are tried.
constexpr int few_passes = 512, few_groups = 4;

/// The most passes of a step with which groups of all sizes are tried.
constexpr int most_for_all_sizes = 1024;

/// Groups of p but for one of `size`: the first of forwards, the last of backwards. What is no multiple of p
/// goes to a group at the other end. None: the rest is too small for a group.
std::vector<int> groups_with(int size, int stages, int micro_batches, bool is_first) {
  if (size >= micro_batches) return {micro_batches};
  std::vector<int> groups;
  const int rest = micro_batches - size;
  if (rest < stages) return {};
  groups.assign(rest / stages, stages);
  groups.front() += rest % stages;
  groups.push_back(size);
  if (is_first) std::reverse(groups.begin(), groups.end());
  return groups;
}

/// Groups of `size`, and behind them what is left, if that is none of fewer than p.
std::vector<int> groups_of(int size, int stages, int micro_batches) {
  std::vector<int> groups(micro_batches / size, size);
  const int rest = micro_batches % size;
  if (rest > 0 && (rest < stages || groups.empty())) return {};
  if (rest > 0) groups.push_back(rest);
  return groups;
}

/// All groups in multiples of p, where p divides what a rank has.
std::vector<std::vector<int>> all_groups(int stages, int micro_batches) {
  if (micro_batches == 0) return {{}};
  std::vector<std::vector<int>> all;
  for (int first = stages; first <= micro_batches; first += stages)
    for (const std::vector<int>& rest : all_groups(stages, micro_batches - first)) {
      std::vector<int>& groups = all.emplace_back(1, first);
      groups.insert(groups.end(), rest.begin(), rest.end());
    }
  return all;
}

/// Sizes of the first group of forwards or the last of backwards, ascending: `under` is what hides sums or
/// gathers. The larger a group, the more tapes; where steps are not long, all sizes are tried, so that those
/// are among them that just fit a limit.
std::vector<int> sizes_to_try(int stages, int micro_batches, int chunks, int under) {
  std::set<int> sizes{stages, 2 * stages, (under + stages - 1) / stages * stages, micro_batches};
  const bool are_many = 2 * stages * chunks * micro_batches > most_for_all_sizes;
  for (int size = stages; size < micro_batches && !are_many; size += stages) {
    const int groups = size / stages, power = std::bit_floor(static_cast<unsigned>(groups));
    // Beyond eight, one and a half times a power of two, too.
    if (groups <= 8 || groups == power || 2 * groups == 3 * power) sizes.insert(size);
  }
  return {sizes.begin(), sizes.end()};
}

/// The most micro-batches on any stage whose passes take as long as what travels over data meanwhile.
struct Hidden {
  int sums = 0, gathers = 0;
};
Hidden hidden_of(const Outline& outline, const PriceList& prices) {
  Hidden most;
  for (int rank = 0; rank < outline.stages; ++rank) {
    std::int64_t forward = 0, backward = 0, sums = 0, gathers = 0;
    for (int block = 0; block < outline.all_blocks(); ++block) {
      if (outline.rank_of_block(block) != rank) continue;
      forward += outline.cost(block).forward;
      backward += outline.cost(block).backward;
      for (const UnitUse& use : outline.uses_in(block, block + 1)) sums += prices.sum(use.unit).load.takes;
    }
    for (const int unit : outline.units_of_rank(rank)) gathers += prices.gather(unit).load.takes;
    const auto under = [&](std::int64_t takes, std::int64_t pass) {
      const std::int64_t lasts = std::max<std::int64_t>(1, outline.lasting(rank, pass));
      return static_cast<int>(std::min<std::int64_t>(outline.micro_batches, (takes + lasts - 1) / lasts));
    };
    most.sums = std::max(most.sums, under(sums, backward));
    if (outline.sharded_optimizer) most.gathers = std::max(most.gathers, under(gathers, forward));
  }
  return most;
}

/// Micro-batches times chunks that a rank holds tapes of, at most, on the rank with the most.
int most_tapes(const Order& order) {
  int most = 0;
  for (const auto& passes : order) {
    int held = 0;
    for (const Pass& pass : passes) most = std::max(most, held += pass.kind == ActionKind::forward ? 1 : -1);
  }
  return most;
}

/// Groups, timed once their turn comes.
struct Tried {
  MicroBatchGroups groups;
  Order order;
  std::int64_t bound = 0;  ///< nanoseconds that the step lasts at least
  std::int64_t step = 0;   ///< with all the rooms that it could use; 0: not timed yet
  int tapes = 0;
  int number = 0;  ///< in the order in which groups are tried
};

/// Groups that may be taken, the least bound first, as far as they have to be timed.
class GroupsInTurn {
 public:
  /// `outline` and `network` stay as they are; groups whose orders may not fit are left out.
  GroupsInTurn(const Outline& outline, const Network& network, const MicroBatchGroups& given,
               const OrderMayFit& may_fit)
      : outline_(outline), prices_(outline, network) {
    const StepBound bound(outline, network, false);
    for (const MicroBatchGroups& groups : groups_to_try(outline, network, given)) {
      Order order = make_order(ScheduleKind::elastic, request_of(outline, groups));
      if (may_fit && !may_fit(order)) continue;
      const std::int64_t least = bound.of(order);
      const int tapes = most_tapes(order);
      const int number = static_cast<int>(left_.size());
      left_.push_back({groups, std::move(order), least, 0, tapes, number});
    }
    std::stable_sort(left_.begin(), left_.end(),
                     [](const Tried& a, const Tried& b) { return a.bound < b.bound; });
  }

  bool empty() const { return left_.empty(); }

  /// The step of the fastest, once all are timed that may be about as fast.
  std::int64_t least() {
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    for (Tried& one : left_) {
      if (!about_as_fast(one.bound, least)) break;
      time(one);
      least = std::min(least, one.step);
    }
    return least;
  }

  /// Groups that are a percent faster than all with fewer tapes, the fewest tapes first; with as many tapes
  /// the fastest. No others are timed than may be among them.
  std::vector<Tried> worth_their_tapes() {
    std::stable_sort(left_.begin(), left_.end(), [](const Tried& a, const Tried& b) {
      return std::pair(a.tapes, a.bound) < std::pair(b.tapes, b.bound);
    });
    std::vector<Tried> worth;
    std::int64_t most = std::numeric_limits<std::int64_t>::max();  // what the next has to be below
    for (auto one = left_.begin(); one != left_.end();) {
      const Tried* fastest = nullptr;
      for (const int tapes = one->tapes; one != left_.end() && one->tapes == tapes; ++one) {
        if (one->bound >= most) continue;
        time(*one);
        if (one->step >= most) continue;
        fastest = &*one;
        most = one->step;
      }
      if (fastest == nullptr) continue;
      worth.push_back(*fastest);
      most = fastest->step / 100 * 99;
    }
    return worth;
  }

  MicroBatchGroups fastest() {
    const std::int64_t step = least();
    const Tried* first = nullptr;
    for (const Tried& one : left_)
      if (one.step == step && (first == nullptr || one.number < first->number)) first = &one;
    return first->groups;
  }

  /// Takes out the one with the fewest tapes among those about as fast as the fastest.
  MicroBatchGroups take_best() {
    const std::int64_t step = least();
    const auto rank = [&](const Tried& one) {
      return std::tuple(one.step == 0 || !about_as_fast(one.step, step), one.tapes, one.step, one.number);
    };
    const auto best = std::min_element(left_.begin(), left_.end(),
                                       [&](const Tried& a, const Tried& b) { return rank(a) < rank(b); });
    MicroBatchGroups groups = std::move(best->groups);
    left_.erase(best);
    return groups;
  }

 private:
  static bool about_as_fast(std::int64_t step, std::int64_t least) {
    return static_cast<double>(step) <= equal_steps * static_cast<double>(least);
  }

  void time(Tried& one) {
    if (one.step == 0) one.step = StepOrder(outline_, prices_, one.order).run({});
  }

  const Outline& outline_;
  PriceList prices_;
  std::vector<Tried> left_;
};

}  // namespace

std::vector<MicroBatchGroups> groups_to_try(const Outline& outline, const Network& network,
                                            const MicroBatchGroups& given) {
  const PriceList prices(outline, network);
  const Hidden hidden = hidden_of(outline, prices);
  const int stages = outline.stages, all = outline.micro_batches, chunks = outline.chunks;
  const auto lists = [&](const std::vector<int>& said, int under, bool is_first) {
    if (!said.empty()) return std::vector<std::vector<int>>{said};
    const bool are_few =
        all % stages == 0 && all / stages <= few_groups && 2 * stages * outline.chunks * all <= few_passes;
    if (are_few) return all_groups(stages, all);
    const std::vector<int> sizes = sizes_to_try(stages, all, chunks, under);
    std::vector<std::vector<int>> made;
    for (const int size : sizes)
      if (const auto groups = groups_with(size, stages, all, is_first); size > 0 && !groups.empty())
        made.push_back(groups);
    // Sums of each group of backwards travel under the next.
    for (const int size : sizes) {
      auto groups = groups_of(std::max(size, 2 * stages), stages, all);
      if (is_first || groups.empty()) continue;
      made.push_back(groups);
      std::reverse(groups.begin(), groups.end());
      made.push_back(groups);
    }
    std::sort(made.begin(), made.end());
    made.erase(std::unique(made.begin(), made.end()), made.end());
    return made;
  };
  std::vector<MicroBatchGroups> candidates;
  for (const auto& forward : lists(given.forward, hidden.gathers, true))
    for (const auto& backward : lists(given.backward, hidden.sums, false))
      candidates.push_back({forward, backward});
  return candidates;
}

namespace {

/// The fastest of the groups with the fewest tapes.
MicroBatchGroups fewest_tapes(const Outline& outline, const Network& network, const MicroBatchGroups& given) {
  int fewest = std::numeric_limits<int>::max();
  for (const MicroBatchGroups& groups : groups_to_try(outline, network, given))
    fewest = std::min(fewest, most_tapes(make_order(ScheduleKind::elastic, request_of(outline, groups))));
  return GroupsInTurn(outline, network, given,
                      [&](const Order& order) { return most_tapes(order) == fewest; })
      .fastest();
}

}  // namespace

std::optional<std::int64_t> fastest_of_groups(const Outline& outline, const Network& network,
                                              const MicroBatchGroups& given, const OrderMayFit& may_fit) {
  GroupsInTurn groups(outline, network, given, may_fit);
  if (groups.empty()) return std::nullopt;
  return groups.least();
}

std::vector<MicroBatchGroups> groups_worth_tapes(const Outline& outline, const Network& network,
                                                 const MicroBatchGroups& given, std::size_t most) {
  const std::vector<Tried> worth = GroupsInTurn(outline, network, given, nullptr).worth_their_tapes();
  std::vector<MicroBatchGroups> groups;
  const std::size_t count = std::min(most, worth.size());
  for (std::size_t place = 0; place < count; ++place)
    groups.push_back(worth[place * (worth.size() - 1) / std::max<std::size_t>(1, count - 1)].groups);
  return groups;
}

MicroBatchGroups choose_groups(const Outline& outline, const Network& network, const MicroBatchGroups& given,
                               const TakeGroups& take, const OrderMayFit& may_fit) {
  require_groups(given, outline.stages, outline.micro_batches);
  GroupsInTurn left(outline, network, given, may_fit);
  while (!left.empty()) {
    const std::int64_t fastest = left.least();
    MicroBatchGroups groups = left.take_best();
    if (!take || take(groups, fastest)) return groups;
  }
  return fewest_tapes(outline, network, given);
}

}  // namespace mindpipe
