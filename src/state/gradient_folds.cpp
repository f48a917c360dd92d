#include "state/gradient_folds.h"

#include <algorithm>

#include "comm/fault_points.h"
#include "core/sum_lists.h"

namespace mindpipe {

GradientFolds::GradientFolds(Stage& stage, Communicator& tensor)
    : stage_(stage),
      tensor_(tensor),
      alone_(stage.context().backend, stage.layout().tensor_shards),
      over_data_(stage.layout().data_tree()) {}

void GradientFolds::clear(const UnitUse& cleared) {
  if (is_left_out("gradients", "clear")) return;
  Unit& unit = stage_.unit(cleared.unit);
  const int use = stage_.use_of(cleared);
  Backend& backend = stage_.context().backend;
  if (!backend.wants_many_rows()) return backend.fill({unit.gradients().accumulators(use), 0});
  zero(unit, use, unit.gradients().accumulators(use).count(), [](int) { return true; });
}

template <class IsMade>
void GradientFolds::zero(Unit& unit, int use, std::int64_t end, const IsMade& is_made) {
  Backend& backend = stage_.context().backend;
  std::vector<FlatSpan> spans;
  const auto add = [&](std::int64_t first, std::int64_t behind) {
    if (first == behind) return;
    if (!spans.empty() && spans.back().first + spans.back().count == first)
      spans.back().count = behind - spans.back().first;  // what lies side by side is zeroed together
    else spans.push_back({first, behind - first});
  };
  for (int p = 0; p < static_cast<int>(unit.params().size()); ++p) {
    if (!is_made(p)) continue;
    if (backend.wants_many_rows() && is_of_products(unit, p, use)) unit.gradients().expect_products(p, use);
    else add(unit.flat_offset(p, 0), unit.flat_offset(p, unit.local_shards(p)));
  }
  add(unit.flat_count(), end);
  if (!spans.empty()) backend.fill_of_spans({unit.gradients().accumulators(use), 0, spans});
}

std::size_t GradientFolds::zeros_bytes(const Unit& unit) const {
  std::size_t bytes = 0;
  for (int p = 0; p < static_cast<int>(unit.params().size()); ++p)
    if (unit.params()[p].form == Form::positions && splits_sequence())
      bytes = std::max(
          bytes, bytes_for({tensor_.local_shards(), unit.shard_shape(p).count()}, unit.gradients().dtype()));
  return bytes;
}

void GradientFolds::combine_sequence(Unit& unit, int use) {
  const LayerContext& context = stage_.context();
  const bool cut = splits_sequence();
  for (int p = 0; p < static_cast<int>(unit.params().size()); ++p) {
    const Form form = unit.params()[p].form;
    const bool by_shards = form == Form::shards, in_parts = unit.gradients().has_sequence_parts(p),
               on_ranks = by_shards ? tensor_.size() > 1 : cut && form != Form::whole;
    if ((!in_parts && !on_ranks) || is_left_out("gradients", "combine_sequence")) continue;
    const std::int64_t elements = unit.shard_shape(p).count();
    const Tensor root = unit.gradients().root(use).range(unit.flat_offset(p, 0), elements);
    if (in_parts) {
      (cut || by_shards ? tensor_ : alone_).sum(unit.gradients().sequence_parts(p, use), root);
    } else if (form == Form::rows || by_shards) {
      tensor_.sum(root.reshaped({1, elements}), root);
    } else {
      // Every row has one T-th that adds to it; the others give zeros, which no sum rounds.
      const int local = tensor_.local_shards();
      const Tensor shards{
          zeros_.take(context.backend.memory(), zeros_bytes(unit)), {local, elements}, root.dtype};
      context.backend.fill({shards, 0});
      context.backend.copy(root, shards.range(0, elements));
      tensor_.sum(shards, root);
    }
  }
}

/// The open sums of the binary counter are the levels, and the newest is the root.
bool GradientFolds::count_shard(Unit& unit, int use, int shard, std::int64_t first, std::int64_t elements) {
  Backend& backend = stage_.context().backend;
  const Tensor root = unit.gradients().root(use).range(first, elements);
  const auto level_at = [&](int level) { return unit.gradients().level(level, use).range(first, elements); };
  const CounterStep step = counter_step(over_data_, shard);
  for (int level = step.open; level-- > step.last;)
    if (!is_left_out("gradients", "fold")) backend.add({level_at(level), root, root});
  if (step.moves_to >= 0) backend.copy(root, level_at(step.moves_to));
  return step.moves_to >= 0;
}

/// Spoils the first element of a parameter's gradient. What all tensor ranks hold alike is looked at on the
/// first of them alone, so elsewhere it stays as it is.
bool GradientFolds::spoil(const Unit& unit, int use, int param) {
  const ParamSpec& spec = unit.params()[param];
  if (spec.split == Split::none && tensor_.rank() != 0) return false;
  stage_.context().backend.fill({unit.gradients().root(use).range(unit.flat_offset(param, 0), 1), *spoils_});
  return true;
}

void GradientFolds::fold(const UnitUse& folded, int shard, MadeGradients made) {
  Unit& unit = stage_.unit(folded.unit);
  const int use = stage_.use_of(folded), params = static_cast<int>(unit.params().size());
  if (made != MadeGradients::later) combine_sequence(unit, use);
  const auto is_made = [&](int p) {
    return made == MadeGradients::all || unit.params()[p].product == (made == MadeGradients::later);
  };
  for (int p = 0; p < params && squares_ != nullptr; ++p)
    if (is_made(p)) squares_->add(folded, p, shard);
  for (int p = 0; p < params && spoils_; ++p)
    if (is_made(p) && spoil(unit, use, p)) spoils_.reset();
  bool moved = made == MadeGradients::all && count_shard(unit, use, shard, 0, unit.flat_count());
  for (int p = 0; p < params && made != MadeGradients::all; ++p)
    if (is_made(p))
      moved = count_shard(unit, use, shard, unit.flat_offset(p, 0),
                          unit.flat_offset(p, unit.local_shards(p)) - unit.flat_offset(p, 0));
  if (moved) zero(unit, use, unit.flat_count(), is_made);
  if (made == MadeGradients::later || shard + 1 == stage_.layout().local_data_shards()) return;
  for (int p = 0; p < params; ++p)
    if (unit.gradients().has_sequence_parts(p))
      stage_.context().backend.fill({unit.gradients().sequence_parts(p, use), 0});
}

}  // namespace mindpipe
