#pragma once
#include <cstdint>
#include <vector>

#include "plan/choose_tapes.h"

namespace mindpipe {

/// Where each stage but the first begins, and what becomes of the tapes.
struct CutOfTapes {
  std::vector<int> cuts;
  TapeChoice choice;
  bool operator==(const CutOfTapes&) const = default;
};

/// Cuts whose stages fit into `limit` bytes by what is known of blocks alone, each stage with the tapes that
/// choose_tapes takes for it: one by which a step is as short as can be, by what each stage says of it, and
/// some by which it may be longer, if all stages together take less. `kept` and `again`: the model with no
/// block computed again and with all, one chunk a stage; `in_flight`: micro-batches that a stage keeps at
/// once. Empty: no cut fits.
std::vector<CutOfTapes> cuts_of_tapes(const Outline& kept, const Outline& again,
                                      const std::vector<int>& in_flight, const TapeRules& rules,
                                      std::int64_t limit);

}  // namespace mindpipe
