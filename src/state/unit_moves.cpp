#include "state/unit_moves.h"

#include <algorithm>

#include "comm/fault_points.h"
#include "state/residency.h"

namespace mindpipe {
namespace {

Tensor as_bytes(const Tensor& tensor) {
  return {tensor.data, {static_cast<std::int64_t>(tensor.bytes())}, DType::u8};
}

/// The part of a unit's newest values that this rank updates.
Tensor own_values(Residency& residency, int unit) {
  const UnitShare& own = residency.shares().of(unit).flat();
  return residency.values().newest(unit).range(own.begin(), own.count());
}

}  // namespace

std::size_t UnitMoves::bytes(const Stage& stage) {
  return bytes_for({std::ssize(stage.local_units())}, DType::f64);
}

void UnitMoves::keep_versions(const std::vector<int>& units) {
  arena_ = Arena();
  places_.clear();
  if (units.empty()) return;
  arena_ = Arena(stage_.context().backend.memory(), MemoryClass::boundary,
                 bytes_for({std::ssize(units)}, DType::f64));
  versions_ = arena_.take({std::ssize(units)}, DType::f64);
  for (const int unit : units) places_.emplace(unit, std::ssize(places_));
}

void UnitMoves::allocate(const std::vector<Action>& list) {
  buffers_.clear();
  channels_.clear();
  std::vector<int> units;
  const auto is_first_part = [](const Action& action) { return is_move(action) && action.part == 0; };
  for (const Action& action : list)
    if (is_first_part(action)) units.insert(units.end(), action.units.begin(), action.units.end());
  keep_versions(units);
  for (const Action& action : list) {
    if (!is_first_part(action)) continue;
    channels_.emplace(std::pair(action.peer, sends(action)), static_cast<int>(buffers_.size()));
    const std::int64_t longest = (bytes_of(action.units) + action.parts - 1) / action.parts;
    buffers_.emplace_back(stage_.context().backend.memory(), MemoryClass::boundary,
                          static_cast<std::size_t>(longest));
  }
}

void UnitMoves::allocate(int channels, std::size_t most) {
  if (channels == 0) return;
  Memory& memory = stage_.context().backend.memory();
  keep_versions(stage_.local_units());
  for (int i = 0; i < channels; ++i) buffers_.emplace_back(memory, MemoryClass::boundary, most);
}

std::vector<UnitMoves::Piece> UnitMoves::pieces_of(int unit) const {
  const UnitOptimizer& optimizer = residency_.shares().of(unit);
  std::vector<Piece> pieces{{"version", as_bytes(version_of(unit))}};
  const Decisions& decisions = *residency_.decisions();
  if (!decisions.is_of_step())  // a step counts for all
    pieces.push_back({"applied", as_bytes(decisions.of(unit).range(Decision::applied_steps, 1))});
  if (stage_.unit(unit).dtype() == DType::f32)
    pieces.push_back({"master", as_bytes(own_values(residency_, unit))});
  for (const auto& [name, slot] : optimizer.states())
    pieces.push_back({name == "master" ? "master" : "moment", as_bytes(slot)});
  return pieces;
}

std::int64_t UnitMoves::bytes_of(const std::vector<int>& units) const {
  std::int64_t all = 0;
  for (const int unit : units)
    for (const Piece& piece : pieces_of(unit)) all += piece.bytes.count();
  return all;
}

template <class See>
void UnitMoves::for_pieces(const Action& move, const See& see) {
  const auto [begin, end] = bytes_of_part(move);
  std::int64_t place = 0;
  for (const int unit : move.units)
    for (const Piece& piece : pieces_of(unit)) {
      const std::int64_t count = piece.bytes.count(), first = std::max(begin, place),
                         last = std::min(end, place + count);
      if (first < last) see(piece, piece.bytes.range(first - place, last - first), first - begin);
      place += count;
    }
}

/// A list has the bytes of the largest share; where shares differ, each part is as long as this rank's.
std::pair<std::int64_t, std::int64_t> UnitMoves::bytes_of_part(const Action& move) const {
  const std::int64_t all = bytes_of(move.units), begin = all * move.part / move.parts,
                     end = all * (move.part + 1) / move.parts;
  MP_CHECK(residency_.shares().is_sharded() || end - begin == move.bytes,
           "a part of a move has {} bytes, and {} are planned", end - begin, move.bytes);
  return {begin, end};
}

/// Messages of a channel follow each other, so that one buffer serves them all.
Tensor UnitMoves::buffer_of(const Action& move) {
  const auto [channel, is_new] =
      channels_.try_emplace({move.peer, sends(move)}, static_cast<int>(channels_.size()));
  MP_CHECK(channel->second < static_cast<int>(buffers_.size()), "moves on {} channels, where {} have room",
           channels_.size(), buffers_.size());
  Arena& buffer = buffers_[channel->second];
  buffer.release(0);
  const auto [begin, end] = bytes_of_part(move);
  return buffer.take({end - begin}, DType::u8);
}

void UnitMoves::count(const Action& move) {
  const bool goes_home = move.owner.of == Owner::drain;
  if (!goes_home && move.part == 0) ++sent_.messages;
  (goes_home ? sent_.home : sent_.bytes) += move.bytes;
}

Tensor UnitMoves::part_of(const Action& move) {
  const Tensor part = buffer_of(move);
  Backend& backend = stage_.context().backend;
  if (sends(move)) count(move);
  if (!sends(move) || backend.memory().kind() == Memory::Kind::counted) return part;
  if (move.part == 0)
    for (const int unit : move.units) {
      const auto version = static_cast<double>(residency_.values().version(unit));
      backend.upload(&version, version_of(unit));
    }
  for_pieces(move, [&](const Piece&, const Tensor& state, std::int64_t place) {
    backend.copy(state, part.range(place, state.count()));
  });
  return part;
}

void UnitMoves::arrived(const Action& move) {
  Backend& backend = stage_.context().backend;
  if (backend.memory().kind() == Memory::Kind::counted) return;
  const Tensor part = buffer_of(move);
  bool leaves_out = false;
  for_pieces(move, [&](const Piece& piece, const Tensor& state, std::int64_t place) {
    const bool begins_unit = piece.name == "version";
    if (begins_unit) leaves_out = is_left_out("moves", "unit");
    if ((leaves_out && !begins_unit) || is_left_out("moves", piece.name)) return;
    backend.copy(part.range(place, state.count()), state);
  });
  if (move.part + 1 < move.parts) return;
  for (const int number : move.units) {
    UnitOptimizer& optimizer = residency_.shares().of(number);
    optimizer.moments_have_arrived();
    if (stage_.unit(number).dtype() == DType::bf16 && optimizer.end() > optimizer.begin())
      backend.convert({optimizer.states().front().second, own_values(residency_, number)});
  }
}

}  // namespace mindpipe
