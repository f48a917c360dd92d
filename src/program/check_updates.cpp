#include <algorithm>
#include <map>
#include <set>

#include "program/checker_parts.h"

namespace mindpipe {
namespace {

/// Parts come one after the other, each once; `newest` is the one before, if there is one.
void check_part(const std::vector<Action>& list, int rank, int index, int newest, Findings& findings) {
  const Action& action = list[index];
  const int due = newest < 0 ? 0 : list[newest].part + 1;
  if (due >= action.parts) findings.add(rank, index, "runs a second time");
  else if (action.part != due || (newest >= 0 && list[newest].parts != action.parts))
    findings.add(rank, index, "comes out of turn (part {} is due)", due + 1);
}

bool is_whole(const std::vector<Action>& list, int newest) {
  return newest >= 0 && list[newest].part + 1 == list[newest].parts;
}

/// Follows the units of one rank through its list: the gradient of every use is made, summed over data, and
/// exchanged with the unit's other homes; then the unit is updated once, and gathered.
class UpdateChecker {
 public:
  UpdateChecker(const Program& program, const Outline& outline, int rank, Findings& findings)
      : list_(program.ranks[rank]), outline_(outline), rank_(rank), findings_(findings) {}

  void run() {
    for (int index = 0; index < static_cast<int>(list_.size()); ++index) see(index);
    if (scalars_.size() != 1)
      return findings_.add_for_rank(rank_, "{} sums of scalars in a step (there is one)", scalars_.size());
    check_scalars();
    if (!outline_.training) return;
    for (int unit : outline_.units_of_rank(rank_)) check_unit(unit);
    for (const auto& [unit, path] : units_)
      if (!is_home(unit))
        findings_.add(rank_, std::max(path.update, path.gather), "unit {} does not live here", unit);
  }

 private:
  /// Entries of the list that a use's gradient passes through; of parts the newest.
  struct UsePath {
    int last_backward = -1, reduce = -1;
    std::map<int, int> arrived;  ///< from elsewhere: parts, and how many there are
  };
  /// Entries of the list at which a unit is updated and gathered; of parts the newest.
  struct UnitPath {
    int update = -1, gather = -1;
  };

  bool waits(int index, int earlier) const { return waits_for(list_[index], earlier); }
  bool is_home(int unit) const {
    const std::vector<int> homes = outline_.homes_of(unit);
    return std::binary_search(homes.begin(), homes.end(), rank_);
  }

  void see(int index) {
    const Action& action = list_[index];
    if (is_pass(action)) last_pass_ = index;
    if (makes_gradients(action))
      for (const UnitUse& use : outline_.uses_in(action.first, action.last)) uses_[use].last_backward = index;
    if (action.payload == Payload::unit_gradient) return exchange(index);
    switch (action.kind) {
      case ActionKind::reduce:
        return reduce(index);
      case ActionKind::sum_scalar:
        scalars_.push_back(index);
        return;
      case ActionKind::update:
        return update(index);
      case ActionKind::gather:
        return gather(index);
      case ActionKind::forward:
      case ActionKind::backward:
      case ActionKind::backward_input:
      case ActionKind::backward_weight:
      case ActionKind::send:
      case ActionKind::receive:
        return;
    }
  }

  void reduce(int index) {
    UsePath& path = uses_[{list_[index].unit, list_[index].first}];
    check_part(list_, rank_, index, path.reduce, findings_);
    if (path.last_backward < 0 || !waits(index, path.last_backward))
      findings_.add(rank_, index, "does not wait for the block's backward");
    path.reduce = index;
  }

  void exchange(int index) {
    const Action& message = list_[index];
    UsePath& path = uses_[{message.unit, message.first}];
    exchanged_.push_back(index);
    if (message.kind == ActionKind::receive) path.arrived[message.part] = message.parts;
    else if (!is_whole(list_, path.reduce) || !waits(index, path.reduce))
      findings_.add(rank_, index, "does not wait for its sum over data");
  }

  void update(int index) {
    UnitPath& path = units_[list_[index].unit];
    if (path.update >= 0) findings_.add(rank_, index, "is updated a second time");
    if (scalars_.empty() || !waits(index, scalars_.back()))
      findings_.add(rank_, index, "does not wait for the scalars");
    path.update = index;
  }

  void gather(int index) {
    UnitPath& path = units_[list_[index].unit];
    if (path.update < 0 || !waits(index, path.update))
      findings_.add(rank_, index, "does not wait for the update");
    check_part(list_, rank_, index, path.gather, findings_);
    path.gather = index;
  }

  void check_scalars() {
    const int scalars = scalars_[0];
    if (!waits(scalars, last_pass_)) findings_.add(rank_, scalars, "does not wait for the last pass");
    for (int message : exchanged_)
      if (!waits(scalars, message))
        findings_.add(rank_, scalars, "does not wait for a unit's gradient from elsewhere (action {})",
                      message);
  }

  void check_unit(int unit) {
    for (int block : outline_.units[unit].blocks) {
      const UsePath& path = uses_[{unit, block}];
      if (outline_.rank_of_block(block) == rank_) check_use({unit, block}, path);
      else if (path.arrived.empty() || static_cast<int>(path.arrived.size()) != path.arrived.begin()->second)
        findings_.add_for_rank(
            rank_, "the gradient of unit {} in block {} never arrives from rank {}, or not all of it", unit,
            block, outline_.rank_of_block(block));
    }
    const UnitPath& path = units_[unit];
    if (path.update < 0) findings_.add_for_rank(rank_, "unit {} is never updated", unit);
    if (outline_.sharded_optimizer && !is_whole(list_, path.gather))
      findings_.add_for_rank(rank_, "the values of unit {} are never gathered, or not all of them", unit);
  }

  void check_use(const UnitUse& use, const UsePath& path) {
    if (!is_whole(list_, path.reduce))
      findings_.add_for_rank(
          rank_, "the gradient of unit {} in block {} is never summed over data, or not all of it", use.unit,
          use.block);
    else if (path.reduce < path.last_backward)
      findings_.add(rank_, path.reduce, "comes before the block's last backward");
    else if (!waits(scalars_[0], path.reduce))
      findings_.add(rank_, scalars_[0], "does not wait for the sum of unit {} in block {}", use.unit,
                    use.block);
  }

  const std::vector<Action>& list_;
  const Outline& outline_;
  int rank_;
  Findings& findings_;
  std::map<UnitUse, UsePath> uses_;
  std::map<int, UnitPath> units_;
  std::vector<int> scalars_, exchanged_;
  int last_pass_ = -1;
};

}  // namespace

void check_updates(const Program& program, const Outline& outline, Findings& findings) {
  for (int rank = 0; rank < static_cast<int>(program.ranks.size()); ++rank)
    UpdateChecker(program, outline, rank, findings).run();
}

}  // namespace mindpipe
