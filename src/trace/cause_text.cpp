#include <iterator>

#include "core/text.h"
#include "trace/causes.h"

namespace mindpipe {
namespace {

std::string rank_of(const Cause& cause, const ReplayGraph& graph) {
  return graph.name_of_rank(cause.rank) + (cause.place.empty() ? "" : " on " + cause.place);
}

std::string what(const Cause& cause, const ReplayGraph& graph, std::int64_t period) {
  switch (cause.kind) {
    case Cause::slow_rank:
      return fmt::format("{}{} computes {:.2f} times as long as its peers", rank_of(cause, graph),
                         cause.with_sharers ? ", or one that shares its products," : "", cause.factor);
    case Cause::sometimes_slow:
      return fmt::format("{} computes {:.2f} times as long as its peers in some steps", rank_of(cause, graph),
                         cause.factor);
    case Cause::slow_stage:
      return fmt::format("stage {} computes {:.2f} times as long as the mean of the others", cause.stage,
                         cause.factor);
    case Cause::slow_link:
      return fmt::format(
          "messages between stages {} and {}{} take {:.{}f} times as long as on other links (below three "
          "links: as on paper)",
          cause.stage, cause.peer, cause.rank < 0 ? "" : " from or to " + rank_of(cause, graph), cause.factor,
          cause.factor < 10 ? 2 : 0);
    case Cause::micro_batches:
      return fmt::format("micro-batches are unequal: their times scatter by {:.0f} %",
                         100 * (cause.factor - 1));
    case Cause::jitter:
      return fmt::format("passes of {} scatter by {:.0f} %, more than those of other ranks",
                         rank_of(cause, graph), 100 * (cause.factor - 1));
    case Cause::contention:
      return pair_text({cause.waits, cause.holds, 0, cause.saves, cause.summed},
                       {.time = period, .count = 1, .pairs = {}}, "step");
    case Cause::host:
      return fmt::format("the host of {} takes longer between actions than others do", rank_of(cause, graph));
  }
  return "";
}

/// What a kind of cause is called, and what to do about it, in the order of the kinds.
constexpr struct {
  const char *name, *remedy;
} rows[] = {
    {"slow rank", "see what else its processor runs, its clock and its temperature, or leave its node out"},
    {"sometimes slow", "look for what runs beside it at these steps"},
    {"slow stage", "give it fewer blocks with schedule.cuts"},
    {"slow link", "look at the network between their nodes, or place these stages on one"},
    {"unequal micro-batches", "sort or pack sequences by length, so that micro-batches cost alike"},
    {"jitter", "pin its threads, and look for what shares its processor"},
    {"host", "look for what its host does between actions: reading data, logging, other processes"},
    {"contention", "ask plan --simulate which change of the layout parts them"}};
static_assert(std::size(rows) == Cause::contention + 1);

}  // namespace

const char* name_of(Cause::Kind kind) { return rows[kind].name; }

std::string text_of(const Cause& cause, const ReplayGraph& graph, std::int64_t period, const char* each) {
  const auto seconds = [](std::int64_t ns) { return human_seconds(static_cast<double>(ns) * 1e-9); };
  if (cause.kind == Cause::contention)
    return fmt::format("{}; seen since {} {}. What to do: {}; a {} would then take {}",
                       what(cause, graph, period), each, cause.since, rows[cause.kind].remedy, each,
                       seconds(period - cause.saves));
  return fmt::format(
      "{0}, in {1} {7}s since {7} {2}; it costs {3} a {7} ({4:.1f} %){5}. What to do: "
      "{6}; a {7} would then take {8}",
      what(cause, graph, period),
      cause.share == 1 ? "all" : fmt::format("{:.0f} % of the", 100 * cause.share), cause.since,
      seconds(cause.saves), 100 * static_cast<double>(cause.saves) / static_cast<double>(period),
      cause.reason.empty() ? "" : "; likely: " + cause.reason, rows[cause.kind].remedy, each,
      seconds(period - cause.saves));
}

std::string text_of_suspect(const Cause& cause, const ReplayGraph& graph, std::size_t steps) {
  constexpr double wanted = fewest_steps + 1;
  const double all = static_cast<double>(steps);
  return fmt::format(
      "{} computes {:.2f} times as long as its peers in {:.0f} of {} steps, first in {}: too few to accuse "
      "it; "
      "a trace of {:.0f} steps (trace.steps) would tell whether it does so again and again",
      rank_of(cause, graph), cause.factor, cause.share * all, steps, cause.since, wanted / cause.share);
}

}  // namespace mindpipe
