#pragma once
#include <fmt/core.h>

#include <string>
#include <utility>
#include <vector>

#include "program/action.h"
#include "program/outline.h"

namespace mindpipe {

/// Gathers what is wrong, each line led by where it stands.
class Findings {
 public:
  explicit Findings(const Program& program) : program_(program) {}
  template <class... Parts>
  void add(int rank, int index, fmt::format_string<Parts...> sentence, Parts&&... parts) {
    errors_.push_back(fmt::format("rank {}, action {} ({}): {}", rank, index,
                                  to_string(program_.ranks[rank][index]),
                                  fmt::format(sentence, std::forward<Parts>(parts)...)));
  }
  template <class... Parts>
  void add_for_rank(int rank, fmt::format_string<Parts...> sentence, Parts&&... parts) {
    errors_.push_back(fmt::format("rank {}: {}", rank, fmt::format(sentence, std::forward<Parts>(parts)...)));
  }
  bool empty() const { return errors_.empty(); }
  std::vector<std::string> take() { return std::move(errors_); }

 private:
  const Program& program_;
  std::vector<std::string> errors_;
};

/// A look through the list of one rank for what is wrong with it.
class RankCheck {
 public:
  RankCheck(const Program& program, const Outline& outline, int rank, Findings& findings)
      : list_(program.ranks[rank]), outline_(outline), rank_(rank), findings_(findings) {}

 protected:
  int count() const { return static_cast<int>(list_.size()); }
  const Action& action() const { return list_[index_]; }
  /// The action that is looked at is wrong; the one at `index` is; something is missing in the list.
  template <class... Parts>
  void wrong(fmt::format_string<Parts...> sentence, Parts&&... parts) {
    findings_.add(rank_, index_, sentence, std::forward<Parts>(parts)...);
  }
  template <class... Parts>
  void wrong_at(int index, fmt::format_string<Parts...> sentence, Parts&&... parts) {
    findings_.add(rank_, index, sentence, std::forward<Parts>(parts)...);
  }
  template <class... Parts>
  void missing(fmt::format_string<Parts...> sentence, Parts&&... parts) {
    findings_.add_for_rank(rank_, sentence, std::forward<Parts>(parts)...);
  }

  const std::vector<Action>& list_;
  const Outline& outline_;
  const int rank_;
  int index_ = 0;  ///< of the action that is looked at

 private:
  Findings& findings_;
};

template <class Check>
void check_every_rank(const Program& program, const Outline& outline, Findings& findings) {
  for (int rank = 0; rank < static_cast<int>(program.ranks.size()); ++rank)
    Check(program, outline, rank, findings).run();
}

/// Indices within bounds, `after` names earlier actions only. The other parts rely on it.
void check_fields(const Program& program, const Outline& outline, Findings& findings);
/// Checks channels, groups, tickets, and both replays.
void check_communication(const Program& program, Findings& findings);
/// Checks inputs, tapes, order of accumulation.
void check_passes(const Program& program, const Outline& outline, Findings& findings);
/// Checks the way from the last backward to the updated values.
void check_updates(const Program& program, const Outline& outline, Findings& findings);
/// Checks the reuse of arenas and boundary buffers.
void check_slots(const Program& program, const Outline& outline, Findings& findings);
/// Checks the zeroing of gradients, and turns in their slabs.
void check_gradients(const Program& program, const Outline& outline, Findings& findings);

/// True when `action` waits directly for the entry `earlier`.
bool waits_for(const Action& action, int earlier);

}  // namespace mindpipe
