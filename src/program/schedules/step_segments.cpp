#include "program/schedules/step_segments.h"

#include <algorithm>

#include "program/swapped_blocks.h"

namespace mindpipe {

StepNeed StepSegments::find(Task& piece) const {
  const std::vector<SegmentLife>& lives = turns_.lives();
  piece.segment = piece.to_segment = Task::none;
  if (piece.kind != TaskKind::forward) {
    if (!finds_segment(piece)) return {};
    const int number = life_of(piece, piece.first);
    piece.segment = lives[number].is_stashed ? lives[number].slot_back : lives[number].slot;
    return lives[number].is_stashed ? StepNeed{in_, places_[number].unstash + 1} : StepNeed{};
  }
  StepNeed need;
  const auto fills = [&](int number) {
    if (const int before = lives[number].forward_waits; before >= 0)
      need = {out_, std::max(need.count, places_[before].stash + 1)};
    return lives[number].slot;
  };
  if (finds_segment(piece)) {
    const int number = life_of(piece, piece.first);
    const bool is_first = piece.first == outline_.first_block[piece.chunk];
    piece.segment = is_first ? fills(number) : lives[number].slot;
  }
  if (piece.goes_on && is_swapped(outline_, piece.last)) piece.to_segment = fills(life_of(piece, piece.last));
  return need;
}

void StepSegments::stands(const Task& piece, int place) {
  const bool travels = traits_of_pass(pass_of_task(piece.kind)).travel != Travel::nowhere;
  const int first = outline_.first_block[piece.chunk], last = outline_.first_block[piece.chunk + 1];
  for (int block = travels ? piece.first : first; block < (travels ? piece.last : last); ++block) {
    if (!is_swapped(outline_, block)) continue;
    Places& places = places_[life_of(piece, block)];
    (piece.kind == TaskKind::forward ? places.forward : places.last) = place;
  }
}

void StepSegments::add_copies(int pass, const std::map<std::pair<int, int>, int>& tape_of) {
  const auto tape = [&](const SegmentLife& life) { return tape_of.at({life.chunk, life.micro_batch}); };
  for (const int number : turns_.leaving(pass)) {
    const SegmentLife& life = turns_.lives()[number];
    std::vector<StepItem>& out = line(out_);
    places_[number].stash = static_cast<int>(out.size());
    out.push_back(
        {copy(TaskKind::stash, life, life.slot, tape(life)), {StepNeed{rank_, places_[number].forward + 1}}});
  }
  for (const int number : turns_.coming_back(pass)) {
    const SegmentLife& life = turns_.lives()[number];
    std::vector<StepItem>& in = line(in_);
    places_[number].unstash = static_cast<int>(in.size());
    StepItem& item = in.emplace_back(StepItem{copy(TaskKind::unstash, life, life.slot_back, tape(life))});
    int stash = places_[number].stash;
    if (life.back_waits >= 0) stash = std::max(stash, places_[life.back_waits].stash);
    item.needs[StepItem::work] = {out_, stash + 1};
    if (life.back_behind >= 0) item.needs[StepItem::place] = {rank_, places_[life.back_behind].last + 1};
  }
}

std::vector<StepItem>& StepSegments::line(int& number) {
  if (number < 0) {
    number = static_cast<int>(made_.lines.size());
    made_.lines.emplace_back();
  }
  return made_.lines[number];
}

Task StepSegments::copy(TaskKind kind, const SegmentLife& life, int slot, int tape) const {
  return {.kind = kind,
          .rank = rank_,
          .chunk = life.chunk,
          .micro_batch = life.micro_batch,
          .first = life.block,
          .last = life.block + 1,
          .slot = tape,
          .segment = slot,
          .host = life.host,
          .lasts = prices_.copy_of_segment(life.block)};
}

}  // namespace mindpipe
