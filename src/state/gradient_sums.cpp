#include "state/gradient_sums.h"

#include "core/sum_lists.h"

namespace mindpipe {

GradientSums::GradientSums(Stage& stage, Residency& residency, Communicator& data)
    : stage_(stage), residency_(residency), data_(data), roots_(stage.layout().data_tree().roots().size()) {}

std::vector<Tensor> GradientSums::pieces_of(int unit, const Tensor& flat, int part, int parts) const {
  const int ranks = data_.size();
  const auto cuts = share_edges(stage_.unit(unit), ranks * parts);
  std::vector<Tensor> pieces;
  for (int r = 0; r < ranks; ++r) {
    const int piece = piece_of(r, part, parts);
    pieces.push_back(flat.range(cuts[piece], cuts[piece + 1] - cuts[piece]));
  }
  return pieces;
}

Reductions::Request GradientSums::reduce(Reductions& over_data, const UnitUse& use, int part, int parts,
                                         bool moves_out) {
  std::vector<Tensor> pieces = pieces_of(use.unit, accumulator_of(use), part, parts);
  std::vector<std::vector<Tensor>> earlier;
  for (int level = 0; level + 1 < static_cast<int>(roots_); ++level)
    earlier.push_back(
        pieces_of(use.unit, stage_.unit(use.unit).gradients().level(level, stage_.use_of(use)), part, parts));
  if (!residency_.shares().is_sharded()) return over_data.sum(std::move(pieces), std::move(earlier));
  const auto cuts = share_edges(stage_.unit(use.unit), data_.size() * parts);
  const std::int64_t* own = &cuts[piece_of(data_.rank(), 0, parts)];
  const UnitOptimizer& optimizer = residency_.shares().of(use.unit);
  const Tensor place =
      moves_out ? optimizer.gradient_share(stage_.use_of(use))
                : accumulator_of(use).range(optimizer.begin(), optimizer.end() - optimizer.begin());
  return over_data.sum_scatter(std::move(pieces), place.range(own[part] - own[0], own[part + 1] - own[part]),
                               std::move(earlier));
}

Reductions::Request GradientSums::gather(Reductions& over_data, int unit, int part, int parts) {
  if (part + 1 == parts) residency_.whole().gathered(unit);
  return over_data.gather(pieces_of(unit, stage_.unit(unit).flat_values(), part, parts));
}

void GradientSums::settle(Reductions& over_data) {
  for (const int unit : stage_.local_units()) {
    if (residency_.whole().has(unit)) continue;
    const Reductions::Request request = gather(over_data, unit, 0, 1);
    over_data.wait(request);
    over_data.take_end(request);
  }
}

std::int64_t GradientSums::sent_by_reduce(const UnitUse& use, int part, int parts) const {
  const std::vector<Tensor> pieces = pieces_of(use.unit, accumulator_of(use), part, parts);
  const int own = data_.rank(), ranks = data_.size();
  std::size_t sent =
      residency_.shares().is_sharded() ? 0 : pieces[own].bytes() * static_cast<std::size_t>(ranks - 1);
  for (int peer = 0; peer < ranks; ++peer)
    if (peer != own) sent += roots_ * pieces[peer].bytes();
  return static_cast<std::int64_t>(sent);
}

std::int64_t GradientSums::sent_by_gather(int unit, int part, int parts) const {
  const std::vector<Tensor> pieces = pieces_of(unit, stage_.unit(unit).flat_values(), part, parts);
  return static_cast<std::int64_t>(pieces[data_.rank()].bytes()) * (data_.size() - 1);
}

Tensor GradientSums::exchanged_part(const UnitUse& use, int part, int parts) const {
  return part_of(residency_.shares().of(use.unit).gradient_share(stage_.use_of(use)), part, parts);
}

}  // namespace mindpipe
