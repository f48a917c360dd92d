#pragma once
#include <string>
#include <vector>

#include "core/traffic_class.h"
#include "trace/replay.h"
#include "trace/traced_ports.h"
#include "trace/work_model.h"

namespace mindpipe {

/// What makes a step longer, and who.
struct Cause {
  enum Kind : std::uint8_t {
    slow_rank,
    sometimes_slow,
    slow_stage,
    slow_link,
    micro_batches,
    jitter,
    host,
    contention
  };
  Kind kind = slow_rank;
  int rank = -1, stage = -1, peer = -1;  ///< numbers of who it is, and of a link's other stage; -1: none
  bool with_sharers = false;             ///< the rank stands for all that share its products
  double factor = 1;                     ///< times as long as its peers
  TrafficClass waits{}, holds{};         ///< traffic that is delayed, and that delays it
  Summed summed{};                       ///< where one of them is sums of gradients
  double share = 1;                      ///< share of the steps in which it was seen
  std::int64_t since = 0;                ///< number of the first of these steps
  std::int64_t saves = 0;                ///< nanoseconds of a step, were it as its peers are
  std::string reason = {};               ///< likely_reason; may be empty
  std::string place = {};                ///< host of the rank, if the job has several
};

/// The causes that are accused, the dearest first. Who waits is never accused: what counts is what a rank
/// computes, what its host takes between actions, and what a transfer takes once all of its members have
/// come. Nobody is accused on fewer than `fewest_steps` steps. `traffic`: what is known of transfers that
/// delay each other; none: nothing. `suspected`: gets ranks that were slow in fewer steps.
std::vector<Cause> causes_of(const StepTrace& trace, const ReplayGraph& graph, const ReplayTimes& measured,
                             const WorkModel& model, const Durations& paper,
                             Counted counted = Counted::behind_the_first,
                             const TracedPorts* traffic = nullptr, std::vector<Cause>* suspected = nullptr);

inline constexpr int fewest_steps = 3;
/// Share of a step that a cause has to cost.
inline constexpr double worth_saying = 0.01;

/// "slow rank"
const char* name_of(Cause::Kind kind);
/// "rank 3 (stage 1, data 0, tensor 1) computes 1.51 times as long as its peers, ..." `each`: what a period
/// is of, a step or a subnet.
std::string text_of(const Cause& cause, const ReplayGraph& graph, std::int64_t period,
                    const char* each = "step");
/// "rank 3 (...) computes 1.51 times as long as its peers in 2 of 12 steps: too few to accuse it, ..."
std::string text_of_suspect(const Cause& cause, const ReplayGraph& graph, std::size_t steps);

}  // namespace mindpipe
