#include "program/schedules/step_tasks.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "core/check.h"
#include "program/clock/transfer.h"
#include "program/moving_step.h"
#include "program/schedules/lowest_free.h"
#include "program/schedules/step_segments.h"
#include "program/swapped_blocks.h"
#include "program/unit_bytes.h"

namespace mindpipe {
namespace {

void require_whole(const Outline& outline, const Order& order) {
  MP_CHECK(static_cast<int>(outline.first_block.size()) == outline.all_chunks() + 1 &&
               outline.first_block.front() == 0 && outline.first_block.back() == outline.all_blocks(),
           "{} blocks are not cut into {} chunks", outline.blocks.size(), outline.all_chunks());
  MP_CHECK(static_cast<int>(outline.cuts.size()) >= outline.all_blocks(), "{} cuts for {} blocks",
           outline.cuts.size(), outline.blocks.size());
  for (int chunk = 1; chunk < outline.all_chunks(); ++chunk) {
    const BoundaryBytes& cut = outline.cuts[outline.first_block[chunk]];
    MP_CHECK(cut.activation + cut.encoder_output > 0 && cut.gradient + cut.encoder_output_gradient > 0,
             "nothing crosses the cut before block {}", outline.first_block[chunk]);
  }
  MP_CHECK(outline.shards > 0 && outline.micro_batches % outline.shards == 0, "{} micro-batches in {} shards",
           outline.micro_batches, outline.shards);
  MP_CHECK(static_cast<int>(order.size()) == outline.stages, "an order of {} ranks for {} stages",
           order.size(), outline.stages);
  for (const auto& candidates : outline.blocks)
    MP_CHECK(candidates.size() == 1, "a step of a block with {} candidates", candidates.size());
}

class Making {
 public:
  Making(const Outline& outline, const PriceList& prices) : outline_(outline), prices_(prices) {
    made_.lines.resize(2 * outline.stages + 1);
    made_.lives.resize(outline.stages);
    made_.hand_overs.resize(outline.stages);
  }

  StepTasks make(const Order& order) {
    for (int rank = 0; rank < outline_.stages; ++rank) {
      if (outline_.sharded_optimizer) add_gathers(rank);
      add_passes(rank, order[rank]);
    }
    for (auto& [pair, ring] : made_.rings) add_messages(pair, ring);
    for (int unit = 0; unit < static_cast<int>(outline_.units.size()); ++unit)
      if (outline_.units[unit].values > 0) add_exchanges(unit);
    for (const auto& line : made_.lines) made_.before_scalars += static_cast<int>(line.size());
    made_.first_move = static_cast<int>(made_.lines.size());
    for (int from = 0; outline_.moves_blocks() && from < outline_.stages; ++from)
      for (const int to : {from - 1, from + 1}) add_move(from, to);
    made_.lines[made_.scalars()].push_back(
        {{.kind = TaskKind::scalars, .chunk = Task::none, .lasts = prices_.scalars(0)}});
    for (int rank = 0; rank < outline_.stages; ++rank) add_updates(rank);
    number();
    return std::move(made_);
  }

 private:
  /// The step before has left a share of each unit's values on each data rank: they come together in the
  /// order in which forwards read them.
  void add_gathers(int rank) {
    for (int chunk = 0; chunk < outline_.all_chunks(); ++chunk) {
      if (outline_.rank_of(chunk) != rank) continue;
      for (const UnitUse& use :
           outline_.uses_in(outline_.first_block[chunk], outline_.first_block[chunk + 1])) {
        const auto [gathered, is_new] = gathered_.try_emplace({rank, use.unit}, 0);
        if (!is_new) continue;
        add_parts(made_.sums_of(rank),
                  {.kind = TaskKind::gather, .rank = rank, .chunk = Task::none, .unit = use.unit},
                  gather_over_data(outline_, use.unit).parts, {},
                  [&](int part) { return prices_.gather(use.unit, part); });
        gathered->second = static_cast<int>(made_.lines[made_.sums_of(rank)].size());
      }
    }
  }

  /// The gathers that have to have ended before a forward of these blocks.
  StepNeed values_of(const Task& forward) const {
    StepNeed need{made_.sums_of(forward.rank), 0};
    for (const UnitUse& use : outline_.uses_in(forward.first, forward.last))
      need.count = std::max(need.count, gathered_.at({forward.rank, use.unit}));
    return need;
  }

  void add_passes(int rank, const std::vector<Pass>& passes) {
    LowestFree tapes, waiting;
    std::map<std::pair<int, int>, int> tape_of, waiting_of;  // of chunk and micro-batch
    std::array<int, 2> handed_over{};
    segments_.reset();
    if (swaps_blocks(outline_)) segments_.emplace(outline_, prices_, rank, passes, made_);
    for (int number = 0; number < static_cast<int>(passes.size()); ++number) {
      const Pass& pass = passes[number];
      const PassTraits& traits = traits_of_pass(pass.kind);
      const bool completes = traits.makes == MadeGradients::all || traits.makes == MadeGradients::later;
      Task task{.kind = task_of_pass(pass.kind),
                .rank = rank,
                .chunk = pass.chunk,
                .micro_batch = pass.micro_batch,
                .first = outline_.first_block[pass.chunk],
                .last = outline_.first_block[pass.chunk + 1]};
      task.clears = traits.travel == Travel::backward && pass.micro_batch == 0;
      task.fold = traits.makes != MadeGradients::none &&
                  (pass.micro_batch + 1) % outline_.micro_batches_of_shard() == 0;
      const auto [tape, is_new] = tape_of.try_emplace({pass.chunk, pass.micro_batch}, -1);
      MP_CHECK(is_new == (traits.travel == Travel::forward), "{} of micro-batch {} of chunk {} comes {}",
               pass.kind, pass.micro_batch, pass.chunk, is_new ? "before its forward" : "a second time");
      if (is_new) tape->second = tapes.take();
      task.slot = tape->second;
      if (traits.makes == MadeGradients::at_once) waiting_of[tape->first] = waiting.take();
      if (const auto room = waiting_of.find(tape->first); room != waiting_of.end())
        task.waiting = room->second;
      const int first = static_cast<int>(made_.lines[rank].size());
      if (completes && pass.micro_batch == outline_.micro_batches - 1) add_by_blocks(task);
      else add_in_pieces(task);
      if (segments_) segments_->add_copies(number, tape_of);
      if (completes) tapes.give_back(task.slot);
      if (completes && task.waiting >= 0) waiting.give_back(task.waiting);
      if (traits.travel != Travel::nowhere) cross(task, first, handed_over);
    }
  }

  /// A pass, cut at the edges of swapped blocks where it travels.
  void add_in_pieces(Task task) {
    std::vector<std::pair<int, int>> pieces{{task.first, task.last}};
    const Travel travel = traits_of_pass(pass_of_task(task.kind)).travel;
    if (segments_ && travel != Travel::nowhere) pieces = pieces_of(outline_, task.first, task.last);
    if (travel == Travel::backward) std::reverse(pieces.begin(), pieces.end());
    for (const std::pair<int, int>& piece : pieces) {
      std::tie(task.first, task.last) = piece;
      task.goes_on = piece != pieces.back();
      add_piece(task);
    }
  }

  /// A piece of a pass, with the segments that it finds in their slots.
  int add_piece(Task task) {
    const bool travels = traits_of_pass(pass_of_task(task.kind)).travel != Travel::nowhere;
    const StepNeed need = segments_ && travels ? segments_->find(task) : StepNeed{};
    const int place = add_pass(task);
    made_.lines[task.rank][place].needs[StepItem::segment] = need;
    if (segments_) segments_->stands(task, place);
    return place;
  }

  int add_pass(Task task) {
    const PassTraits& traits = traits_of_pass(pass_of_task(task.kind));
    const PassWork work = prices_.work_of(traits, task.first, task.last, task.clears);
    task.sums = work.sums;
    task.take(prices_.pass(task.rank, work, task.clears));
    std::vector<StepItem>& line = made_.lines[task.rank];
    line.push_back({task});
    if (task.kind == TaskKind::forward && outline_.sharded_optimizer)
      line.back().needs[StepItem::values] = values_of(task);
    const int place = static_cast<int>(line.size()) - 1;
    if (traits.makes != MadeGradients::none)
      for (int block = task.first; block < task.last; ++block)
        fed_.try_emplace(block, std::pair(place, place)).first->second.second = place;
    return place;
  }

  void add_by_blocks(Task task) {
    const int first = task.first;
    for (int block = task.last; block-- > first;) {
      task.first = block;
      task.last = block + 1;
      task.goes_on = block > first;
      const int place = add_piece(task);
      for (const UnitUse& use : outline_.uses_in(block, block + 1)) {
        made_.lives[task.rank].push_back({use, fed_[block].first, place});
        add_parts(
            made_.sums_of(task.rank),
            {.kind = TaskKind::sum, .rank = task.rank, .chunk = task.chunk, .unit = use.unit, .block = block},
            sum_over_data(outline_, use.unit).parts, {task.rank, place + 1},
            [&](int part) { return prices_.sum(use.unit, part); });
        summed_[use] = static_cast<int>(made_.lines[made_.sums_of(task.rank)].size());
      }
    }
  }

  template <class Price>
  void add_parts(int line, Task task, int parts, const StepNeed& need, const Price& price) {
    task.parts = parts;
    for (task.part = 0; task.part < parts; ++task.part) {
      task.take(price(task.part));
      made_.lines[line].push_back({task, {need}});
    }
  }

  /// A pass, of which the first piece is at `first` and the last has just been added, reads what the chunk
  /// before it on its way has left, and leaves something for the next.
  void cross(const Task& pass, int first, std::array<int, 2>& handed_over) {
    const bool forward = pass.kind == TaskKind::forward;
    const int way = forward ? 1 : -1, last = static_cast<int>(made_.lines[pass.rank].size()) - 1;
    const auto rank_of = [&](int chunk) {
      return chunk < 0 || chunk >= outline_.all_chunks() ? -1 : outline_.rank_of(chunk);
    };
    const int from = rank_of(pass.chunk - way), to = rank_of(pass.chunk + way);
    if (to == pass.rank) {
      int& most = made_.hand_overs[pass.rank][forward];
      most = std::max(most, ++handed_over[forward]);
    } else if (to >= 0) {
      at(made_.rings[{pass.rank, to, forward}], left_[{pass.rank, to, forward}]++).writer = last;
    }
    if (from == pass.rank) {
      MP_CHECK(handed_over[forward]-- > 0, "{} of micro-batch {} of chunk {} comes before that of chunk {}",
               pass_of_task(pass.kind), pass.micro_batch, pass.chunk, pass.chunk - way);
    } else if (from >= 0) {
      StepCrossing& crossing =
          at(made_.rings[{from, pass.rank, forward}], read_[{from, pass.rank, forward}]++);
      crossing.reader = first;
      crossing.last_reader = last;
    }
  }

  static StepCrossing& at(StepRing& ring, int turn) {
    if (turn >= static_cast<int>(ring.crossings.size())) ring.crossings.resize(turn + 1);
    return ring.crossings[turn];
  }

  void add_messages(const RingPair& pair, StepRing& ring) {
    for (int turn = 0; turn < static_cast<int>(ring.crossings.size()); ++turn) {
      StepCrossing& crossing = ring.crossings[turn];
      const auto is_cut = [&](const Task& writer, const Task& reader) {
        return reader.micro_batch == writer.micro_batch &&
               reader.chunk == writer.chunk + (pair.with_forward ? 1 : -1);
      };
      MP_CHECK(
          crossing.writer >= 0 && crossing.reader >= 0 &&
              is_cut(made_.pass(pair.from, crossing.writer).task, made_.pass(pair.to, crossing.reader).task),
          "rank {} reads what rank {} leaves for it in another order", pair.to, pair.from);
      const Task& writer = made_.pass(pair.from, crossing.writer).task;
      const int cut = pair.with_forward ? writer.last : writer.first;
      const auto payloads = payloads_of(outline_.cuts[cut], pair.with_forward);
      for (int k = 0; k < 2; ++k) {
        if (payloads[k].second == 0) continue;
        if (ring.lines[k] < 0) ring.lines[k] = new_line();
        std::vector<StepItem>& line = made_.lines[ring.lines[k]];
        const Price price = prices_.message(pair.from, pair.to, payloads[k].second);
        line.push_back({{.kind = TaskKind::message,
                         .with_forward = pair.with_forward,
                         .rank = pair.from,
                         .peer = pair.to,
                         .chunk = writer.chunk,
                         .micro_batch = writer.micro_batch,
                         .payload = payloads[k].first,
                         .turn = turn,
                         .first = cut,
                         .lasts = price.lasts,
                         .load = price.load},
                        {StepNeed{pair.from, crossing.writer + 1}}});
        crossing.messages[k] = static_cast<int>(line.size()) - 1;
        made_.lines[pair.to][crossing.reader].needs[StepItem::input + k] = {ring.lines[k],
                                                                            crossing.messages[k] + 1};
      }
    }
  }

  /// Each home of a unit gets the gradient of every use elsewhere, to add them all in model order.
  void add_exchanges(int unit) {
    const std::vector<int> homes = outline_.homes_of(unit);
    for (const int block : outline_.units[unit].blocks)
      for (const int home : homes) {
        const int owner = outline_.rank_of_block(block);
        if (home == owner) continue;
        const auto [line, is_new] = exchanges_.try_emplace({owner, home}, -1);
        if (is_new) line->second = new_line();
        add_exchange(line->second, home, {unit, block});
      }
  }

  /// The gradient of a use, summed over data, goes to another rank.
  void add_exchange(int line, int home, const UnitUse& use) {
    const int chunk = outline_.chunk_of(use.block), owner = outline_.rank_of(chunk);
    add_parts(line,
              {.kind = TaskKind::exchange,
               .rank = owner,
               .peer = home,
               .chunk = chunk,
               .unit = use.unit,
               .block = use.block},
              exchange_of(outline_, use.unit).parts, {made_.sums_of(owner), summed_.at(use)},
              [&](int part) { return prices_.exchange(owner, home, use.unit, part); });
  }

  /// States leave from the step's first moment on, gradients behind their sums, in the order of these. Lines
  /// of their own carry them, for which no sum of scalars waits.
  void add_move(int from, int to) {
    std::vector<int> units = units_leaving(outline_, from, to);
    if (units.empty()) return;
    const std::vector<int>& moving = made_.moving.emplace_back(std::move(units));
    const int states = new_line(), gradients = new_line();
    add_parts(states,
              {.kind = TaskKind::move,
               .rank = from,
               .peer = to,
               .chunk = outline_.chunk_of(outline_.units[moving.front()].blocks.front()),
               .units = moving},
              move_of(outline_, moving).parts, {},
              [&](int part) { return prices_.part_of_move(from, to, moving, part); });
    for (const GradientLife& life : made_.lives[from]) {
      const int unit = life.use.unit;
      if (!std::binary_search(moving.begin(), moving.end(), unit)) continue;
      add_exchange(gradients, to, life.use);
      arrivals_[unit] = {StepNeed{states, static_cast<int>(made_.lines[states].size())},
                         StepNeed{gradients, static_cast<int>(made_.lines[gradients].size())}};
    }
  }

  void add_updates(int rank) {
    const int fetches = outline_.state_on_host ? new_line() : -1,
              evictions = outline_.state_on_host ? new_line() : -1;
    std::vector<StepItem>& line = made_.lines[rank];
    for (const int unit : units_updated_by(outline_, rank)) {
      line.push_back({{.kind = TaskKind::update,
                       .rank = rank,
                       .chunk = Task::none,
                       .unit = unit,
                       .lasts = outline_.lasting(rank, prices_.update_of_share(unit))},
                      {StepNeed{made_.scalars(), 1}}});
      if (const auto arrival = arrivals_.find(unit); arrival != arrivals_.end()) {
        line.back().needs[StepItem::state] = arrival->second.first;
        line.back().needs[StepItem::gradient] = arrival->second.second;
      }
      if (is_fetched(outline_, unit)) add_copies(rank, unit, fetches, evictions);
    }
  }

  /// The state of a unit comes where that of an earlier one has gone back, and is there for the unit's
  /// update, the last in its line.
  void add_copies(int rank, int unit, int fetches, int evictions) {
    const auto copy = [&](TaskKind kind) {
      return Task{.kind = kind, .rank = rank, .chunk = Task::none, .unit = unit, .lasts = prices_.copy(unit)};
    };
    const int turn = static_cast<int>(made_.lines[fetches].size());
    StepItem& fetch = made_.lines[fetches].emplace_back(StepItem{copy(TaskKind::fetch)});
    if (turn >= state_slots) fetch.needs[StepItem::place] = {evictions, turn - state_slots + 1};
    std::vector<StepItem>& line = made_.lines[rank];
    line.back().needs[StepItem::state] = {fetches, turn + 1};
    made_.lines[evictions].push_back(
        {copy(TaskKind::evict), {StepNeed{rank, static_cast<int>(line.size())}}});
  }

  int new_line() {
    made_.lines.emplace_back();
    return static_cast<int>(made_.lines.size()) - 1;
  }

  /// Lets each task say its line.
  void number() {
    for (int line = 0; line < static_cast<int>(made_.lines.size()); ++line)
      for (StepItem& item : made_.lines[line]) item.task.number = line;
  }

  const Outline& outline_;
  const PriceList& prices_;
  StepTasks made_;
  std::optional<StepSegments> segments_;          // of the rank whose passes are added
  std::map<int, std::pair<int, int>> fed_;        // the first and the last pass that adds to a block's
  std::map<RingPair, int> left_, read_;           // crossings so far
  std::map<UnitUse, int> summed_;                 // sums of its rank that have to have ended
  std::map<std::pair<int, int>, int> gathered_;   // gathers of a rank up to a unit's last
  std::map<std::pair<int, int>, int> exchanges_;  // lines
  std::map<int, std::pair<StepNeed, StepNeed>> arrivals_;  // of a unit that comes, its state and gradient
};

}  // namespace

StepTasks tasks_of_step(const Outline& outline, const PriceList& prices, const Order& order) {
  require_whole(outline, order);
  return Making(outline, prices).make(order);
}

}  // namespace mindpipe
