#include "program/lists/forward_stretches.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "core/check.h"
#include "program/check/checker.h"

namespace mindpipe {
namespace {

/// Buffers of each side: one is filled while the other is read.
constexpr int ring_depth = 2;

/// Micro-batches that go through one chunk of a rank before its next one.
int group_of(const Outline& outline) { return outline.chunks > 1 ? outline.stages : 1; }

void grow(BoundaryBytes& buffer, const BoundaryBytes& cut) {
  buffer.activation = std::max(buffer.activation, cut.activation);
  buffer.encoder_output = std::max(buffer.encoder_output, cut.encoder_output);
}

}  // namespace

std::vector<BoundaryBytes> forward_buffers(const Outline& outline, int rank) {
  BoundaryBytes arriving, leaving;
  for (int chunk = rank; chunk < outline.all_chunks(); chunk += outline.stages) {
    if (chunk > 0) grow(arriving, outline.cuts[outline.first_block[chunk]]);
    if (chunk + 1 < outline.all_chunks()) grow(leaving, outline.cuts[outline.first_block[chunk + 1]]);
  }
  std::vector<BoundaryBytes> buffers;
  if (arriving != BoundaryBytes{} && outline.stages > 1) buffers.resize(ring_depth, arriving);
  if (leaving != BoundaryBytes{}) buffers.resize(buffers.size() + ring_depth, leaving);
  return buffers;
}

ForwardRooms forward_rooms(const Outline& outline, int rank) {
  ForwardRooms rooms;
  const bool arrives = outline.stages > 1 && (rank > 0 || outline.chunks > 1),
             leaves = outline.all_chunks() > 1 && (rank + 1 < outline.stages || outline.chunks > 1);
  if (arrives) rooms.arriving.resize(ring_depth);
  if (leaves) rooms.leaving.resize(ring_depth);
  std::iota(rooms.arriving.begin(), rooms.arriving.end(), 0);
  std::iota(rooms.leaving.begin(), rooms.leaving.end(), static_cast<int>(rooms.arriving.size()));
  return rooms;
}

ForwardStretches::ForwardStretches(const Outline& outline, const Network& network, ForwardRooms rooms,
                                   int rank)
    : outline_(outline),
      prices_(outline, network),
      rooms_(std::move(rooms)),
      rank_(rank),
      readers_(rooms_.arriving.size() + rooms_.leaving.size()) {
  MP_CHECK(outline.rank_of_chunk == looped_chunks(outline.stages, outline.chunks),
           "forwards of chunks that lie otherwise than one after the other");
}

void ForwardStretches::add(const std::vector<std::uint8_t>& choice) {
  Batch& batch = batches_.emplace_back();
  for (int chunk = rank_; chunk < outline_.all_chunks(); chunk += outline_.stages) {
    PassWork& work = batch.works.emplace_back();
    for (int block = outline_.first_block[chunk]; block < outline_.first_block[chunk + 1]; ++block) {
      const auto add = [&](int candidate) {
        work.add(outline_.cost(block, candidate), traits_of_pass(ActionKind::forward));
      };
      if (choice.empty()) add(0);
      else outline_.for_candidates(choice, block, add);
    }
  }
  known_ += outline_.micro_batches;
}

bool ForwardStretches::is_whole() const { return known_ % group_of(outline_) == 0; }

ListStretch ForwardStretches::write(bool last) {
  begin_ += static_cast<std::int64_t>(stretch_.actions.size());
  stretch_ = {};
  const std::int64_t group = group_of(outline_);
  while (known_ - written_ >= group) write_group(group);
  if (last && known_ > written_) write_group(known_ - written_);
  for (; (first_ + 1) * outline_.micro_batches <= written_; ++first_) batches_.pop_front();
  return stretch_;
}

void ForwardStretches::write_group(std::int64_t micro_batches) {
  const std::int64_t group = group_of(outline_), begin = groups_++ * group * outline_.chunks + rank_;
  std::vector<Entry> entries;
  for (int loop = 0; loop < outline_.chunks; ++loop)
    for (std::int64_t k = 0; k < micro_batches; ++k) {
      Entry entry{begin + loop * group + k, -1, loop, written_ + k};
      entries.push_back(entry);
      const int chunk = chunk_of(entry);
      entry.sender = rank_;
      if (!is_alone() && chunk + 1 < outline_.all_chunks()) entries.push_back(entry);
      entry.sender = (rank_ + outline_.stages - 1) % outline_.stages;
      --entry.time;
      if (!is_alone() && chunk > 0) entries.push_back(entry);
    }
  // What leaves a later stage leaves first: it makes room for what comes.
  std::sort(entries.begin(), entries.end(), [&](const Entry& a, const Entry& b) {
    const auto place = [](const Entry& e) { return std::tuple(e.time, e.sender >= 0, -e.sender); };
    return place(a) < place(b);
  });
  for (const Entry& entry : entries) write(entry);
  written_ += micro_batches;
}

void ForwardStretches::write(const Entry& entry) {
  if (entry.sender < 0) forward(entry);
  else if (entry.sender == rank_) leave(entry);
  else arrive(entry);
}

std::int64_t ForwardStretches::add(Action action, const Places& after, std::int64_t time) {
  for (const std::int64_t earlier : after) action.after.push_back(static_cast<int>(earlier - begin_));
  std::sort(action.after.begin(), action.after.end());
  stretch_.actions.push_back(std::move(action));
  stretch_.times.push_back(time);
  return begin_ + static_cast<std::int64_t>(stretch_.actions.size()) - 1;
}

Action ForwardStretches::action_at(ActionKind kind, const Entry& entry) const {
  Action action = action_of(kind);
  action.subnet = entry.micro_batch / outline_.micro_batches;
  action.micro_batch = static_cast<int>(entry.micro_batch % outline_.micro_batches);
  action.shard = action.micro_batch / outline_.micro_batches_of_shard();
  action.chunk = chunk_of(entry);
  return action;
}

void ForwardStretches::forward(const Entry& entry) {
  Action action = action_at(ActionKind::forward, entry);
  const int chunk = action.chunk;
  action.tape = 0;
  action.first = outline_.first_block[chunk];
  action.last = outline_.first_block[chunk + 1];
  const PassWork& work = batches_[static_cast<std::size_t>(action.subnet - first_)].works[entry.loop];
  action.sums = work.sums.calls;
  action.bytes = work.sums.bytes;
  const std::int64_t time = prices_.pass(rank_, work, false);
  const bool enters = chunk > 0, leaves = chunk + 1 < outline_.all_chunks();
  if (is_alone()) {
    if (enters) action.from_buffer = rooms_.leaving[(chunk - 1) % ring_depth];
    if (leaves) action.to_buffer = rooms_.leaving[chunk % ring_depth];
    add(std::move(action), {}, time);
    return;
  }
  Places after;
  if (enters) {
    after = arrived_.front().by;
    action.from_buffer = rooms_.arriving[arrived_.front().buffer];
  }
  const std::size_t left = static_cast<std::size_t>(departures_) % ring_depth,
                    left_at = rooms_.arriving.size() + left;
  if (leaves) {
    after.insert(after.end(), readers_[left_at].begin(), readers_[left_at].end());
    action.to_buffer = rooms_.leaving[left];
    ++departures_;
  }
  const std::int64_t at = add(std::move(action), after, time);
  if (leaves) made_.push_back({left, {at}});
  if (!enters) return;
  readers_[arrived_.front().buffer] = {at};
  arrived_.pop_front();
}

void ForwardStretches::arrive(const Entry& entry) {
  const std::size_t buffer = static_cast<std::size_t>(arrivals_++) % ring_depth;
  const int cut = outline_.first_block[chunk_of(entry)];
  arrived_.push_back({buffer, messages(ActionKind::receive, entry, cut, entry.sender, rooms_.arriving[buffer],
                                       readers_[buffer])});
}

void ForwardStretches::leave(const Entry& entry) {
  const Filled made = std::move(made_.front());
  made_.pop_front();
  const int cut = outline_.first_block[chunk_of(entry) + 1];
  readers_[rooms_.arriving.size() + made.buffer] = messages(
      ActionKind::send, entry, cut, (rank_ + 1) % outline_.stages, rooms_.leaving[made.buffer], made.by);
}

/// Messages for all payloads that cross a cut.
ForwardStretches::Places ForwardStretches::messages(ActionKind kind, const Entry& entry, int cut, int peer,
                                                    int buffer, const Places& after) {
  Places places;
  const auto payloads = payloads_of(outline_.cuts[cut], true);
  for (int k = 0; k < static_cast<int>(payloads.size()); ++k) {
    const auto& [payload, bytes] = payloads[k];
    if (bytes == 0) continue;
    Action message = action_at(kind, entry);
    message.first = message.last = cut;
    message.peer = peer;
    message.payload = payload;
    message.bytes = bytes;
    message.ticket = (entry.time * outline_.stages + outline_.stages - 1 - entry.sender) *
                         static_cast<std::int64_t>(payloads.size()) +
                     k;
    (kind == ActionKind::send ? message.from_buffer : message.to_buffer) = buffer;
    const std::int64_t time = prices_.of(message, rank_);
    places.push_back(add(std::move(message), after, time));
  }
  return places;
}

Program forward_program(const Outline& outline, const Network& network, int batches) {
  Program program;
  for (int rank = 0; rank < outline.stages; ++rank) {
    ForwardStretches list(outline, network, forward_rooms(outline, rank), rank);
    for (int batch = 0; batch < batches; ++batch) list.add({});
    program.ranks.push_back(list.write(true).actions);
  }
  return program;
}

PlannedForwards plan_forwards(const Outline& outline, const Network& network) {
  require_few_actions(outline, 3.0 * outline.all_chunks() * outline.micro_batches);
  PlannedForwards one;
  one.network = network;
  one.program = forward_program(outline, network, 1);
  one.expected = simulate(one.program, durations_of(one.program, outline, network), network);
  require_sound(check(one.program, outline));
  for (int rank = 0; rank < outline.stages; ++rank) {
    RankMemory& memory = one.placement.ranks.emplace_back();
    memory.arenas = 1;
    memory.buffers = forward_buffers(outline, rank);
    one.rooms.push_back(forward_rooms(outline, rank));
  }
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
