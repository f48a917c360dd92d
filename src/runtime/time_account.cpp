#include "runtime/time_account.h"

#include "core/check.h"

namespace mindpipe {

std::int64_t& work_of(TimeSpent& spent, ActionKind kind) {
  switch (kind) {
    case ActionKind::forward:
      return spent.forward;
    case ActionKind::backward:
    case ActionKind::backward_input:
    case ActionKind::backward_weight:
      return spent.backward;
    case ActionKind::update:
      return spent.update;
    case ActionKind::sum_scalar:
      return spent.scalars;
    case ActionKind::send:
    case ActionKind::receive:
    case ActionKind::reduce:
    case ActionKind::gather:
      break;
  }
  fail(Exit::internal, "{} is no work of the compute queue", name_of(kind));
}

std::int64_t& wait_inside(TimeSpent& spent, ActionKind kind) {
  return traits_of(kind).traffic == TrafficClass::scalars ? spent.wait_scalars : spent.wait_tensor;
}

std::int64_t& wait_for(TimeSpent& spent, ActionKind awaited) {
  switch (awaited) {
    case ActionKind::reduce:
    case ActionKind::gather:
      return spent.wait_data;
    case ActionKind::send:
    case ActionKind::receive:
    case ActionKind::forward:
    case ActionKind::backward:
    case ActionKind::backward_input:
    case ActionKind::backward_weight:
    case ActionKind::update:
    case ActionKind::sum_scalar:
      return spent.wait_pipeline;
  }
  return spent.wait_pipeline;
}

}  // namespace mindpipe
