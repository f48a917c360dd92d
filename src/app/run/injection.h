#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/kinds.h"

namespace mindpipe {

/// What the program knows of a kind of fault.
struct FaultRow {
  std::string_view name;
  std::string_view argument;  ///< what may stand behind the step
};
#define MINDPIPE_FAULTS(kind)                                                                            \
  kind(kill, "kill", "") kind(stop, "stop", "") kind(exit, "exit", "the exit code") kind(nan, "nan", "") \
      kind(inf, "inf", "") kind(flip, "flip", "TENSOR/SLOT/ELEMENT/BIT") kind(slow, "slow", "seconds")   \
          kind(lost_message, "lost-message", "")
/// A fault to try: what happens to a rank at a step, as it might by itself.
MINDPIPE_KINDS(FaultKind, FaultRow, MINDPIPE_FAULTS)

/// A fault that was asked for on the command line.
struct Injection {
  FaultKind kind = FaultKind::kill;
  int rank = 0;
  std::int64_t step = 1;  ///< counted from 1, as in metrics
  std::string argument;
  std::string text;  ///< the words of the command line
};

/// Text of all faults, with commas between them.
std::string text_of(const std::vector<Injection>& injections);

/// Understands "nan@1:7" or "slow@0:3:2.5", or fails with exit code 2 and a sentence.
Injection parse_injection(const std::string& text);

}  // namespace mindpipe
