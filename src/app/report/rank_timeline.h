#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "program/clock/simulate.h"
#include "trace/replay_graph.h"

namespace mindpipe {

/// Begin and end of an action in a step that is drawn.
using SpanOf = std::function<Span(int action)>;

/// When step `step` of a trace ran, from its first action on.
SpanOf spans_in(const StepTrace& trace, const ReplayGraph& graph, std::size_t step);

/// The latest end of a step's actions.
std::int64_t length_of(const ReplayGraph& graph, const SpanOf& span);

/// One step of all ranks; `shown`: the longest step of several pictures, in nanoseconds.
std::string timeline_picture(const std::string& title, const ReplayGraph& graph, const SpanOf& span,
                             std::int64_t shown);

}  // namespace mindpipe
