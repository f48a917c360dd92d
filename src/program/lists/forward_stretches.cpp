#include "program/lists/forward_stretches.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/check.h"
#include "program/check/checker.h"
#include "program/choice_parts.h"
#include "program/share_buffers.h"

namespace mindpipe {
namespace {

/// Buffers of each side: one is filled while the other is read.
constexpr int ring_depth = 2;

bool is_looped(const Outline& outline) {
  return outline.rank_of_chunk == looped_chunks(outline.stages, outline.chunks);
}

/// Micro-batches that go through one chunk of a rank before its next one; of a V, that go down and up again
/// before others begin.
int group_of(const Outline& outline) {
  if (!is_looped(outline)) return outline.micro_batches;
  return outline.chunks > 1 ? outline.stages : 1;
}

void grow(BoundaryBytes& buffer, const BoundaryBytes& cut) {
  buffer.activation = std::max(buffer.activation, cut.activation);
  buffer.encoder_output = std::max(buffer.encoder_output, cut.encoder_output);
}

/// The rings of a rank, those in which something arrives first, with what each has to hold.
std::vector<std::pair<RingKey, BoundaryBytes>> rings_with_bytes(const Outline& outline, int rank) {
  std::map<RingKey, BoundaryBytes> arriving, leaving;
  for (int chunk = 0; chunk < outline.all_chunks(); ++chunk) {
    if (outline.rank_of(chunk) != rank) continue;
    const auto other = [&](int next) { return outline.rank_of(next); };
    if (chunk > 0 && other(chunk - 1) != rank)
      grow(arriving[{other(chunk - 1), true, false}], outline.cuts[outline.first_block[chunk]]);
    if (chunk + 1 < outline.all_chunks())
      grow(leaving[{other(chunk + 1), true, true}], outline.cuts[outline.first_block[chunk + 1]]);
  }
  std::vector<std::pair<RingKey, BoundaryBytes>> rings(arriving.begin(), arriving.end());
  rings.insert(rings.end(), leaving.begin(), leaving.end());
  return rings;
}

}  // namespace

std::vector<BoundaryBytes> forward_buffers(const Outline& outline, int rank) {
  std::vector<BoundaryBytes> buffers;
  for (const auto& [key, bytes] : rings_with_bytes(outline, rank))
    buffers.resize(buffers.size() + ring_depth, bytes);
  return buffers;
}

Rings forward_rings(const Outline& outline, int rank) {
  Rings rings;
  int buffers = 0;
  for (const auto& [key, bytes] : rings_with_bytes(outline, rank))
    for (int k = 0; k < ring_depth; ++k) rings[key].push_back(buffers++);
  return rings;
}

ForwardStretches::ForwardStretches(const Outline& outline, const Network& network, const Rings& rings,
                                   int rank)
    : outline_(outline), prices_(outline, network), rank_(rank), writer_(outline, rank, rings) {
  MP_CHECK(is_looped(outline) ||
               (outline.chunks == 2 && outline.rank_of_chunk == v_shaped_chunks(outline.stages, 2)),
           "forwards of chunks that lie neither one after the other nor in a V");
  for (int chunk = 0; chunk < outline.all_chunks(); ++chunk)
    if (outline.rank_of(chunk) == rank) chunks_.push_back(chunk);
}

void ForwardStretches::add(const std::vector<std::uint8_t>& choice) {
  Batch& batch = batches_.emplace_back();
  for (const int chunk : chunks_) {
    PassWork& work = batch.works.emplace_back();
    for (int block = outline_.first_block[chunk]; block < outline_.first_block[chunk + 1]; ++block) {
      const auto add = [&](int candidate) {
        work.add(outline_.cost(block, candidate), traits_of_pass(ActionKind::forward));
      };
      if (choice.empty()) add(0);
      else for_candidates(outline_, choice, block, add);
    }
  }
  known_ += outline_.micro_batches;
}

bool ForwardStretches::is_whole() const { return known_ % group_of(outline_) == 0; }

ListStretch ForwardStretches::write(bool last) {
  const std::int64_t group = group_of(outline_);
  while (known_ - written_ >= group) write_group(group);
  if (last && known_ > written_) write_group(known_ - written_);
  for (; (first_ + 1) * outline_.micro_batches <= written_; ++first_) batches_.pop_front();
  return writer_.take();
}

void ForwardStretches::write_group(std::int64_t micro_batches) {
  if (is_looped(outline_)) write_loops(micro_batches);
  else write_v(micro_batches);
  written_ += micro_batches;
}

/// Goes through the group as if all forwards took the same time and messages none.
void ForwardStretches::write_loops(std::int64_t micro_batches) {
  const int stages = outline_.stages, group = group_of(outline_), loops = outline_.chunks;
  const auto runs_on = [&](int stage, int time, const auto& see) {
    const int turn = time - stage, micro_batch = turn % group;
    if (turn >= 0 && turn < loops * group && micro_batch < micro_batches)
      see(turn / group * stages + stage, written_ + micro_batch);
  };
  for (int time = 0; time < loops * group + stages - 1; ++time) {
    runs_on(rank_, time, [&](int chunk, std::int64_t micro_batch) { forward(chunk, micro_batch); });
    if (stages == 1) continue;
    // What leaves a later stage leaves first: it makes room for what comes.
    for (int stage = std::min(time, stages - 1); stage >= std::max(0, time - loops * group + 1); --stage)
      runs_on(stage, time, [&](int chunk, std::int64_t micro_batch) {
        if (chunk + 1 < outline_.all_chunks()) message(chunk, micro_batch);
      });
  }
}

/// Goes down and up again as if all forwards took the same time and messages none. A micro-batch begins at
/// every other time, so that the two chunks of a stage, an odd number of chunks apart, take turns.
void ForwardStretches::write_v(std::int64_t micro_batches) {
  const int chunks = outline_.all_chunks();
  const auto runs = [&](int chunk, std::int64_t time, const auto& see) {
    const std::int64_t since = time - chunk;
    if (since >= 0 && since % 2 == 0 && since / 2 < micro_batches) see(written_ + since / 2);
  };
  for (std::int64_t time = 0; time < 2 * (micro_batches - 1) + chunks; ++time) {
    for (const int chunk : chunks_)
      runs(chunk, time, [&](std::int64_t micro_batch) { forward(chunk, micro_batch); });
    for (int chunk = chunks - 1; chunk-- > 0;)
      if (outline_.rank_of(chunk) != outline_.rank_of(chunk + 1))
        runs(chunk, time, [&](std::int64_t micro_batch) { message(chunk, micro_batch); });
  }
}

Task ForwardStretches::task_at(TaskKind kind, int chunk, std::int64_t micro_batch) const {
  return {.kind = kind,
          .rank = outline_.rank_of(chunk),
          .owner = {Owner::batch, micro_batch / outline_.micro_batches},
          .chunk = chunk,
          .micro_batch = static_cast<int>(micro_batch % outline_.micro_batches)};
}

void ForwardStretches::forward(int chunk, std::int64_t micro_batch) {
  Task task = task_at(TaskKind::forward, chunk, micro_batch);
  task.first = outline_.first_block[chunk];
  task.last = outline_.first_block[chunk + 1];
  const auto place = std::find(chunks_.begin(), chunks_.end(), chunk) - chunks_.begin();
  const PassWork& work = batches_[static_cast<std::size_t>(task.owner.number - first_)].works[place];
  task.sums = work.sums;
  task.take(prices_.pass(rank_, work, false));
  writer_.add(task);
}

/// What a chunk leaves for the next one.
void ForwardStretches::message(int chunk, std::int64_t micro_batch) {
  Task task = task_at(TaskKind::message, chunk, micro_batch);
  task.peer = outline_.rank_of(chunk + 1);
  task.first = outline_.first_block[chunk + 1];
  task.take(prices_.message(task.rank, task.peer, outline_.cuts[task.first], true));
  writer_.add(task);
}

namespace {

/// The list of one rank through which so many batches go, in the buffers of these rings.
std::vector<Action> forwards_of(const Outline& outline, const Network& network, const Rings& rings, int rank,
                                int batches) {
  ForwardStretches list(outline, network, rings, rank);
  for (int batch = 0; batch < batches; ++batch) list.add({});
  return list.write(true).actions;
}

}  // namespace

Program forward_program(const Outline& outline, const Network& network, int batches) {
  Program program;
  for (int rank = 0; rank < outline.stages; ++rank)
    program.ranks.push_back(forwards_of(outline, network, forward_rings(outline, rank), rank, batches));
  return program;
}

PlannedForwards plan_forwards(const Outline& outline, const Network& network, const Placement* host) {
  require_few_actions(outline, 3.0 * outline.all_chunks() * outline.micro_batches);
  PlannedForwards one;
  one.network = network;
  set_calls(one.network.calls, outline);
  for (int rank = 0; rank < outline.stages; ++rank) {
    RankMemory& memory = one.placement.ranks.emplace_back();
    memory.arenas = 1;
    memory.buffers = forward_buffers(outline, rank);
    Rings& rings = one.rings.emplace_back(forward_rings(outline, rank));
    if (host != nullptr) share_buffers(rings, memory.buffers, host->ranks[rank].buffers);
    one.program.ranks.push_back(forwards_of(outline, network, rings, rank, 1));
  }
  one.expected = simulate(one.program, durations_of(one.program, outline, network), one.network);
  require_sound(check(one.program, outline));
  return one;
}

std::int64_t scores_in_flight(const Outline& outline, std::int64_t batches) {
  if (outline.stages == 1) return 1;
  // A group begins when the one before has gone through all chunks but the last: two are under way.
  const std::int64_t forwards = batches * outline.micro_batches,
                     under_way = std::int64_t{outline.stages} * (outline.chunks > 1 ? 2 : 1);
  return 1 + (under_way + forwards - 1) / forwards;
}

}  // namespace mindpipe
