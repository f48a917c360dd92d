#pragma once
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "core/kinds.h"

namespace mindpipe {

/// What the program knows of a kind of fault.
struct FaultRow {
  std::string_view name;
  std::string_view argument;  ///< what may stand behind the step
  bool names_link = false;    ///< two ranks stand before the step, as 1-2
  bool needs_argument = false;
  bool may_end = false;  ///< it lasts, and may do so up to a step, as 30-60
};
#define MINDPIPE_FAULTS(kind)                                                                            \
  kind(kill, "kill", "") kind(stop, "stop", "") kind(exit, "exit", "the exit code") kind(nan, "nan", "") \
      kind(inf, "inf", "") kind(flip, "flip", "TENSOR/SLOT/ELEMENT/BIT")                                 \
          kind(slow, "slow", "seconds or a factor, and /EVERY", false, false, true)                      \
              kind(lost_message, "lost-message", "")                                                     \
                  kind(slow_link, "slow-link", "seconds", true, true, true)                              \
                      kind(jitter, "jitter", "a share", false, true, true)                               \
                          kind(uneven, "uneven", "a share", false, true, true)                           \
                              kind(skew, "skew", "seconds, and +PPMppm", false, true)
/// A fault to try: what happens to a rank at a step, as it might by itself.
MINDPIPE_KINDS(FaultKind, FaultRow, MINDPIPE_FAULTS)

/// A fault that was asked for on the command line.
struct Injection {
  FaultKind kind = FaultKind::kill;
  int rank = 0;
  int peer = -1;                                                 ///< the link's other rank
  std::int64_t step = 1;                                         ///< counted from 1, as in metrics
  std::int64_t last = std::numeric_limits<std::int64_t>::max();  ///< the last step of what lasts
  std::string argument;
  std::string text;        ///< the words of the command line
  double factor = 0;       ///< times as long as before; of jitter and uneven: a share; 0: none
  double seconds = 0;      ///< to sleep, to be late, or to be ahead
  double ppm = 0;          ///< by how many millionths a clock is fast
  std::int64_t every = 0;  ///< it comes again after so many steps; 0: a factor in each, sleep but once
};

/// Text of all faults, with commas between them.
std::string text_of(const std::vector<Injection>& injections);

/// Understands "nan@1:7", "slow@0:3:2.5s", "slow@0:3-60:1.5/7" or "slow-link@1-2:1:2ms", or fails with exit
/// code 2 and a sentence.
Injection parse_injection(const std::string& text);

}  // namespace mindpipe
