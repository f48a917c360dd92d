#include "plan/tape_cuts.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <tuple>

#include "plan/stage_tapes.h"
#include "program/unit_bytes.h"

namespace mindpipe {
namespace {

/// How closely the least bound of a step is known.
constexpr double close = 1.003;
/// Bounds of steps, in parts of the least, for which cuts are given.
constexpr std::array lengths{1.0, 1.03, 1.08, 1.15};

/// Bytes of a block's units, where it is the first of its run; of those that blocks before it use, too, the
/// last of these, and the bytes that a rank which has both holds once.
struct UnitBytes {
  std::int64_t all = 0;
  std::vector<std::pair<int, std::int64_t>> shared = {};
  UnitBytes(const Outline& outline, int block) {
    for (const int unit : outline.units_used[block][0]) {
      all += held_bytes(outline, unit) + bytes_of_use(outline, unit);
      const std::vector<int>& users = outline.units[unit].blocks;
      const auto here = std::find(users.begin(), users.end(), block);
      if (here != users.begin()) shared.emplace_back(*(here - 1), held_bytes(outline, unit));
    }
  }
  std::int64_t in_run_from(int first) const {
    std::int64_t bytes = all;
    for (const auto& [before, held] : shared)
      if (before >= first) bytes -= held;
    return bytes;
  }
};

/// What blocks take of a stage beside their tapes and what crosses cuts, added up from the first one of a
/// run.
struct Beside {
  std::int64_t units = 0, workspace = 0;
  std::int64_t bytes() const { return units + workspace; }
};

/// A programme over stages and the blocks before which they begin. A step is bounded by each stage: it does
/// the passes of all micro-batches, behind the forwards of one by the stages before it, whose backwards
/// follow.
class CutSearch {
 public:
  CutSearch(const Outline& kept, const Outline& again, const std::vector<int>& in_flight,
            const TapeRules& rules, std::int64_t limit)
      : kept_(kept), again_(again), in_flight_(in_flight), rules_(rules), limit_(limit) {
    std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, bool, bool>, int> kinds;
    for (int block = 0; block < kept.all_blocks(); ++block) {
      const std::int64_t time = kept.cost(block).passes(), more = again.cost(block).passes() - time;
      const std::tuple key(time, more, kept.cost(block).saved, kept.cuts[block].activation,
                           rules.given.recompute.has(block), rules.given.swap.has(block));
      kind_.push_back(kinds.try_emplace(key, static_cast<int>(kinds.size())).first->second);
      units_.emplace_back(kept, block);
      all_ += time;
    }
  }

  /// The time of all passes of a micro-batch, if nothing is computed again.
  double all_passes() const { return static_cast<double>(all_); }

  /// The cut whose stages all together take the least time, with no bound above `most`; none: no cut fits.
  std::optional<CutOfTapes> best(double most) {
    const int blocks = kept_.all_blocks(), stages = kept_.stages;
    std::vector<std::vector<Way>> ways(stages + 1, std::vector<Way>(blocks + 1));
    ways[0][0] = {0, 0, 0};
    for (int stage = 0; stage < stages; ++stage)
      for (int first = stage; first < blocks; ++first) {
        const Way& before = ways[stage][first];
        if (before.time == never) continue;
        extend(stage, first, before, most, ways[stage + 1]);
      }
    if (ways[stages][blocks].time == never) return std::nullopt;
    CutOfTapes found;
    std::vector<TapeFate> fates(blocks, TapeFate::kept);
    for (int stage = stages, last = blocks; stage > 0; --stage) {
      const int first = ways[stage][last].first;
      const StageTapes& tapes = *tapes_of(stage - 1, first, last, beside_of(first, last));
      std::copy(tapes.fates.begin(), tapes.fates.end(), fates.begin() + first);
      if (stage > 1) found.cuts.insert(found.cuts.begin(), first);
      last = first;
    }
    found.choice = choice_of(fates, rules_);
    return found;
  }

 private:
  static constexpr double never = std::numeric_limits<double>::infinity();
  /// How the stages up to a block came about: their time together, what they copy, the first block of the
  /// last.
  struct Way {
    double time = never;
    std::int64_t copied = 0;
    int first = 0;
  };

  /// What a stage says of the step.
  double bound(const Way& before, double lasts) const { return before.time + kept_.micro_batches * lasts; }
  double lasting(int stage, double time) const {
    return kept_.slower.empty() ? time : time * kept_.slower[stage];
  }
  void add(Beside& beside, int first, int block) const {
    beside.units += units_[block].in_run_from(first);
    beside.workspace = std::max(beside.workspace, kept_.cost(block).workspace);
  }
  Beside beside_of(int first, int last) const {
    Beside beside;
    for (int block = first; block < last; ++block) add(beside, first, block);
    return beside;
  }

  /// Adds a stage that begins with a block to those before it, of every length.
  void extend(int stage, int first, const Way& before, double most, std::vector<Way>& ways) {
    Beside beside;
    double passes = 0;
    for (int last = first + 1; last <= kept_.all_blocks() - (kept_.stages - 1 - stage); ++last) {
      add(beside, first, last - 1);
      passes += static_cast<double>(kept_.cost(last - 1).passes());
      if (beside.bytes() > limit_ || bound(before, lasting(stage, passes)) > most) return;
      const StageTapes* tapes = tapes_of(stage, first, last, beside);
      if (tapes == nullptr) continue;
      const double lasts = lasting(stage, tapes->time);
      if (bound(before, lasts) > most) continue;
      const Way way{before.time + lasts, before.copied + tapes->copied, first};
      Way& known = ways[last];
      if (std::tie(way.time, way.copied) < std::tie(known.time, known.copied)) known = way;
    }
  }

  /// The tapes of blocks [first, last) on a stage: alike for runs of the same kinds of blocks. None: they do
  /// not fit.
  const StageTapes* tapes_of(int stage, int first, int last, const Beside& beside) {
    const std::int64_t left = limit_ - beside.bytes() - bytes_of_buffers(kept_, first, last);
    std::vector<int> kinds(kind_.begin() + first, kind_.begin() + last);
    kinds.push_back(last < kept_.all_blocks() ? kind_[last] : -1);  // what leaves
    const std::int64_t host = rules_.host_limits.empty() ? 0 : rules_.host_limits[stage];
    const auto [found, is_new] =
        known_.try_emplace(std::tuple(std::move(kinds), in_flight_[stage], left, host));
    if (is_new) {
      const BlocksInFlight run{first, last, in_flight_[stage]};
      found->second = choose_stage_tapes(kept_, again_, stage, {run}, left, rules_);
      if (found->second && found->second->bytes > left) found->second.reset();
    }
    return found->second ? &*found->second : nullptr;
  }

  const Outline &kept_, &again_;
  const std::vector<int>& in_flight_;
  const TapeRules& rules_;
  std::int64_t limit_, all_ = 0;
  std::vector<UnitBytes> units_;  ///< bytes of the units of each block
  std::vector<int> kind_;         ///< a number for each block: one where costs and choices are alike
  std::map<std::tuple<std::vector<int>, int, std::int64_t, std::int64_t>, std::optional<StageTapes>> known_;
};

}  // namespace

std::vector<CutOfTapes> cuts_of_tapes(const Outline& kept, const Outline& again,
                                      const std::vector<int>& in_flight, const TapeRules& rules,
                                      std::int64_t limit) {
  CutSearch search(kept, again, in_flight, rules, limit);
  double least = search.all_passes() * std::max(1.0, 1.0 * kept.micro_batches / kept.stages), most = least;
  // Stages take longest where they compute all blocks again and wait for slow copies.
  for (const double end = 1000 * most; !search.best(most); most *= 1.1) {
    if (most > end) return {};
    least = most;
  }
  while (most > close * least) {
    const double middle = (least + most) / 2;
    if (search.best(middle)) most = middle;
    else least = middle;
  }
  std::vector<CutOfTapes> cuts;
  for (const double length : lengths)
    if (auto cut = search.best(length * most); std::find(cuts.begin(), cuts.end(), *cut) == cuts.end())
      cuts.push_back(std::move(*cut));
  return cuts;
}

}  // namespace mindpipe
