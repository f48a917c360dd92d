#include "program/check/communications.h"

#include <fmt/core.h>

#include "core/give_way.h"

namespace mindpipe {
namespace {

void mix(std::uint64_t& hash, std::int64_t word) {
  hash = (hash ^ static_cast<std::uint64_t>(word)) * 0x9e3779b97f4a7c15u;
  hash ^= hash >> 32;
}

std::uint64_t number_of(std::span<const int> units) {
  std::uint64_t hash = 0;
  for (const int unit : units) mix(hash, unit + 1);
  return hash;
}

}  // namespace

bool Communication::is_met_by(const Action& action, int rank) const {
  const bool is_sum = to < 0;
  if (ticket != action.ticket || subnet != action.owner.number || micro_batch != action.micro_batch ||
      unit != action.unit || part != action.part || parts != action.parts || is_sum == is_message(action))
    return false;
  if (is_sum) return from == rank;
  return (rank == from) == sends(action) && action.peer == (rank == from ? to : from) &&
         payload == action.payload && bytes == action.bytes && units == number_of(action.units);
}

std::string Communication::text() const {
  std::string what = to < 0 ? fmt::format("the sum of unit {} over data", unit)
                            : fmt::format("the {} from rank {} to rank {}", payload, from, to);
  if (micro_batch >= 0) what += fmt::format(" of micro-batch {}", micro_batch);
  if (parts > 1) what += fmt::format(", part {} of {}", part + 1, parts);
  return what + fmt::format(" (of {}, ticket {})", subnet, ticket);
}

std::vector<Communication> Communications::add(std::span<const Task> starts) {
  newest_.clear();
  for (const Task& start : starts) {
    give_way();
    add(start);
  }
  return newest_;
}

void Communications::add(const Task& start) {
  mix(digest_, start.start);
  mix(digest_, start.end);
  Communication one{.from = start.rank, .subnet = start.owner.number};
  switch (start.kind) {
    case TaskKind::message:
      return message(start);
    case TaskKind::sum:
      one.unit = start.unit;
      return in_parts(one, {0, sum_over_data(outline_, start.unit).parts});
    case TaskKind::exchange:
      one.unit = start.unit;
      one.to = start.peer;
      one.payload = Payload::unit_gradient;
      return in_parts(one, exchange_of(outline_, start.unit));
    case TaskKind::move:
      one.to = start.peer;
      one.payload = Payload::unit_state;
      one.units = number_of(start.units);
      return in_parts(one, move_of(outline_, start.units));
    case TaskKind::forward:
    case TaskKind::backward:
    case TaskKind::backward_input:
    case TaskKind::backward_weight:
    case TaskKind::update:
    case TaskKind::gather:
    case TaskKind::scalars:
    case TaskKind::fetch:
    case TaskKind::evict:
    case TaskKind::stash:
    case TaskKind::unstash:
      return;
  }
}

void Communications::message(const Task& start) {
  for (const auto& [payload, bytes] : payloads_of(outline_.cuts[start.first], start.with_forward))
    if (bytes > 0)
      push({.from = start.rank,
            .to = start.peer,
            .payload = payload,
            .subnet = start.owner.number,
            .micro_batch = start.micro_batch,
            .bytes = bytes});
}

void Communications::in_parts(Communication whole, const Transfer& transfer) {
  whole.parts = transfer.parts;
  for (whole.part = 0; whole.part < transfer.parts; ++whole.part) {
    whole.bytes = transfer.of_part(whole.part, transfer.bytes);
    push(whole);
  }
}

void Communications::push(Communication one) {
  one.ticket = tickets_++;
  const auto pair = [](std::int64_t high, std::int64_t low) {
    return high << 32 | static_cast<std::uint32_t>(low);
  };
  mix(digest_, pair(one.from, one.to));
  mix(digest_, pair(static_cast<int>(one.payload) * 65536 + one.micro_batch, one.unit));
  mix(digest_, one.subnet);
  mix(digest_, pair(one.part, one.parts));
  mix(digest_, one.bytes ^ static_cast<std::int64_t>(one.units));
  newest_.push_back(one);
}

}  // namespace mindpipe
