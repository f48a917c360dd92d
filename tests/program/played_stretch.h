#pragma once
#include <deque>
#include <tuple>

#include "program/played_numbers.h"
#include "supernet/subnet.h"

namespace mindpipe {

/// The lists of subnets played with numbers, as PlayedStep plays a step's: of all ranks of all lanes, list by
/// list in order, up to a drain. Of units that all subnets share it knows nothing.
class PlayedStretch : PlayedNumbers {
 public:
  PlayedStretch(const Program& program, const Outline& outline, const std::vector<Subnet>& subnets)
      : PlayedNumbers(outline), program_(program), ranks_(program.ranks.size()) {
    for (const Subnet& subnet : subnets) choices_[subnet.id] = subnet.choice;
    for (Rank& rank : ranks_)
      for (int data = 0; data < outline.data; ++data) {
        Replica& replica = rank.replicas.emplace_back();
        for (int unit = 0; unit < std::ssize(outline.units); ++unit)
          replica.values[unit] = first_values(unit);
      }
  }
  /// The bits of all values, where units are at home, and of all losses at the end; empty where the lists
  /// stand still.
  std::vector<float> bits_at_end() {
    for (bool moved = true; moved;) {
      moved = false;
      for (int rank = 0; rank < std::ssize(ranks_); ++rank)
        for (; may_start(rank); moved = true) act(rank);
    }
    std::vector<float> all;
    for (int rank = 0; rank < std::ssize(ranks_); ++rank) {
      if (ranks_[rank].next < program_.ranks[rank].size()) return {};
      for (const Replica& replica : ranks_[rank].replicas) {
        for (const int unit : outline_.units_of_rank(outline_.stage_of_rank(rank))) {
          const Numbers& values = replica.values.at(unit);
          all.insert(all.end(), values.begin(), values.end());
        }
        for (const auto& [pass, loss] : replica.losses) all.push_back(loss);
      }
    }
    return all;
  }

 private:
  struct Sums {
    Numbers sum, share;
    std::vector<Numbers> levels;
  };
  struct Tape {
    std::map<int, float> entered;  ///< by block
    std::map<Payload, float> arrived;
    float gradient = 0;
  };
  struct Replica {
    std::map<int, Numbers> values;
    std::map<std::pair<int, int>, Sums> sums;  ///< by slab and unit
    std::map<std::pair<int, Payload>, float> buffers;
    std::map<int, Tape> tapes;
    std::map<std::pair<std::int64_t, int>, float> losses;  ///< by subnet and micro-batch
  };
  struct Rank {
    std::vector<Replica> replicas;
    std::size_t next = 0;
  };

  bool may_start(int rank) {
    const std::size_t next = ranks_[rank].next;
    if (next >= program_.ranks[rank].size()) return false;
    const Action& action = program_.ranks[rank][next];
    return action.kind != ActionKind::receive || !channels_[{action.peer, rank, action.payload}].empty();
  }
  void act(int rank) {
    const Action& action = program_.ranks[rank][ranks_[rank].next++];
    std::vector<Replica>& replicas = ranks_[rank].replicas;
    if (action.kind == ActionKind::reduce) return reduce(replicas, action);
    Message message(replicas.size());
    if (action.kind == ActionKind::receive) {
      auto& channel = channels_[{action.peer, rank, action.payload}];
      message = std::move(channel.front());
      channel.pop_front();
    }
    for (int data = 0; data < outline_.data; ++data) {
      Replica& replica = replicas[data];
      if (action.kind == ActionKind::send) message[data] = leaving(replica, action);
      else if (action.kind == ActionKind::receive) arrive(replica, action, message[data]);
      else if (action.kind == ActionKind::update) update(replica, action);
      else if (is_forward(action)) forward(replica, action, data);
      else backward(replica, action, data);
    }
    if (action.kind == ActionKind::send)
      channels_[{rank, action.peer, action.payload}].push_back(std::move(message));
  }

  const std::vector<int>& units_of(const Action& action, int block) const {
    static const std::vector<int> none;
    const auto choice = choices_.find(action.owner.number);
    if (choice == choices_.end()) return none;
    return outline_.units_used[block][choice->second[block]];
  }
  void forward(Replica& replica, const Action& action, int data) {
    Tape& tape = replica.tapes[action.tape];
    float x = action.chunk == 0
                  ? number_of({5, action.owner.number, data * outline_.micro_batches + action.micro_batch})
                  : tape.arrived[Payload::activation];
    for (int block = action.first; block < action.last; ++block) {
      tape.entered[block] = x;
      x = through(replica.values, block, units_of(action, block), x);
    }
    if (action.to_buffer >= 0) replica.buffers[{action.to_buffer, Payload::activation}] = x;
    if (action.last == outline_.all_blocks()) replica.losses[{action.owner.number, action.micro_batch}] = x;
  }
  void backward(Replica& replica, const Action& action, int data) {
    Tape& tape = replica.tapes[action.tape];
    if (action.last == outline_.all_blocks()) tape.gradient = 1.0F;
    else if (const auto there = tape.arrived.find(Payload::gradient); there != tape.arrived.end()) {
      tape.gradient = there->second;
      tape.arrived.erase(there);
    }
    for (int block = action.last; block-- > action.first;) {
      const std::vector<int>& units = units_of(action, block);
      tape.gradient = number_of({bits(tape.gradient), bits(tape.entered[block])});
      for (const int unit : units) {
        Sums& sums = replica.sums[{action.slab, unit}];
        if (action.clears) sums.sum = zeros();
        add(sums.sum, block, tape.gradient, tape.entered[block], 1);
        if (action.fold && action.shard >= 0 && action.shard < outline_.shards)
          count(sums.sum, sums.levels, action.shard, data);
      }
      tape.gradient = through(replica.values, block, units, tape.gradient);
    }
    if (action.to_buffer >= 0) replica.buffers[{action.to_buffer, Payload::gradient}] = tape.gradient;
  }
  void reduce(std::vector<Replica>& replicas, const Action& action) {
    const auto [begin, end] = part_of(action);
    for (int owner = 0; owner < outline_.data; ++owner)
      for (int e = owner * of_share + begin; e < owner * of_share + end; ++e) {
        const float sum = joined([&](int data, int level) {
          Sums& sums = replicas[data].sums[{action.slab, action.unit}];
          sums.sum.resize(elements());
          sums.levels.resize(tree(0).levels() + 1, zeros());
          return level < 0 ? sums.sum[e] : sums.levels[level][e];
        });
        for (Replica& replica : replicas) {
          Numbers& share = replica.sums[{action.slab, action.unit}].share;
          share.resize(elements());
          share[e] = sum;
        }
      }
  }
  void update(Replica& replica, const Action& action) const {
    for (int block = action.first; block < action.last; ++block)
      for (const int unit : units_of(action, block)) {
        Sums& sums = replica.sums[{action.slab, unit}];
        Numbers& gradient = outline_.data > 1 ? sums.share : sums.sum;
        gradient.resize(elements());
        for (int e = 0; e < elements(); ++e) replica.values[unit][e] -= gradient[e];
      }
  }
  Numbers leaving(Replica& replica, const Action& action) const {
    if (!is_move(action)) return {replica.buffers[{action.from_buffer, action.payload}]};
    Numbers part;
    for_elements(action, [&](int unit, int e) { part.push_back(replica.values[unit][e]); });
    return part;
  }
  void arrive(Replica& replica, const Action& action, const Numbers& message) const {
    if (!is_move(action)) {
      replica.tapes[action.tape].arrived[action.payload] = message[0];
      return;
    }
    std::size_t next = 0;
    for_elements(action, [&](int unit, int e) {
      if (next < message.size()) replica.values[unit][e] = message[next++];
    });
  }
  /// The elements of a move's part.
  template <class Do>
  void for_elements(const Action& action, Do&& act_on) const {
    const auto [begin, end] = part_of(action);
    for (const int unit : action.units)
      for (int owner = 0; owner < outline_.data; ++owner)
        for (int e = owner * of_share + begin; e < owner * of_share + end; ++e) act_on(unit, e);
  }

  Program program_;
  std::vector<Rank> ranks_;
  std::map<std::int64_t, std::vector<std::uint8_t>> choices_;
  std::map<std::tuple<int, int, Payload>, std::deque<Message>> channels_;
};

}  // namespace mindpipe
