#include "trace/levels.h"

#include <algorithm>
#include <cmath>

#include "core/middle.h"

namespace mindpipe {
namespace {

constexpr int kinds = static_cast<int>(std::size(ActionKind_rows)),
              payloads = static_cast<int>(std::size(Payload_rows));

/// Takes causes away from a trace's times, one after the other.
class Removing {
 public:
  Removing(const ReplayGraph& graph, const ReplayTimes& measured, const WorkModel& model, Counted counted)
      : graph_(graph), model_(model), counted_(counted), times_(measured) {
    levels_.push_back({"as it ran", period(), 0});
  }

  void away(const std::string& cause, const std::string& remedy = "") {
    const std::int64_t now = period();
    levels_.push_back({cause, now, levels_.back().period - now, remedy});
  }

  void equal_lags(const std::vector<std::int64_t>& usual) {
    for (ReplayRow& row : times_.rows)
      for (int action = 0; action < graph_.actions(); ++action)
        row.lag[action] = usual[lag_class(graph_, action)];
  }

  /// Lets all actions compute what `time(step, action, work)` says.
  template <class Time>
  void compute(const Time& time) {
    for (std::size_t step = 0; step < times_.rows.size(); ++step)
      for (int action = 0; action < graph_.actions(); ++action) {
        const int work = model_.work_of(action);
        if (work < 0) continue;
        const auto now = static_cast<double>(computed_by(times_.rows[step], times_, action));
        const double wanted = time(step, action, work);
        if (now > 0) scale_computed(times_.rows[step], times_, action, wanted / now);
        else times_.rows[step].lasts[action] = std::llround(wanted);
      }
  }

  void without_contention(const TracedPorts& traffic) {
    for (const Contention& pair : traffic.found()) traffic.remove({pair.waits, pair.holds}, times_);
  }
  void free_tensor_sums() {
    for (ReplayRow& row : times_.rows)
      for (SumTimes& sum : row.sums) sum.takes = 0;
  }
  void free_traffic(TrafficClass kind) {
    for (ReplayRow& row : times_.rows)
      for (int action = 0; action < graph_.actions(); ++action)
        if (!is_work(graph_.at(action)) && class_of(graph_.at(action)) == kind) row.lasts[action] = 0;
  }
  bool has(TrafficClass kind) const {
    for (int action = 0; action < graph_.actions(); ++action)
      if (!is_work(graph_.at(action)) && class_of(graph_.at(action)) == kind) return true;
    return false;
  }

  /// What the rank with the most work computes in a step.
  void nothing_but_work() {
    std::int64_t most = 0;
    for (int rank = 0; rank < graph_.ranks(); ++rank) {
      std::int64_t work = 0;
      for (const ReplayRow& row : times_.rows)
        for (int action = graph_.first_of(rank); action < graph_.first_of(rank + 1); ++action)
          if (model_.work_of(action) >= 0) work += computed_by(row, times_, action);
      most = std::max(most, work / std::ssize(times_.rows));
    }
    levels_.push_back({"the schedule's bubble", most, levels_.back().period - most,
                       "more micro-batches a step fill the pipeline (a smaller train.micro_batch, a larger "
                       "train.batch), and schedule.kind: zb-h1 or interleaved shortens what is left"});
  }

  std::vector<StepLevel> take() { return std::move(levels_); }
  ReplayTimes take_times() { return std::move(times_); }

 private:
  std::int64_t period() const {
    return replay(graph_, times_, static_cast<int>(times_.rows.size())).period(counted_);
  }

  const ReplayGraph& graph_;
  const WorkModel& model_;
  Counted counted_;
  ReplayTimes times_;
  std::vector<StepLevel> levels_;
};

}  // namespace

int lag_class(const ReplayGraph& graph, int action) {
  const Action& what = graph.at(action);
  return begins_step(graph, action) ? kinds * payloads
                                    : static_cast<int>(what.kind) * payloads + static_cast<int>(what.payload);
}

bool begins_step(const ReplayGraph& graph, int action) {
  const ListWait& wait = graph.wait_of(action);
  return wait.ended.empty() && wait.begun < 0;
}

std::vector<std::int64_t> usual_lags(const ReplayGraph& graph, const ReplayTimes& measured) {
  std::vector<std::vector<double>> all(kinds * payloads + 1);
  for (std::size_t step = 0; step < measured.rows.size(); ++step)
    for (int action = 0; action < graph.actions(); ++action) {
      const int kind = lag_class(graph, action);
      const bool unknown = kind == kinds * payloads && step == 0 && measured.rows.size() > 1;
      if (!unknown) all[kind].push_back(static_cast<double>(measured.rows[step].lag[action]));
    }
  std::vector<std::int64_t> usual;
  for (std::vector<double>& lags : all) usual.push_back(std::llround(median_of(lags)));
  return usual;
}

namespace {

/// Takes away what makes hosts, passes, micro-batches, ranks and stages unlike each other.
void remove_differences(Removing& removing, const ReplayGraph& graph, const ReplayTimes& measured,
                        const WorkModel& model) {
  removing.equal_lags(usual_lags(graph, measured));
  removing.away("the host between actions");
  const auto of_rank = [&](int action, int work) {
    return model.W(graph.rank_of(action), work) * model.G(work);
  };
  const auto mean_M = [&](int action) { return graph.at(action).micro_batch < 0 ? 1.0 : model.mean_M(); };
  removing.compute(
      [&](std::size_t step, int action, int work) { return of_rank(action, work) * model.M(step, action); });
  removing.away("noise");
  removing.compute([&](std::size_t, int action, int work) { return of_rank(action, work) * mean_M(action); });
  removing.away("unequal micro-batches");
  removing.compute([&](std::size_t, int action, int work) { return model.G(work) * mean_M(action); });
  removing.away("ranks slower than their peers");
  removing.compute([&](std::size_t, int action, int work) {
    return model.G(work) * mean_M(action) * model.mean_time(work) / model.stage_time(work);
  });
  removing.away("unequal stages");
}

}  // namespace

ReplayTimes ideal_times(const ReplayGraph& graph, const ReplayTimes& measured, const WorkModel& model) {
  Removing removing(graph, measured, model, Counted::behind_the_first);
  remove_differences(removing, graph, measured, model);
  return removing.take_times();
}

std::vector<StepLevel> levels_of(const ReplayGraph& graph, const ReplayTimes& measured,
                                 const WorkModel& model, Counted counted, const TracedPorts* traffic) {
  Removing removing(graph, measured, model, counted);
  remove_differences(removing, graph, measured, model);
  if (traffic != nullptr && !traffic->found().empty()) {
    removing.without_contention(*traffic);
    removing.away("traffic that delays other traffic");
  }
  if (measured.sums_of.back() > 0) {
    removing.free_tensor_sums();
    removing.away("tensor sums", "a smaller grid.tensor exchanges less, and its ranks should share a node");
  }
  static constexpr struct {
    TrafficClass kind;
    const char *name, *remedy;
  } classes[] = {{TrafficClass::pipeline, "messages between stages",
                  "fewer stages, or fewer chunks, send fewer of them"},
                 {TrafficClass::gradients, "sums of gradients",
                  "more micro-batches (a larger train.batch), or schedule.kind: breadth-first, hide them"},
                 {TrafficClass::moves, "masters and moments on their way",
                  "memory.optimizer: device fetches none from the host"},
                 {TrafficClass::values, "gathers of weights",
                  "a larger train.batch gathers less often, train.zero: 0 not at all"},
                 {TrafficClass::scalars, "sums of scalars", "a larger train.batch needs them less often"}};
  for (const auto& [kind, name, remedy] : classes) {
    if (!removing.has(kind)) continue;
    removing.free_traffic(kind);
    removing.away(name, remedy);
  }
  removing.nothing_but_work();
  return removing.take();
}

}  // namespace mindpipe
