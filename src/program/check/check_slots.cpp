#include <algorithm>
#include <map>
#include <tuple>

#include "program/check/checker_parts.h"
#include "program/check/ended_before.h"
#include "program/clock/simulate.h"

namespace mindpipe {
namespace {

/// What lies in a buffer; who wrote it, who has read it, and who used what lay there before.
struct Occupant {
  int cut = -1, micro_batch = -1;
  bool with_forward = true;
  std::vector<int> writers, readers, users_before;
  auto identity() const { return std::tuple(cut, micro_batch, with_forward); }
};

class SlotCheck : RankCheck {
 public:
  SlotCheck(const Program& program, const Outline& outline, int rank, Findings& findings)
      : RankCheck(program, outline, rank, findings), ended_(list_) {}

  void run() {
    for (; index_ < count(); ++index_) {
      const Action& action = list_[index_];
      if (crosses_cut(action)) {
        const bool with_forward = travels_forward(action.payload);
        if (sends(action)) read(action.from_buffer, action.first, with_forward);
        else write(action.to_buffer, action.first, with_forward);
      }
      if (is_forward(action) || is_backward(action)) pass(action);
      if (is_pass(action)) arena(action);
    }
  }

 private:
  void pass(const Action& action) {
    const bool forward = is_forward(action);
    const int first = outline_.first_block[action.chunk], last = outline_.first_block[action.chunk + 1];
    const int below = action.chunk > 0 ? first : -1,
              above = action.chunk < outline_.all_chunks() - 1 ? last : -1;
    const int in_cut = forward ? below : above, out_cut = forward ? above : below;
    if (in_cut >= 0) read(action.from_buffer, in_cut, forward);
    if (out_cut >= 0 && (forward || action.first == first)) write(action.to_buffer, out_cut, forward);
  }

  void write(int buffer, int cut, bool with_forward) {
    if (buffer < 0) return wrong("has no buffer to write to");
    Occupant next{cut, action().micro_batch, with_forward, {}, {}, {}};
    Occupant& now = buffers_[buffer];
    if (now.identity() != next.identity()) {
      next.users_before = now.writers;
      next.users_before.insert(next.users_before.end(), now.readers.begin(), now.readers.end());
      now = next;
    }
    for (int user : now.users_before)
      if (!ended_(user, index_))
        wrong("writes buffer {} while action {} ({}) may still use it", buffer, user, to_string(list_[user]));
    now.writers.push_back(index_);
  }

  void read(int buffer, int cut, bool with_forward) {
    if (buffer < 0) return wrong("has no buffer to read from");
    Occupant& now = buffers_[buffer];
    if (now.identity() != std::tuple(cut, action().micro_batch, with_forward))
      return wrong("finds something else in buffer {} (micro-batch {} at the cut before block {})", buffer,
                   now.micro_batch, now.cut);
    for (int writer : now.writers)
      if (!ended_(writer, index_)) wrong("reads buffer {} before action {} has filled it", buffer, writer);
    now.readers.push_back(index_);
  }

  void arena(const Action& action) {
    if (action.tape < 0) return wrong("has no arena");
    const std::pair<int, int> tape{action.chunk, action.micro_batch};
    auto& holder = arenas_.try_emplace(action.tape, std::pair{-1, -1}).first->second;
    if (is_forward(action)) {
      if (holder.first >= 0)
        wrong("writes arena {}, which still holds the tape of micro-batch {}, chunk {}", action.tape,
              holder.second, holder.first);
      holder = tape;
    } else if (holder != tape) {
      wrong("looks for its tape in arena {}, which does not hold it", action.tape);
    }
    if (frees_tape(action, outline_)) holder = {-1, -1};
  }

  EndedBefore ended_;
  std::map<int, Occupant> buffers_;
  std::map<int, std::pair<int, int>> arenas_;
};

}  // namespace

void check_slots(const Program& program, const Outline& outline, Findings& findings) {
  check_every_rank<SlotCheck>(program, outline, findings);
}

}  // namespace mindpipe
