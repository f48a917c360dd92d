#include <algorithm>
#include <map>
#include <set>

#include "program/check/checker_parts.h"

namespace mindpipe {
namespace {

/// Follows the units of one rank through its list: the gradient of every use is made, summed over data, and
/// exchanged with the unit's other homes; then the unit is updated once, and gathered.
class UpdateCheck : RankCheck {
 public:
  using RankCheck::RankCheck;

  void run() {
    for (; index_ < count(); ++index_) see(action());
    if (!outline_.training) return;
    if (scalars_.size() != 1) return missing("{} sums of scalars in a step (there is one)", scalars_.size());
    check_scalars();
    for (int unit : outline_.units_of_rank(rank_)) check_unit(unit);
    for (const auto& [unit, path] : units_)
      if (!is_home(unit)) wrong_at(std::max(path.update, path.gather), "unit {} does not live here", unit);
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

  /// Parts come one after the other, each once; `newest` is the one before, if there is one.
  void check_part(int newest) {
    const int due = newest < 0 ? 0 : list_[newest].part + 1;
    if (due >= action().parts) wrong("runs a second time");
    else if (action().part != due || (newest >= 0 && list_[newest].parts != action().parts))
      wrong("comes out of turn (part {} is due)", due + 1);
  }
  bool is_whole(int newest) const { return newest >= 0 && list_[newest].part + 1 == list_[newest].parts; }

  bool waits(int index, int earlier) const { return waits_for(list_[index], earlier); }
  bool is_home(int unit) const {
    const std::vector<int> homes = outline_.homes_of(unit);
    return std::binary_search(homes.begin(), homes.end(), rank_);
  }

  void see(const Action& action) {
    if (is_pass(action)) last_pass_ = index_;
    if (makes_gradients(action))
      for (const UnitUse& use : outline_.uses_in(action.first, action.last))
        uses_[use].last_backward = index_;
    if (action.payload == Payload::unit_gradient) return exchange(action);
    switch (action.kind) {
      case ActionKind::reduce:
        return reduce(action);
      case ActionKind::sum_scalar:
        scalars_.push_back(index_);
        return;
      case ActionKind::update:
        return update(action);
      case ActionKind::gather:
        return gather(action);
      case ActionKind::forward:
      case ActionKind::backward:
      case ActionKind::backward_input:
      case ActionKind::backward_weight:
      case ActionKind::send:
      case ActionKind::receive:
        return;
    }
  }

  void reduce(const Action& action) {
    UsePath& path = uses_[{action.unit, action.first}];
    check_part(path.reduce);
    if (path.last_backward < 0 || !waits(index_, path.last_backward))
      wrong("does not wait for the block's backward");
    path.reduce = index_;
  }

  void exchange(const Action& message) {
    UsePath& path = uses_[{message.unit, message.first}];
    exchanged_.push_back(index_);
    if (!sends(message)) path.arrived[message.part] = message.parts;
    else if (!is_whole(path.reduce) || !waits(index_, path.reduce))
      wrong("does not wait for its sum over data");
  }

  void update(const Action& action) {
    UnitPath& path = units_[action.unit];
    if (path.update >= 0) wrong("is updated a second time");
    if (scalars_.empty() || !waits(index_, scalars_.back())) wrong("does not wait for the scalars");
    path.update = index_;
  }

  void gather(const Action& action) {
    UnitPath& path = units_[action.unit];
    if (path.update < 0 || !waits(index_, path.update)) wrong("does not wait for the update");
    check_part(path.gather);
    path.gather = index_;
  }

  void check_scalars() {
    const int scalars = scalars_[0];
    if (!waits(scalars, last_pass_)) wrong_at(scalars, "does not wait for the last pass");
    for (int message : exchanged_)
      if (!waits(scalars, message))
        wrong_at(scalars, "does not wait for a unit's gradient from elsewhere (action {})", message);
  }

  void check_unit(int unit) {
    for (int block : outline_.units[unit].blocks) {
      const UsePath& path = uses_[{unit, block}];
      if (outline_.rank_of_block(block) == rank_) check_use({unit, block}, path);
      else if (path.arrived.empty() || static_cast<int>(path.arrived.size()) != path.arrived.begin()->second)
        missing("the gradient of unit {} in block {} never arrives from rank {}, or not all of it", unit,
                block, outline_.rank_of_block(block));
    }
    const UnitPath& path = units_[unit];
    if (path.update < 0) missing("unit {} is never updated", unit);
    if (outline_.sharded_optimizer && !is_whole(path.gather))
      missing("the values of unit {} are never gathered, or not all of them", unit);
  }

  void check_use(const UnitUse& use, const UsePath& path) {
    if (!is_whole(path.reduce))
      missing("the gradient of unit {} in block {} is never summed over data, or not all of it", use.unit,
              use.block);
    else if (path.reduce < path.last_backward)
      wrong_at(path.reduce, "comes before the block's last backward");
    else if (!waits(scalars_[0], path.reduce))
      wrong_at(scalars_[0], "does not wait for the sum of unit {} in block {}", use.unit, use.block);
  }

  std::map<UnitUse, UsePath> uses_;
  std::map<int, UnitPath> units_;
  std::vector<int> scalars_, exchanged_;
  int last_pass_ = -1;
};

}  // namespace

void check_updates(const Program& program, const Outline& outline, Findings& findings) {
  check_every_rank<UpdateCheck>(program, outline, findings);
}

}  // namespace mindpipe
