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

/// Indices within bounds, `after` names earlier actions only. The other parts rely on it.
void check_fields(const Program& program, const Outline& outline, Findings& findings);
/// Channels, groups, tickets, and both replays.
void check_communication(const Program& program, Findings& findings);
/// Inputs, tapes, order of accumulation.
void check_passes(const Program& program, const Outline& outline, Findings& findings);
/// From the last backward to the updated values.
void check_updates(const Program& program, const Outline& outline, Findings& findings);
/// Reuse of arenas and boundary buffers.
void check_slots(const Program& program, const Outline& outline, Findings& findings);

/// Zeroing of gradients, and turns in their slabs.
void check_gradients(const Program& program, const Outline& outline, Findings& findings);

/// True when `action` waits directly for the entry `earlier`.
bool waits_for(const Action& action, int earlier);

}  // namespace mindpipe
