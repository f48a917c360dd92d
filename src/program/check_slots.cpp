#include <algorithm>
#include <map>
#include <tuple>

#include "program/checker_parts.h"
#include "program/ended_before.h"
#include "program/simulate.h"

namespace mindpipe {
namespace {

/// What lies in a buffer: which cut, micro-batch and direction; who wrote it, who has read it, and who used
/// what lay there before.
struct Occupant {
  int cut = -1, micro_batch = -1;
  bool with_forward = true;
  std::vector<int> writers, readers, users_before;
  auto identity() const { return std::tuple(cut, micro_batch, with_forward); }
};

class SlotChecker {
 public:
  SlotChecker(const Program& program, const Outline& outline, int rank, Findings& findings)
      : list_(program.ranks[rank]), outline_(outline), rank_(rank), findings_(findings), ended_(list_) {}

  void run() {
    for (int index = 0; index < static_cast<int>(list_.size()); ++index) {
      const Action& action = list_[index];
      if (crosses_cut(action)) {
        const bool with_forward = travels_forward(action.payload);
        if (action.kind == ActionKind::send) read(index, action.slot, action.first, with_forward);
        else write(index, action.to_slot, action.first, with_forward);
      }
      if (action.kind == ActionKind::forward || is_backward(action)) pass(index, action);
      if (is_pass(action)) arena(index, action);
    }
  }

 private:
  void pass(int index, const Action& action) {
    const bool forward = action.kind == ActionKind::forward;
    const int first = outline_.first_block[action.chunk], last = outline_.first_block[action.chunk + 1];
    const int below = action.chunk > 0 ? first : -1,
              above = action.chunk < outline_.all_chunks() - 1 ? last : -1;
    const int in_cut = forward ? below : above, out_cut = forward ? above : below;
    if (in_cut >= 0) read(index, action.from_slot, in_cut, forward);
    if (out_cut >= 0 && (forward || action.first == first)) write(index, action.to_slot, out_cut, forward);
  }

  void write(int index, int slot, int cut, bool with_forward) {
    if (slot < 0) return findings_.add(rank_, index, "has no buffer to write to");
    Occupant next;
    next.cut = cut;
    next.micro_batch = list_[index].micro_batch;
    next.with_forward = with_forward;
    Occupant& now = buffers_[slot];
    if (now.identity() != next.identity()) {
      next.users_before = now.writers;
      next.users_before.insert(next.users_before.end(), now.readers.begin(), now.readers.end());
      now = next;
    }
    for (int user : now.users_before)
      if (!ended_(user, index))
        findings_.add(rank_, index, "writes buffer {} while action {} ({}) may still use it", slot, user,
                      to_string(list_[user]));
    now.writers.push_back(index);
  }

  void read(int index, int slot, int cut, bool with_forward) {
    if (slot < 0) return findings_.add(rank_, index, "has no buffer to read from");
    Occupant& now = buffers_[slot];
    if (now.identity() != std::tuple(cut, list_[index].micro_batch, with_forward))
      return findings_.add(rank_, index,
                           "finds something else in buffer {} (micro-batch {} at the cut before block {})",
                           slot, now.micro_batch, now.cut);
    for (int writer : now.writers)
      if (!ended_(writer, index))
        findings_.add(rank_, index, "reads buffer {} before action {} has filled it", slot, writer);
    now.readers.push_back(index);
  }

  void arena(int index, const Action& action) {
    if (action.slot < 0) return findings_.add(rank_, index, "has no arena");
    const std::pair<int, int> tape{action.chunk, action.micro_batch};
    auto& holder = arenas_.try_emplace(action.slot, std::pair{-1, -1}).first->second;
    if (action.kind == ActionKind::forward) {
      if (holder.first >= 0)
        findings_.add(rank_, index, "writes arena {}, which still holds the tape of micro-batch {}, chunk {}",
                      action.slot, holder.second, holder.first);
      holder = tape;
    } else if (holder != tape) {
      findings_.add(rank_, index, "looks for its tape in arena {}, which does not hold it", action.slot);
    }
    if (frees_tape(action, outline_)) holder = {-1, -1};
  }

  const std::vector<Action>& list_;
  const Outline& outline_;
  int rank_;
  Findings& findings_;
  EndedBefore ended_;
  std::map<int, Occupant> buffers_;
  std::map<int, std::pair<int, int>> arenas_;
};

}  // namespace

void check_slots(const Program& program, const Outline& outline, Findings& findings) {
  for (int rank = 0; rank < static_cast<int>(program.ranks.size()); ++rank)
    SlotChecker(program, outline, rank, findings).run();
}

}  // namespace mindpipe
