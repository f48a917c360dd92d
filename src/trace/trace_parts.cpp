#include "trace/trace_parts.h"

#include <algorithm>
#include <cmath>

#include "core/middle.h"

namespace mindpipe {
namespace {

constexpr int kinds = static_cast<int>(std::size(ActionKind_rows)),
              payloads = static_cast<int>(std::size(Payload_rows));

}  // namespace

int lag_class(const ReplayGraph& graph, int action) {
  const Action& what = graph.at(action);
  return graph.wait_of(action).is_for_nothing()
             ? kinds * payloads
             : static_cast<int>(what.kind) * payloads + static_cast<int>(what.payload);
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

TraceParts::TraceParts(const ReplayGraph& graph, const ReplayTimes& measured, const WorkModel& model,
                       const TracedPorts* traffic)
    : graph_(graph),
      measured_(measured),
      model_(model),
      traffic_(traffic),
      usual_lags_(usual_lags(graph, measured)) {
  for (const auto kind :
       {TracePart::host, TracePart::noise, TracePart::micro_batches, TracePart::ranks, TracePart::stages})
    all_.push_back({kind});
  if (traffic != nullptr && !traffic->found().empty()) {
    all_.push_back({TracePart::contention});
    without_waits_ = traffic->without_waits();
  }
  if (measured.sums_of.back() > 0) all_.push_back({TracePart::tensor_sums});
  for (const TrafficClass of : {TrafficClass::pipeline, TrafficClass::gradients, TrafficClass::moves,
                                TrafficClass::values, TrafficClass::scalars})
    if (has(of)) all_.push_back({TracePart::traffic, of});
}

bool TraceParts::has(TrafficClass kind) const {
  for (int action = 0; action < graph_.actions(); ++action)
    if (!is_work(graph_.at(action)) && class_of(graph_.at(action)) == kind) return true;
  return false;
}

/// A part that the trace has not is never taken away.
bool TraceParts::keeps(const Kept& kept, TracePart::Kind kind, TrafficClass of) const {
  for (std::size_t part = 0; part < all_.size(); ++part)
    if (all_[part].kind == kind && (kind != TracePart::traffic || all_[part].of == of)) return kept[part];
  return true;
}

const ReplayTimes& TraceParts::with(const Kept& kept) {
  const bool waits = keeps(kept, TracePart::contention);
  times_ = waits ? measured_ : without_waits_;
  if (!keeps(kept, TracePart::host))
    for (ReplayRow& row : times_.rows)
      for (int action = 0; action < graph_.actions(); ++action)
        row.lag[action] = usual_lags_[lag_class(graph_, action)];
  compute(kept);
  if (!keeps(kept, TracePart::tensor_sums))
    for (ReplayRow& row : times_.rows)
      for (SumTimes& sum : row.sums) sum.takes = 0;
  for (const TracePart& part : all_)
    if (part.kind == TracePart::traffic && !keeps(kept, part.kind, part.of)) keep_waits(part.of, waits);
  return times_;
}

/// Lets all actions compute G x W x M x noise, each as it was or as it should be.
void TraceParts::compute(const Kept& kept) {
  const bool noise = keeps(kept, TracePart::noise), micro_batches = keeps(kept, TracePart::micro_batches),
             ranks = keeps(kept, TracePart::ranks), stages = keeps(kept, TracePart::stages);
  if (noise && micro_batches && ranks && stages) return;
  for (std::size_t step = 0; step < times_.rows.size(); ++step)
    for (int action = 0; action < graph_.actions(); ++action) {
      const int work = model_.works().of(action);
      if (work < 0) continue;
      const double G = model_.G(work), W = model_.W(graph_.rank_of(action), work), M = model_.M(step, action),
                   own = model_.computed(step, action);
      const double mean_M = graph_.at(action).micro_batch < 0 ? 1.0 : model_.mean_M();
      double wanted = G * (ranks ? W : 1) * (micro_batches ? M : mean_M);
      if (!stages) wanted *= model_.mean_time(work) / model_.stage_time(work);
      if (noise) wanted *= own / (W * G * M);
      const auto now = static_cast<double>(computed_by(times_.rows[step], times_, action));
      if (now > 0) scale_computed(times_.rows[step], times_, action, wanted / now);
      else times_.rows[step].lasts[action] = std::llround(wanted);
    }
}

/// Leaves of transfers of a class what they waited for others, or nothing.
void TraceParts::keep_waits(TrafficClass of, bool with_waits) {
  for (std::size_t step = 0; step < times_.rows.size(); ++step)
    for (int action = 0; action < graph_.actions(); ++action)
      if (!is_work(graph_.at(action)) && class_of(graph_.at(action)) == of)
        times_.rows[step].lasts[action] =
            with_waits && !without_waits_.rows.empty()
                ? std::max<std::int64_t>(
                      0, measured_.rows[step].lasts[action] - without_waits_.rows[step].lasts[action])
                : 0;
}

}  // namespace mindpipe
