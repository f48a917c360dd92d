#include "runtime/time_account.h"

#include "core/check.h"

namespace mindpipe {

std::int64_t& work_of(TimeSpent& spent, ActionKind kind) {
  std::int64_t* booked = by_shape(
      kind,
      [&](const PassTraits& pass) {
        return pass.travel == Travel::forward ? &spent.forward : &spent.backward;
      },
      [&](const UnitTraits&) { return &spent.update; },
      [](const CopyTraits&) { return static_cast<std::int64_t*>(nullptr); },
      [](const MessageTraits&) { return static_cast<std::int64_t*>(nullptr); },
      [&](const CollectiveTraits&) { return &spent.scalars; });
  MP_CHECK(booked != nullptr && traits_of(kind).queue == Queue::compute, "{} is no work of the compute queue",
           kind);
  return *booked;
}

std::int64_t& wait_inside(TimeSpent& spent, ActionKind kind) {
  return traits_of(kind).traffic == TrafficClass::scalars ? spent.wait_scalars : spent.wait_tensor;
}

std::int64_t& wait_for(TimeSpent& spent, ActionKind awaited) {
  switch (traits_of(awaited).queue) {
    case Queue::copy_in:
    case Queue::copy_out:
      return spent.wait_copy;
    case Queue::bulk:
      return spent.wait_data;
    case Queue::compute:
    case Queue::receive:
    case Queue::send:
      break;
  }
  return spent.wait_pipeline;
}

std::int64_t& wait_because(SubnetWaits& waits, WaitReason reason) {
  return reason == WaitReason::owner ? waits.owner : reason == WaitReason::room ? waits.room : waits.input;
}

}  // namespace mindpipe
