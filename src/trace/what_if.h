#pragma once
#include <string>
#include <vector>

#include "trace/replay_times.h"

namespace mindpipe {

/// How a change says what something takes.
#define MINDPIPE_AMOUNTS(kind) kind(factor, "factor") kind(ideal, "ideal") kind(free, "free")
MINDPIPE_KINDS(Amount, NamedRow, MINDPIPE_AMOUNTS)

/// One change to what actions take: "rank:3=1.5", "link:0-1=+2ms", "kind:backward=ideal", "axis:data=free".
///
/// A rank and a stage mean what they compute; a kind of action, a link (messages both ways), traffic between
/// nodes, and an axis (pipeline, data, tensor) mean what these take; `lag` means the host's time between
/// actions. A factor makes all of it so many times as long, a time behind a plus each of it so much longer,
/// `free` takes it away, and `ideal` lets it take what the same takes on the median of the other ranks.
class WhatIf {
 public:
  /// Understands a change, or fails with exit code 2 and a sentence that says what there is.
  WhatIf(const std::string& text, const ReplayGraph& graph, const std::vector<std::string>& nodes);

  const std::string& text() const { return text_; }
  void apply(ReplayTimes& times) const;

 private:
  enum class Part : std::uint8_t { rank, stage, kind, link, between_nodes, axis, lag };

  void understand(const std::string& selector);
  void understand_amount(const std::string& amount);
  int number_below(const std::string& text, int end, const char* what) const;
  bool chosen(int action) const;
  void change(ReplayTimes& times, ReplayRow& row, int action, const ReplayRow& before) const;
  double factor_of(const std::vector<std::int64_t>& of_peers, std::int64_t own) const;

  const ReplayGraph& graph_;
  const std::vector<std::string>& nodes_;
  std::string text_;
  Part part_ = Part::lag;
  Amount how_ = Amount::factor;
  double factor_ = 1;
  std::int64_t later_ = 0;  ///< nanoseconds by which each takes longer
  int number_ = 0, other_ = 0;
  ActionKind kind_ = ActionKind::forward;
  Axis axis_ = Axis::data;
};

}  // namespace mindpipe
