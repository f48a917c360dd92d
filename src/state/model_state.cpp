#include "state/model_state.h"

#include <algorithm>
#include <cstring>

#include "state/initial_values.h"
#include "state/state_reader.h"

namespace mindpipe {
namespace {

std::vector<std::int64_t> integers_of(const Sha256::Digest& digest) { return {digest.begin(), digest.end()}; }

/// Fails where the ranks of a group come with different digests.
void require_alike(Communicator& group, const std::vector<std::int64_t>& digest) {
  std::vector<std::int64_t> sums = digest;
  group.sum_integers(sums, TrafficClass::files);
  for (std::size_t i = 0; i < sums.size(); ++i)
    MP_CHECK(sums[i] == digest[i] * group.size(),
             "the ranks of the {} axis hold different copies of the same weights", name_of(group.axis()));
}

/// Runs that follow each other, in the flat order and in the tensor as it is stored, as one.
std::vector<ElementRun> joined(const std::vector<ElementRun>& runs, const WholeTensor& tensor) {
  std::vector<ElementRun> joined;
  for (const ElementRun& run : runs) {
    const bool goes_on = !joined.empty() && joined.back().flat + joined.back().count == run.flat &&
                         stored_at(tensor, joined.back().row, joined.back().column) + joined.back().count ==
                             stored_at(tensor, run.row, run.column);
    if (goes_on) joined.back().count += run.count;
    else joined.push_back(run);
  }
  return joined;
}

using PiecePlaces = std::vector<std::pair<const WholeTensor*, StackedPiece>>;

/// Elements of these pieces that are here.
std::int64_t count_of(const Unit& unit, const PiecePlaces& places) {
  std::int64_t count = 0;
  for (const auto& [tensor, piece] : places) count += count_of(runs_of(unit, piece, {0, unit.flat_count()}));
  return count;
}

/// Elements of all pieces of a unit that are here.
std::int64_t count_of(const Unit& unit) {
  PiecePlaces all;
  for (int p = 0; p < static_cast<int>(unit.params().size()); ++p)
    for (int i = 0; i < static_cast<int>(unit.params()[p].pieces.size()); ++i)
      all.push_back({nullptr, {.param = p, .piece = i}});
  return count_of(unit, all);
}

}  // namespace

ModelState::ModelState(std::uint64_t seed, Stage& stage, Residency& residency, Groups groups, Arena& scratch,
                       std::size_t staging_bytes)
    : seed_(seed),
      stage_(stage),
      residency_(residency),
      groups_(groups),
      scratch_(scratch),
      staging_bytes_(staging_bytes) {}

/// Whether this rank gives what it has of the piece: one stage of those that have the unit, one rank of those
/// that have all of it.
bool ModelState::gives(const StackedPiece& piece) {
  if (!residency_.shares().has(piece.unit) || !stage_.counts_here(piece.unit)) return false;
  return stage_.unit(piece.unit).params()[piece.param].split != Split::none || groups_.tensor.rank() == 0;
}

/// The words of all ranks: each puts in those it gives, zeros elsewhere; the sum, two words at a time, is
/// exact whatever they mean.
void ModelState::gather(std::string_view state, const std::vector<WholeTensor>& tensors,
                        const TakeWords& take) {
  std::vector<Communicator*> groups{&groups_.tensor, &groups_.pipeline};
  // Values are whole on every data rank; the optimizer's states may be in parts, each on one rank.
  if (state != "value" && residency_.shares().is_sharded()) groups.push_back(&groups_.data);
  int ranks = 1;
  for (Communicator* group : groups) ranks = std::max(ranks, group->size());

  StagingBuffer buffer = staging();
  auto* words = buffer.host<std::byte>();
  // What arrives in a sum takes as much room as what is summed, and an alignment for each rank.
  const std::size_t bytes =
      ranks == 1 ? buffer.bytes() : (buffer.bytes() - static_cast<std::size_t>(ranks) * alignment) / 2;
  const auto most = static_cast<std::int64_t>(bytes / 8 * 2);
  std::byte* arriving = words + aligned(static_cast<std::size_t>(most) * 4);
  StateReader reader(backend(), residency_, state);
  std::int64_t filled = 0;
  const auto pass = [&] {
    std::memset(words + filled * 4, 0, filled % 2 * 4);
    const std::span pairs(reinterpret_cast<std::int64_t*>(words), static_cast<std::size_t>((filled + 1) / 2));
    for (Communicator* group : groups) group->sum_integers(pairs, TrafficClass::files, arriving);
    take(words, static_cast<std::size_t>(filled) * 4);
    filled = 0;
  };
  for (const WholeTensor& tensor : tensors)
    for (Elements stored; stored.first < tensor.count(); stored.first = stored.end) {
      stored.end = std::min(tensor.count(), stored.first + most - filled);
      std::byte* to = words + filled * 4;
      std::memset(to, 0, static_cast<std::size_t>(stored.count()) * 4);
      for (const StackedPiece& piece : tensor.pieces)
        if (gives(piece))
          for (const ElementRun& run : stored_runs_of(stage_.unit(piece.unit), piece, tensor, stored))
            reader.read(piece.unit, run.flat, run.count,
                        to + (stored_at(tensor, run.row, run.column) - stored.first) * 4,
                        stored_step(tensor));
      filled += stored.count();
      if (filled == most) pass();
    }
  if (filled > 0) pass();
}

/// Sets states of a unit to what `give` says, as much at a time as the staging buffer takes.
void ModelState::fill(int index, States states, StagingBuffer& staging, const GiveElements& give) {
  Unit& unit = stage_.unit(index);
  UnitOptimizer& optimizer = residency_.shares().of(index);
  const auto includes = [&](std::string_view state) {
    return std::find(states.begin(), states.end(), state) != states.end();
  };
  const bool with_older = includes(older_state), with_values = includes("value") || with_older;
  Elements kept{0, unit.flat_count()};
  if (!with_values) kept = {optimizer.begin(), optimizer.end()};
  for (Elements flat{kept.first, 0}; flat.first < kept.end; flat.first = flat.end) {
    flat.end = std::min(kept.end, flat.first + staging.most_floats());
    give(flat, staging.host<float>());
    const Tensor given = staging.floats(flat.count());
    const Tensor values =
        with_values
            ? residency_.newest(index, with_older ? older_state : "value").range(flat.first, flat.count())
            : Tensor{};
    if (with_values && unit.dtype() == DType::f32) backend().copy(given, values);
    else if (with_values) backend().convert({given, values});
    for (const std::string_view state : states) optimizer.write(backend(), state, flat.first, given);
  }
  backend().synchronize();
}

void ModelState::load(States states, const std::vector<WholeTensor>& tensors, const ReadElements& read) {
  StagingBuffer buffer = staging();
  for (int index : stage_.local_units()) {
    const Unit& unit = stage_.unit(index);
    PiecePlaces places;
    for (const WholeTensor& tensor : tensors)
      for (const StackedPiece& piece : tensor.pieces)
        if (piece.unit == index) places.emplace_back(&tensor, piece);
    if (places.empty()) continue;
    const bool draws_rest = states.size() > 1 && count_of(unit, places) < count_of(unit);
    fill(index, states, buffer, [&](Elements flat, float* to) {
      if (draws_rest) initial_values(unit, seed_, 1, flat, to);
      else std::fill_n(to, flat.count(), 0.0f);
      for (const auto& [tensor, piece] : places)
        for (const ElementRun& run :
             tensor->transposed ? runs_of(unit, piece, flat) : joined(runs_of(unit, piece, flat), *tensor))
          read(*tensor, stored_at(*tensor, run.row, run.column), stored_step(*tensor), run.count,
               to + (run.flat - flat.first));
    });
  }
}

void ModelState::load(std::string_view state, const std::vector<WholeTensor>& tensors,
                      const ReadElements& read) {
  const std::vector<std::string_view>& states = residency_.state_names();
  MP_CHECK(state == older_state || std::find(states.begin(), states.end(), state) != states.end(),
           "this run keeps no slot '{}'", state);
  load(States{state}, tensors, read);
}

void ModelState::clear_moments() {
  for (int unit : stage_.local_units()) residency_.shares().of(unit).clear_moments(backend());
  backend().synchronize();
}

void ModelState::initialize(int threads) {
  if (backend().memory().kind() == Memory::Kind::counted) return;
  StagingBuffer buffer = staging();
  for (int index : stage_.local_units())
    fill(index, {"value", "master"}, buffer,
         [&](Elements flat, float* to) { initial_values(stage_.unit(index), seed_, threads, flat, to); });
  clear_moments();
}

void ModelState::gather_weights(const TakeWords& take) {
  gather(state_of_weights(residency_.state_names()), tensors_for_files(stage_.model()), take);
}

void ModelState::load_weights(const ReadElements& read) {
  load_weights(tensors_for_files(stage_.model()), read);
  clear_moments();
}

std::vector<CheckpointUnit> ModelState::unit_counters() {
  std::vector<CheckpointUnit> counters;
  std::vector<std::int64_t> numbers;
  const Decisions* counts = counts_of_units();
  for (int u = 0; u < static_cast<int>(stage_.model().units().size()); ++u) {
    const Unit& unit = stage_.unit(u);
    const bool is_here = stage_.counts_here(u);
    counters.push_back({unit.name(), 0, unit.uses()});
    numbers.push_back(is_here ? residency_.values().version(u) : 0);
    numbers.push_back(is_here && counts != nullptr ? counts->applied(u) : 0);
  }
  groups_.pipeline.sum_integers(numbers, TrafficClass::files);
  for (std::size_t u = 0; u < counters.size(); ++u) {
    counters[u].version = numbers[2 * u];
    counters[u].applied = numbers[2 * u + 1];
  }
  return counters;
}

void ModelState::set_unit_counters(const std::vector<CheckpointUnit>& counters) {
  for (std::size_t u = 0; u < counters.size(); ++u)
    residency_.values().set_version(static_cast<int>(u), counters[u].version);
  Decisions* counts = counts_of_units();
  for (const int unit : stage_.local_units())
    if (counts != nullptr) counts->set_applied(unit, counters[unit].applied);
}

std::int64_t ModelState::applied_steps() { return residency_.decisions()->applied(all_units); }

void ModelState::set_applied_steps(std::int64_t count) {
  if (Decisions* decisions = residency_.decisions(); decisions != nullptr && decisions->is_of_step())
    decisions->set_applied(all_units, count);
}

/// Digest of all states of the parameters that no rank of the tensor group has alone: one rank gives them to
/// all, so the others' are in no other digest.
Sha256::Digest ModelState::digest_of_copies(const std::vector<std::string_view>& states) {
  StagingBuffer buffer = staging();
  auto* words = buffer.host<std::byte>();
  Sha256 sha;
  for (const std::string_view state : states) {
    StateReader reader(backend(), residency_, state);
    for (int u : stage_.local_units()) {
      const Unit& unit = stage_.unit(u);
      for (int p = 0; p < static_cast<int>(unit.params().size()); ++p) {
        const std::int64_t all = unit.params()[p].split == Split::none ? unit.shard_shape(p).count() : 0;
        for (std::int64_t first = 0; first < all; first += buffer.most_floats()) {
          const std::int64_t count = std::min(buffer.most_floats(), all - first);
          std::memset(words, 0, static_cast<std::size_t>(count) * 4);
          reader.read(u, unit.flat_offset(p, 0) + first, count, words);
          sha.add(words, static_cast<std::size_t>(count) * 4);
        }
      }
    }
  }
  return sha.end();
}

Sha256::Digest ModelState::digest(std::string_view values) {
  std::vector<std::string_view> states = residency_.state_names();
  states.front() = values;
  const bool digests = groups_.tensor.rank() == 0 && groups_.pipeline.rank() == 0;
  Sha256 sha;
  for (const std::string_view state : states)
    gather(state, tensors_of_pieces(stage_.model(), is_moment(state)),
           [&](const std::byte* words, std::size_t bytes) {
             if (digests) sha.add(words, bytes);
           });
  std::vector<std::int64_t> digest = integers_of(digests ? sha.end() : Sha256::Digest{});
  groups_.tensor.sum_integers(digest, TrafficClass::files);
  groups_.pipeline.sum_integers(digest, TrafficClass::files);
  require_alike(groups_.tensor, integers_of(digest_of_copies(states)));
  require_alike(groups_.data, digest);
  Sha256::Digest all;
  std::copy(digest.begin(), digest.end(), all.begin());
  return all;
}

}  // namespace mindpipe
