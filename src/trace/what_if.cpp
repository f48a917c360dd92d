#include "trace/what_if.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/check.h"
#include "core/middle.h"
#include "core/text.h"
#include "trace/rank_speeds.h"
#include "trace/work_model.h"

namespace mindpipe {

WhatIf::WhatIf(const std::string& text, const ReplayGraph& graph, const std::vector<std::string>& nodes)
    : graph_(graph), nodes_(nodes), text_(text) {
  const std::size_t equals = text.find('=');
  MP_REQUIRE(equals != std::string::npos, Exit::usage,
             "--scale {}: expected SELECTOR=FACTOR, SELECTOR=+TIME, SELECTOR=ideal or SELECTOR=free", text);
  understand(text.substr(0, equals));
  understand_amount(text.substr(equals + 1));
  MP_REQUIRE(how_ != Amount::ideal || part_ != Part::axis || axis_ != Axis::tensor, Exit::usage,
             "--scale {}: tensor sums have no peers to be compared with (give a factor, or free)", text);
}

void WhatIf::understand_amount(const std::string& amount) {
  const auto named = kind_named<Amount>(amount);
  if (named && *named != Amount::factor) how_ = *named;
  else if (amount.starts_with('+')) {
    const auto seconds = parse_seconds(std::string_view(amount).substr(1));
    constexpr double most = 3600;
    MP_REQUIRE(seconds && *seconds >= 0 && *seconds <= most, Exit::usage,
               "--scale {}: '{}' is no time to add (+2ms)", text_, amount);
    later_ = std::llround(*seconds * 1e9);
  } else {
    const auto [end, error] = std::from_chars(amount.data(), amount.data() + amount.size(), factor_);
    constexpr double most = 1e6;
    MP_REQUIRE(
        error == std::errc{} && end == amount.data() + amount.size() && factor_ >= 0 && factor_ <= most,
        Exit::usage,
        "--scale {}: '{}' is no factor (1.5, 0.8), nor a time to add (+2ms), nor ideal, nor free", text_,
        amount);
  }
}

int WhatIf::number_below(const std::string& text, int end, const char* what) const {
  int number = -1;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  MP_REQUIRE(error == std::errc{} && rest == text.data() + text.size() && number >= 0 && number < end,
             Exit::usage, "--scale {}: there is no {} '{}' (there are {}, from 0 on)", text_, what, text,
             end);
  return number;
}

void WhatIf::understand(const std::string& selector) {
  const std::size_t colon = selector.find(':');
  const std::string name = selector.substr(0, colon),
                    rest = colon == std::string::npos ? "" : selector.substr(colon + 1);
  const int stages = graph_.grid().pipeline;
  if (name == "rank") {
    part_ = Part::rank;
    number_ = number_below(rest, graph_.ranks(), "rank");
  } else if (name == "stage") {
    part_ = Part::stage;
    number_ = number_below(rest, stages, "stage");
  } else if (name == "kind") {
    part_ = Part::kind;
    const auto kind = kind_named<ActionKind>(rest);
    std::string there;
    for (const ActionKind each : all_kinds<ActionKind>())
      for (int action = 0; action < graph_.actions(); ++action)
        if (graph_.at(action).kind == each) {
          there += fmt::format("{}{}", there.empty() ? "" : ", ", each);
          break;
        }
    MP_REQUIRE(kind && there.find(rest) != std::string::npos, Exit::usage,
               "--scale {}: the steps have no actions of kind '{}' (there are {})", text_, rest, there);
    kind_ = *kind;
  } else if (name == "link") {
    MP_REQUIRE(graph_.grid().supernet == 1, Exit::usage,
               "--scale {}: with lanes a stage's messages go to stages of all lanes (say axis:pipeline)",
               text_);
    part_ = Part::link;
    const std::size_t dash = rest.find('-');
    MP_REQUIRE(dash != std::string::npos, Exit::usage, "--scale {}: a link is two stages, link:0-1", text_);
    number_ = number_below(rest.substr(0, dash), stages, "stage");
    other_ = number_below(rest.substr(dash + 1), stages, "stage");
  } else if (name == "axis") {
    part_ = Part::axis;
    const auto axis =
        std::find_if(axes.begin(), axes.end(), [&](Axis each) { return rest == name_of(each); });
    MP_REQUIRE(axis != axes.end() && *axis != Axis::supernet, Exit::usage,
               "--scale {}: there is no axis '{}' (there are pipeline, data, tensor)", text_, rest);
    axis_ = *axis;
  } else if (selector == "between-nodes") part_ = Part::between_nodes;
  else if (selector == "lag") part_ = Part::lag;
  else
    fail(Exit::usage,
         "--scale {}: there is no selector '{}' (there are rank:0 to rank:{}, stage:0 to stage:{}, "
         "kind:NAME, link:0-1, between-nodes, axis:data, lag)",
         text_, selector, graph_.ranks() - 1, stages - 1);
  if (part_ == Part::lag) return;
  for (int action = 0; action < graph_.actions(); ++action)
    if (chosen(action)) return;
  fail(Exit::usage, "--scale {}: the steps have nothing that '{}' names", text_, selector);
}

bool WhatIf::chosen(int action) const {
  const Action& what = graph_.at(action);
  const int stage = graph_.stage_of(action);
  switch (part_) {
    case Part::rank:
      return graph_.rank_of(action) == number_ && is_work(what);
    case Part::stage:
      return stage == number_ && is_work(what);
    case Part::kind:
      return what.kind == kind_;
    case Part::link:
      return is_message(what) && std::minmax(stage, what.peer) == std::minmax(number_, other_);
    case Part::between_nodes:
      return is_communication(what) && spans_nodes(graph_, nodes_, action);
    case Part::axis:
      if (axis_ == Axis::tensor) return graph_.grid().tensor > 1 && is_pass(what) && what.sums > 0;
      return axis_ == Axis::pipeline ? is_message(what) : what.group == Members::data;
    case Part::lag:
      return true;
  }
  return false;
}

/// By how much to scale what takes `own` where the same takes so long on all ranks.
double WhatIf::factor_of(const std::vector<std::int64_t>& of_peers, std::int64_t own) const {
  if (how_ == Amount::free || own == 0) return how_ == Amount::factor ? factor_ : 0;
  if (how_ == Amount::factor) return factor_;
  return std::min(1.0, lower_middle({of_peers.begin(), of_peers.end()}) / static_cast<double>(own));
}

/// Peers are the like action on the other replicas or, of a lone replica, equal work on all ranks.
void WhatIf::change(ReplayTimes& times, ReplayRow& row, int action, const ReplayRow& before) const {
  const auto of_peers = [&](const auto& time) {
    std::vector<std::int64_t> peers;
    if (how_ != Amount::ideal) return peers;
    const Action& what = graph_.at(action);
    const bool alone = graph_.grid().data * graph_.grid().tensor == 1;
    for (int rank = 0; rank < graph_.ranks(); ++rank) {
      const bool same_list = graph_.runs_same_list(rank, graph_.rank_of(action));
      if (!alone && same_list && part_ != Part::stage && part_ != Part::link)
        peers.push_back(time(graph_.first_of(rank) + graph_.index_of(action)));
      else if (alone || part_ == Part::stage || part_ == Part::link)
        for (int other = graph_.first_of(rank); other < graph_.first_of(rank + 1); ++other)
          if (graph_.at(other).kind == what.kind && graph_.at(other).payload == what.payload &&
              graph_.at(other).last - graph_.at(other).first == what.last - what.first)
            peers.push_back(time(other));
    }
    return peers;
  };
  if (part_ == Part::lag) {
    const double factor = factor_of(of_peers([&](int other) { return before.lag[other]; }), row.lag[action]);
    row.lag[action] = std::llround(static_cast<double>(row.lag[action]) * factor) + later_;
    return;
  }
  const auto computed = [&](int other) { return computed_by(before, times, other); };
  const std::int64_t own = computed(action);
  scale_computed(row, times, action, factor_of(of_peers(computed), own));
  if (!sends(graph_.at(action))) row.lasts[action] += later_;  // a message is late where it comes
}

void WhatIf::apply(ReplayTimes& times) const {
  for (ReplayRow& row : times.rows) {
    const ReplayRow before = row;
    if (part_ == Part::axis && axis_ == Axis::tensor)
      for (SumTimes& sum : row.sums)
        sum.takes = std::llround(static_cast<double>(sum.takes) * factor_of({sum.takes}, 1)) + later_;
    else
      for (int action = 0; action < graph_.actions(); ++action)
        if (chosen(action)) change(times, row, action, before);
  }
}

}  // namespace mindpipe
