#pragma once
#include <deque>
#include <tuple>

#include "program/moving_step.h"
#include "program/played_numbers.h"
#include "program/played_segments.h"
#include "program/swapped_blocks.h"

namespace mindpipe {

/// A step's lists played with numbers: every pass makes gradients that follow from all it reads. Data ranks
/// play in lockstep, since their lists are equal. It knows what actions do, and nothing of what is sound.
class PlayedStep : PlayedNumbers {
 public:
  PlayedStep(const Program& program, const Outline& outline)
      : PlayedNumbers(outline),
        program_(program),
        places_(places_in(program, outline)),
        stages_(outline.stages) {
    for (Stage& stage : stages_)
      for (int data = 0; data < outline.data; ++data) {
        Rank& rank = stage.ranks.emplace_back();
        for (int unit = 0; unit < std::ssize(outline.units); ++unit)
          rank.values[unit] = rank.masters[unit] = first_values(unit);
      }
  }
  /// Goes on with other lists over the same state, as behind a move.
  void go_on(const Program& program, const Outline& outline) {
    program_ = program;
    outline_ = outline;
    places_ = places_in(program, outline);
  }
  /// Plays so many steps; false: the lists stand still.
  bool run(int steps) {
    while (steps-- > 0)
      if (!play()) return false;
    return true;
  }
  /// The bits of each unit where it lives with this outline's cut: values and masters by who owns them.
  std::vector<float> at_home() {
    std::vector<float> all;
    for (int unit = 0; unit < std::ssize(outline_.units); ++unit)
      for (const int home : outline_.homes_of(unit))
        for (int data = 0; data < outline_.data && outline_.units[unit].values > 0; ++data) {
          Rank& rank = stages_[home].ranks[data];
          for (int e = 0; e < elements(); ++e)
            if (!outline_.sharded_optimizer || e / of_share == data)
              all.insert(all.end(), {rank.values[unit][e], rank.masters[unit][e]});
        }
    all.push_back(stages_.front().ranks.front().loss);
    return all;
  }
  /// The bits of all values after so many steps; empty where the lists stand still.
  std::vector<float> after(int steps) {
    if (!run(steps)) return {};
    std::vector<float> all;
    for (const Stage& stage : stages_)
      for (const Rank& rank : stage.ranks) {
        for (const auto& [unit, values] : rank.values) all.insert(all.end(), values.begin(), values.end());
        for (const auto& [unit, values] : rank.masters) all.insert(all.end(), values.begin(), values.end());
        all.push_back(rank.loss);
      }
    return all;
  }

 private:
  struct Sums {
    Numbers at_once, later;
    std::vector<Numbers> levels_at_once, levels_later;
  };
  struct Tape {
    std::map<int, float> entered;  ///< by block
    std::map<int, float> put_off;
    float gradient = 0, encoder_gradient = 0;
    float between = 0, encoder_between = 0;  ///< what a forward's piece leaves for the next
    std::map<int, int> slot_of;              ///< where the segments of swapped blocks lie, by block
  };
  struct Rank {
    std::map<int, Numbers> values, masters;
    std::array<Numbers, state_slots> slots;  ///< masters that have come from the host
    std::map<int, int> slot_of;              ///< by unit
    int fetches = 0;
    std::map<UnitUse, Sums> sums;  ///< unit -1: a slab
    std::map<UnitUse, Numbers> shares, arrived;
    std::map<int, Numbers> decided;
    std::map<std::pair<int, Payload>, float> buffers;
    std::map<int, Tape> tapes;
    PlayedSegments segments;
    std::map<int, float> losses;
    float loss = 0, squares = 0;
  };
  struct Stage {
    std::vector<Rank> ranks;
    std::size_t next = 0;
  };

  bool play() {
    for (Stage& stage : stages_) stage.next = 0;
    for (bool moved = true; moved;) {
      moved = false;
      bool all_at_scalars = true;
      for (int rank = 0; rank < std::ssize(stages_); ++rank) {
        while (may_start(rank)) {
          act(rank);
          moved = true;
        }
        all_at_scalars = all_at_scalars && is_at_scalars(rank);
      }
      if (!all_at_scalars) continue;
      decide();
      for (Stage& stage : stages_) ++stage.next;
      moved = true;
    }
    for (int rank = 0; rank < std::ssize(stages_); ++rank)
      if (stages_[rank].next < program_.ranks[rank].size()) return false;
    return true;
  }
  const Action* next_of(int rank) const {
    const Stage& stage = stages_[rank];
    return stage.next < program_.ranks[rank].size() ? &program_.ranks[rank][stage.next] : nullptr;
  }
  bool is_at_scalars(int rank) const {
    const Action* action = next_of(rank);
    return action != nullptr && action->kind == ActionKind::sum_scalar;
  }
  bool may_start(int rank) {
    const Action* action = next_of(rank);
    if (action == nullptr || action->kind == ActionKind::sum_scalar) return false;
    return action->kind != ActionKind::receive || !channels_[{action->peer, rank, action->payload}].empty();
  }

  void act(int rank) {
    const Action& action = program_.ranks[rank][stages_[rank].next++];
    std::vector<Rank>& ranks = stages_[rank].ranks;
    if (action.kind == ActionKind::reduce) return reduce(ranks, action);
    if (action.kind == ActionKind::gather) return gather(ranks, action);
    if (action.kind == ActionKind::send) {
      Message message;
      for (int data = 0; data < outline_.data; ++data) message.push_back(leaving(ranks[data], action, data));
      channels_[{rank, action.peer, action.payload}].push_back(std::move(message));
      return;
    }
    Message message;
    if (action.kind == ActionKind::receive) {
      auto& channel = channels_[{action.peer, rank, action.payload}];
      message = std::move(channel.front());
      channel.pop_front();
    }
    for (int data = 0; data < outline_.data; ++data) {
      if (action.kind == ActionKind::receive) arrive(ranks[data], action, message[data], data);
      else if (action.kind == ActionKind::update) update(ranks[data], action.unit, rank, data);
      else if (is_copy(action)) copy(ranks[data], action);
      else if (is_forward(action)) forward(ranks[data], action, data);
      else if (is_backward(action)) backward(ranks[data], action, data);
      else weight(ranks[data], action, data);
    }
  }

  /// What a block makes of what enters, with all the units that it uses.
  float through(const Rank& rank, int block, float in) const {
    return PlayedNumbers::through(rank.values, block, outline_.units_used[block][0], in);
  }
  void forward(Rank& rank, const Action& action, int data) {
    float x = action.from_buffer < 0 ? number_of({5, data * outline_.micro_batches + action.micro_batch})
                                     : rank.buffers[{action.from_buffer, Payload::activation}];
    float encoder = action.from_buffer < 0 ? 0 : rank.buffers[{action.from_buffer, Payload::encoder_output}];
    Tape& tape = rank.tapes[action.tape];
    const bool in_segment = is_swapped(action.first);
    if (action.first == outline_.first_block[action.chunk]) {
      tape = {};
      if (in_segment) rank.segments.device[{action.first, action.segment}] = x;
    } else {
      encoder = tape.encoder_between;
      x = in_segment ? rank.segments.device[{action.first, action.segment}] : tape.between;
    }
    for (int block = action.first; block < action.last; ++block) {
      tape.entered[block] = x;
      if (!passes_encoder(block)) encoder = 0;
      x = through(rank, block, number_of({bits(x), bits(encoder)}));
      if (passes_encoder(block + 1)) encoder = encoder == 0 ? x : encoder;
    }
    tape.between = x;
    tape.encoder_between = encoder;
    if (action.to_segment >= 0) rank.segments.device[{action.last, action.to_segment}] = x;
    if (action.to_buffer >= 0) {
      rank.buffers[{action.to_buffer, Payload::activation}] = x;
      rank.buffers[{action.to_buffer, Payload::encoder_output}] = encoder;
    }
    if (action.last == outline_.all_blocks()) rank.losses[action.micro_batch] = x;
  }
  /// Whether a block is swapped. A spoiled list may name one that the model does not have.
  bool is_swapped(int block) const {
    return block >= 0 && block < outline_.all_blocks() && mindpipe::is_swapped(outline_, block);
  }
  /// Whether an encoder's output crosses the cut before a block. What no cut lets through leaves no trace, so
  /// that the numbers do not depend on where stages begin.
  bool passes_encoder(int block) const {
    return block > 0 && block < outline_.all_blocks() && outline_.cuts[block].encoder_output > 0;
  }
  void backward(Rank& rank, const Action& action, int data) {
    Tape& tape = rank.tapes[action.tape];
    const MadeGradients made = pass_of(action)->makes;
    if (action.last == outline_.first_block[action.chunk + 1]) {
      const bool ends = action.from_buffer < 0;
      tape.gradient = ends ? 1.0F : rank.buffers[{action.from_buffer, Payload::gradient}];
      tape.encoder_gradient = ends || !passes_encoder(action.last)
                                  ? 1.0F
                                  : rank.buffers[{action.from_buffer, Payload::encoder_output_gradient}];
    }
    for (const UnitUse& use : outline_.uses_in(action.first, action.last))
      if (action.clears) {
        sums_of(rank, use).at_once = zeros();
        sums_of(rank, use).later = zeros();
      }
    if (is_swapped(action.first)) tape.slot_of[action.first] = action.segment;
    for (int block = action.last; block-- > action.first;) {
      if (is_swapped(block)) tape.entered[block] = rank.segments.in(block, tape.slot_of[block]);
      tape.gradient =
          number_of({bits(tape.gradient), bits(tape.encoder_gradient), bits(tape.entered[block])});
      tape.put_off[block] = tape.gradient;
      tape.gradient = through(rank, block, tape.gradient);
      tape.encoder_gradient =
          passes_encoder(block) ? number_of({bits(tape.gradient), bits(tape.encoder_gradient)}) : 1.0F;
      for (const UnitUse& use : outline_.uses_in(block, block + 1)) {
        add(sums_of(rank, use).at_once, block, tape.put_off[block], tape.entered[block], 1);
        if (made == MadeGradients::all)
          add(sums_of(rank, use).later, block, tape.put_off[block], tape.entered[block], 2);
      }
    }
    if (action.to_buffer >= 0 && action.first == outline_.first_block[action.chunk]) {
      rank.buffers[{action.to_buffer, Payload::gradient}] = tape.gradient;
      rank.buffers[{action.to_buffer, Payload::encoder_output_gradient}] = tape.encoder_gradient;
    }
    fold(rank, action, data);
  }
  void weight(Rank& rank, const Action& action, int data) {
    Tape& tape = rank.tapes[action.tape];
    for (int block = action.last; block-- > action.first;) {
      if (is_swapped(block)) tape.entered[block] = rank.segments.in(block, tape.slot_of[block]);
      for (const UnitUse& use : outline_.uses_in(block, block + 1))
        add(sums_of(rank, use).later, block, tape.put_off[block], tape.entered[block], 2);
    }
    fold(rank, action, data);
  }

  /// Where a use's gradient is added up: in a slab, if the sums over data find it there.
  Sums& sums_of(Rank& rank, const UnitUse& use) const {
    const auto place = places_.find(use);
    return rank.sums[place == places_.end() ? use : UnitUse{-1, place->second.slab}];
  }
  /// This rank's share of a use's sum: from a place of its own, or from where the gradient was.
  Numbers share_of(Rank& rank, const UnitUse& use, int data) const {
    const auto place = places_.find(use);
    const bool stays = place != places_.end() && !place->second.moves_out;
    Numbers share = stays ? sums_of(rank, use).at_once : rank.shares[use];
    share.resize(elements());
    for (int e = 0; e < elements(); ++e)
      if (outline_.sharded_optimizer && e / of_share != data) share[e] = 0;
    return share;
  }
  void fold(Rank& rank, const Action& action, int data) {
    const MadeGradients made = pass_of(action)->makes;
    if (!action.fold || action.shard < 0 || action.shard >= outline_.shards) return;
    for (const UnitUse& use : outline_.uses_in(action.first, action.last)) {
      Sums& sums = sums_of(rank, use);
      if (made != MadeGradients::later) count(sums.at_once, sums.levels_at_once, action.shard, data);
      if (made != MadeGradients::at_once) count(sums.later, sums.levels_later, action.shard, data);
    }
  }

  void reduce(std::vector<Rank>& ranks, const Action& action) {
    const UnitUse use{action.unit, action.first};
    const bool in_slab = outline_.sharded_gradients && action.slab >= 0;
    const auto [begin, end] = part_of(action);
    for (int owner = 0; owner < outline_.data; ++owner)
      for (int e = owner * of_share + begin; e < owner * of_share + end; ++e) {
        const float sum = joined([&](int data, int level) {
          Sums& sums = in_slab ? ranks[data].sums[{-1, action.slab}] : sums_of(ranks[data], use);
          for (Numbers* half : {&sums.at_once, &sums.later}) half->resize(elements());
          for (auto* levels : {&sums.levels_at_once, &sums.levels_later})
            levels->resize(tree(0).levels() + 1, zeros());
          return level < 0 ? sums.at_once[e] * 3 + sums.later[e]
                           : sums.levels_at_once[level][e] * 3 + sums.levels_later[level][e];
        });
        for (int data = 0; data < outline_.data; ++data) {
          if (outline_.sharded_optimizer && data != owner) continue;
          const bool stays = in_slab && action.apart < 0;
          Numbers& share = stays ? ranks[data].sums[{-1, action.slab}].at_once : ranks[data].shares[use];
          share.resize(elements());
          share[e] = sum;
        }
      }
  }
  void gather(std::vector<Rank>& ranks, const Action& action) {
    const auto [begin, end] = part_of(action);
    for (int owner = 0; owner < outline_.data; ++owner)
      for (int e = owner * of_share + begin; e < owner * of_share + end; ++e)
        for (Rank& rank : ranks) rank.values[action.unit][e] = ranks[owner].values[action.unit][e];
  }
  Numbers leaving(Rank& rank, const Action& action, int data) const {
    const auto [begin, end] = part_of(action);
    if (is_move(action)) {
      Numbers part;
      for (const int unit : action.units)
        for (const int e : elements_of(begin, end, data)) part.push_back(rank.masters[unit][e]);
      return part;
    }
    if (action.payload != Payload::unit_gradient) return {rank.buffers[{action.from_buffer, action.payload}]};
    const Numbers share = share_of(rank, {action.unit, action.first}, data);
    Numbers part;
    for (const int e : elements_of(begin, end, data)) part.push_back(share[e]);
    return part;
  }
  /// The elements that a data rank has of a part: of its own share, or of all.
  std::vector<int> elements_of(int begin, int end, int data) const {
    std::vector<int> all;
    for (int owner = 0; owner < outline_.data; ++owner)
      for (int e = owner * of_share + begin; e < owner * of_share + end; ++e)
        if (owner == data || !outline_.sharded_optimizer) all.push_back(e);
    return all;
  }
  void arrive(Rank& rank, const Action& action, const Numbers& message, int data) const {
    const auto [begin, end] = part_of(action);
    if (is_move(action)) {
      std::size_t next = 0;
      for (const int unit : action.units)
        for (const int e : elements_of(begin, end, data))
          if (next < message.size()) rank.values[unit][e] = rank.masters[unit][e] = message[next++];
      return;
    }
    if (action.payload != Payload::unit_gradient) {
      rank.buffers[{action.to_buffer, action.payload}] = message[0];
      return;
    }
    Numbers& share = rank.arrived[{action.unit, action.first}];
    share.resize(elements());
    std::size_t next = 0;
    for (const int e : elements_of(begin, end, data))
      if (next < message.size()) share[e] = message[next++];
  }
  void update(Rank& rank, int unit, int stage, int data) const {
    if (const auto way = way_of(outline_, unit); way && way->second == stage)
      rank.decided[unit] = rank.arrived[{unit, outline_.units[unit].blocks.front()}];
    rank.decided[unit].resize(elements());
    Numbers& masters = is_fetched(outline_, unit) ? rank.slots[rank.slot_of[unit]] : rank.masters[unit];
    masters.resize(elements());
    for (int e = 0; e < elements(); ++e) {
      if (outline_.sharded_optimizer && e / of_share != data) continue;
      masters[e] -= rank.decided[unit][e] / (1 + rank.squares);
      rank.values[unit][e] = masters[e];
    }
  }
  void copy(Rank& rank, const Action& action) const {
    if (copies_segment(action)) {
      rank.segments.copy(action);
    } else if (action.kind == ActionKind::fetch) {
      rank.slot_of[action.unit] = rank.fetches++ % state_slots;
      rank.slots[rank.slot_of[action.unit]] = rank.masters[action.unit];
    } else {
      rank.masters[action.unit] = rank.slots[rank.slot_of[action.unit]];
    }
  }
  /// All ranks meet: uses are added up, losses and squares are of everybody.
  void decide() {
    float loss = 0, squares = 0;
    std::map<int, float> of_units;  // added up in an order that no cut changes
    for (int stage = 0; stage < std::ssize(stages_); ++stage)
      for (int data = 0; data < outline_.data; ++data) {
        Rank& rank = stages_[stage].ranks[data];
        for (const int unit : outline_.units_of_rank(stage)) {
          Numbers sum;
          for (const int block : outline_.units[unit].blocks) {
            const bool is_here = outline_.rank_of_block(block) == stage;
            Numbers part = is_here ? share_of(rank, {unit, block}, data) : rank.arrived[{unit, block}];
            part.resize(elements());
            sum.resize(elements());
            for (int e = 0; e < elements(); ++e) sum[e] += part[e];
          }
          rank.decided[unit] = sum;
          for (const float one : sum) of_units[unit] += one * one;
        }
        for (const auto& [micro_batch, one] : rank.losses) loss += one;
        rank.losses.clear();
      }
    for (const auto& [unit, one] : of_units) squares += one;
    for (Stage& stage : stages_)
      for (Rank& rank : stage.ranks) {
        rank.loss = loss;
        rank.squares = squares;
      }
  }

  Program program_;
  std::map<UnitUse, GradientPlace> places_;
  std::vector<Stage> stages_;
  std::map<std::tuple<int, int, Payload>, std::deque<Message>> channels_;
};

}  // namespace mindpipe
