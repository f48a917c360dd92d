#include "program/clock/prices.h"

#include <algorithm>

#include "program/unit_bytes.h"

namespace mindpipe {
namespace {

constexpr std::int64_t bytes_of_number = 8;
constexpr std::int64_t bytes_of_statistics_chunk = std::int64_t{4} * 16384;

}  // namespace

void PassWork::add(const BlockCost& cost, const PassTraits& traits) {
  blocks += cost.*traits.time;
  if (traits.sums != nullptr) sums += cost.*traits.sums;
}

std::int64_t PriceList::of(const Action& action, int rank) const {
  const int stage = outline_.stage_of_rank(rank);
  const auto travel = [&] { return network_.of(action, rank).time(action.bytes); };
  return by_shape(
      action.kind,
      [&](const PassTraits& traits) {
        const PassWork work = work_of(traits, action.first, action.last, action.clears);
        return pass(stage, work, action.clears).lasts;
      },
      [&](const UnitTraits&) { return outline_.lasting(stage, update_of_share(action.unit)); },
      [&](const CopyTraits& traits) {
        return traits.of == CopyTraits::unit ? copy(action.unit) : copy_of_segment(action.first);
      },
      [&](const MessageTraits&) { return travel(); },
      [&](const CollectiveTraits& collective) {
        if (collective.of == CollectiveTraits::step) return scalars(rank);
        return action.bytes > 0 ? travel() : 0;
      });
}

PassWork PriceList::work_of(const PassTraits& traits, int first, int last, bool clears) const {
  PassWork work;
  for (int block = first; block < last; ++block) work.add(outline_.cost(block), traits);
  if (!clears) return work;
  for (const UnitUse& use : outline_.uses_in(first, last)) work.clear += outline_.units[use.unit].clear;
  return work;
}

Price PriceList::pass(int stage, const PassWork& work, bool clears) const {
  const std::int64_t sums = tensor_time(outline_, network_, work.sums),
                     clear = clears && !outline_.prices_are_whole ? work.clear : 0,
                     lasts = outline_.lasting(stage, work.blocks + clear) + sums;
  return {lasts, tensor_meets_ ? network_.tensor_load(work.sums, lasts) : Load{}};
}

std::int64_t PriceList::update_of_share(int unit) const {
  const UnitCost& cost = outline_.units[unit];
  if (!outline_.sharded_optimizer || cost.gradients == 0) return cost.update;
  const double share = static_cast<double>(share_bytes(outline_, unit)) / static_cast<double>(cost.gradients);
  return std::llround(static_cast<double>(cost.update) * share);
}

void PriceList::add(UpdateWork& work, int unit) const {
  work.shares += update_of_share(unit);
  work.tensors += outline_.units[unit].tensors;
  ++work.units;
}

std::int64_t PriceList::update(int stage, const UpdateWork& work, bool has_loss) const {
  const std::int64_t shares = outline_.lasting(stage, work.shares);
  if (outline_.prices_are_whole) return shares;
  return shares + (work.units > 0 ? numbers(network_.tensor, outline_.tensor, work.tensors) : 0) +
         (has_loss ? numbers(network_.data, outline_.data, 1) : 0);
}

/// One after the other: the loss over data, the squares of chunks where data ranks have shares of them, the
/// squares of tensors, and both along the pipeline.
std::int64_t PriceList::scalars(int rank) const {
  std::int64_t chunks = 0, tensors = 0;
  for (const int unit : outline_.units_of_rank(outline_.stage_of_rank(rank)))
    chunks += (outline_.units[unit].gradients + bytes_of_statistics_chunk - 1) / bytes_of_statistics_chunk;
  for (const UnitCost& unit : outline_.units) tensors += unit.tensors;
  return numbers(network_.data, outline_.data, 1) +
         (outline_.sharded_optimizer ? numbers(network_.data, outline_.data, chunks) : 0) +
         numbers(network_.tensor, outline_.tensor, tensors) +
         numbers(network_.grid, outline_.stages, 1 + tensors);
}

Price PriceList::message(int from, int to, std::int64_t bytes) const {
  const Link& link = network_.link(from, to);
  const std::int64_t takes = link.carries(bytes);
  return {link.latency + takes,
          {takes, link.latency, link.level, network_.calls.of(TaskKind::message, bytes)}};
}

Price PriceList::message(int from, int to, const BoundaryBytes& cut, bool with_forward) const {
  Price both;
  int calls = 0;
  for (const auto& [payload, bytes] : payloads_of(cut, with_forward)) {
    if (bytes == 0) continue;
    const Price one = message(from, to, bytes);
    const std::int64_t takes = both.load.takes + one.load.takes;
    calls += one.load.calls;
    both = {one.load.latency + takes, {takes, one.load.latency, one.load.level, calls}};
  }
  return both;
}

Price PriceList::move(int from, int to, std::span<const int> units) const {
  const MoveByTable move = move_by_table(outline_, units);
  const Link& link = network_.link(from, to);
  const std::int64_t takes = move.time + link.carries(move.bytes);
  return {move_of(outline_, units).parts * link.latency + takes,
          {takes, link.latency, link.level, network_.calls.of_move}};
}

Price PriceList::over(const Link& link, const Transfer& transfer, int part, int calls) {
  if (transfer.bytes == 0) return {};
  Price price{0, {0, link.latency, link.level, calls}};
  const int first = std::max(part, 0), last = part == Task::all_parts ? transfer.parts : part + 1;
  for (int each = first; each < last; ++each)
    price.load.takes += link.carries(transfer.of_part(each, transfer.bytes));
  price.lasts = price.load.takes + (last - first) * link.latency;
  return price;
}

std::int64_t PriceList::numbers(const Link& link, int ranks, std::int64_t count) {
  return ranks > 1 ? link.time(2 * sent_in_group(ranks, count * bytes_of_number)) : 0;
}

}  // namespace mindpipe
