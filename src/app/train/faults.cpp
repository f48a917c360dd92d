#include "app/train/faults.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <limits>
#include <sstream>
#include <thread>
#include <utility>

#include "config/config.h"
#include "core/text.h"

namespace mindpipe {
namespace {

bool comes_with_samples(FaultKind kind) { return kind == FaultKind::nan || kind == FaultKind::inf; }

/// Whether a fault is no event, but a state of its rank that lasts.
bool lasts(const Injection& injection) {
  switch (injection.kind) {
    case FaultKind::slow:
      return injection.factor > 0;
    case FaultKind::slow_link:
    case FaultKind::jitter:
    case FaultKind::uneven:
    case FaultKind::skew:
      return true;
    default:
      return false;
  }
}

/// Where a bit is: parts between slashes, of which those that are left out mean the first.
struct BitPlace {
  std::string tensor, state;
  std::int64_t element = 0, bit = 12;
};

BitPlace place_in(const Injection& injection) {
  BitPlace place{"", "value"};
  std::istringstream parts(injection.argument);
  std::string part;
  for (int i = 0; std::getline(parts, part, '/'); ++i) {
    if (part.empty()) continue;
    if (i == 0) place.tensor = part;
    else if (i == 1) place.state = part;
    else {
      MP_REQUIRE(i <= 3 && is_plain_integer(part) && part.size() < 16, Exit::usage,
                 "--inject {}: {} is no number (flip@RANK:STEP:TENSOR/SLOT/ELEMENT/BIT)", injection.text,
                 part);
      (i == 2 ? place.element : place.bit) = std::stoll(part);
    }
  }
  return place;
}

/// Turns one bit of an element around.
void flip(Backend& backend, const Tensor& element, std::int64_t bit) {
  std::vector<std::byte> bytes(element.bytes());
  backend.download(element, bytes.data());
  bytes[static_cast<std::size_t>(bit / 8) % bytes.size()] ^= std::byte{1} << (bit % 8);
  backend.upload(bytes.data(), element);
  backend.synchronize();
}

}  // namespace

Faults::Faults(Run& run, std::int64_t begun) : run_(run), has_lanes_(run.config().grid.supernet > 1) {
  for (const Injection& injection : run.injections()) {
    const int largest = std::max(injection.rank, injection.peer);
    MP_REQUIRE(largest < run.world().size, Exit::bad_configuration,
               "--inject {}: there is no rank {} (the job has {}, from 0 on)", injection.text, largest,
               run.world().size);
    MP_REQUIRE(injection.kind != FaultKind::lost_message ||
                   run.config().grid.pipeline * run.config().grid.supernet > 1,
               Exit::bad_configuration,
               "--inject {}: no message can be lost where there is one stage and one lane (grid.pipeline: 2)",
               injection.text);
    MP_REQUIRE(
        injection.kind != FaultKind::lost_message || !has_lanes_, Exit::bad_configuration,
        "--inject {}: messages between lanes have different lengths, and the next one cannot stand for "
        "a lost one (grid.supernet: 1)",
        injection.text);
    MP_REQUIRE(injection.kind == FaultKind::skew || injection.step <= run.config().train.steps,
               Exit::bad_configuration, "--inject {}: there is no step {} (the last one is {})",
               injection.text, injection.step, run.config().train.steps);
    flips_ = flips_ || injection.kind == FaultKind::flip;
    if (injection.kind == FaultKind::flip && injection.rank == run.world().rank) element_of(injection);
    const bool has_happened = injection.step <= begun && injection.every == 0;
    if (injection.rank == run.world().rank && !lasts(injection) &&
        (!has_happened || (comes_with_samples(injection.kind) && !has_lanes_)))
      due_.push_back(injection);
  }
  slow_down();
}

/// Tells the executor what makes this rank's work and messages slower than they are.
void Faults::slow_down() {
  const Layout& layout = run_.worker().layout();
  const int here = run_.world().rank;
  Slowness slowness(static_cast<std::uint64_t>(here));
  bool any = false;
  for (const Injection& injection : run_.injections()) {
    const bool is_end = injection.rank == here || injection.peer == here;
    if (injection.kind == FaultKind::slow_link) {
      const int other = injection.rank == here ? injection.peer : injection.rank;
      const Coord peer = coord_at(layout.grid, other);
      if (!is_end) continue;
      MP_REQUIRE(peer.data == layout.coord.data && peer.tensor == layout.coord.tensor && other != here,
                 Exit::bad_configuration,
                 "--inject {}: ranks {} and {} send each other no messages (stages of one replica do)",
                 injection.text, injection.rank, injection.peer);
      slowness.add(Slowness::Link{.from = injection.step,
                                  .last = injection.last,
                                  .peer = peer.supernet * layout.grid.pipeline + peer.pipeline,
                                  .later_ns = std::llround(injection.seconds * 1e9)});
    } else if (injection.kind == FaultKind::uneven) {  // all stages of a replica see the same samples
      if (coord_at(layout.grid, injection.rank).data != layout.coord.data) continue;
      slowness.add(Slowness::MicroBatches{.from = injection.step,
                                          .last = injection.last,
                                          .share = injection.factor,
                                          .seed = static_cast<std::uint64_t>(layout.coord.data)});
    } else if (is_end && lasts(injection) && injection.kind != FaultKind::skew) {
      const bool scatters = injection.kind == FaultKind::jitter;
      slowness.add(Slowness::Work{.from = injection.step,
                                  .last = injection.last,
                                  .every = std::max<std::int64_t>(1, injection.every),
                                  .factor = scatters ? 1 : injection.factor,
                                  .scatter = scatters ? injection.factor : 0});
    } else continue;
    any = true;
  }
  if (!any) return;
  MP_REQUIRE(run_.worker().executor().slow_down(slowness), Exit::bad_configuration,
             "--inject: the queues of this device carry its work and messages, so nothing can be made slower "
             "by a factor or on a link (device.kind: cpu or emulated)");
}

void Faults::before(std::int64_t step, std::int64_t first_sample) {
  let_happen([&](const Injection& injection) {
    if (injection.kind == FaultKind::flip) return false;
    if (has_lanes_ && injection.every == 0) return step + 1 >= injection.step;
    if (comes_with_samples(injection.kind))
      return first_sample == (injection.step - 1) * run_.config().train.batch;
    if (injection.every > 0)
      return step + 1 >= injection.step && step + 1 <= injection.last &&
             (step + 1 - injection.step) % injection.every == 0;
    return step + 1 == injection.step;
  });
}

void Faults::behind(std::int64_t steps) {
  if (flips_) run_.worker().settle();
  let_happen([&](const Injection& injection) {
    return injection.kind == FaultKind::flip && injection.step <= steps;
  });
}

/// What is due happens; all but what comes with samples that are seen again, or every so many steps, happens
/// once.
void Faults::let_happen(const std::function<bool(const Injection&)>& is_due) {
  const std::vector<Injection> all = std::exchange(due_, {});
  for (const Injection& injection : all) {
    const bool now = is_due(injection);
    if (now) happen(injection);
    const bool comes_again = (comes_with_samples(injection.kind) && !has_lanes_) || injection.every > 0;
    if (!now || comes_again) due_.push_back(injection);
  }
}

void Faults::happen(const Injection& injection) {
  constexpr int code_without_argument = 3;
  const std::string& argument = injection.argument;
  switch (injection.kind) {
    case FaultKind::kill:
      std::raise(SIGKILL);
      return;
    case FaultKind::stop:
      std::raise(SIGSTOP);
      return;
    case FaultKind::exit:
      std::_Exit(argument.empty() ? code_without_argument : std::stoi(argument));
    case FaultKind::nan:
      return run_.worker().updates().folds().spoil_next(std::numeric_limits<float>::quiet_NaN());
    case FaultKind::inf:
      return run_.worker().updates().folds().spoil_next(std::numeric_limits<float>::infinity());
    case FaultKind::flip:
      return flip(run_.worker().backend(), element_of(injection), place_in(injection).bit);
    case FaultKind::slow:
      return std::this_thread::sleep_for(
          std::chrono::duration<double>(argument.empty() ? 1.0 : injection.seconds));
    case FaultKind::lost_message:
      return run_.worker().wiring().channels->lose_next();
    case FaultKind::slow_link:
    case FaultKind::jitter:
    case FaultKind::uneven:
    case FaultKind::skew:
      return;  // states, not events
  }
}

Tensor Faults::element_of(const Injection& injection) {
  const BitPlace place = place_in(injection);
  Worker& worker = run_.worker();
  for (const int index : worker.stage().local_units()) {
    const Unit& unit = worker.stage().unit(index);
    for (int p = 0; p < static_cast<int>(unit.params().size()); ++p) {
      if (!place.tensor.empty() && tensor_name(unit, p) != place.tensor) continue;
      const UnitOptimizer& share = worker.residency().shares().of(index);
      const bool is_value = place.state == "value";
      const Tensor kept = worker.residency().newest(index, place.state);
      const std::int64_t first = unit.flat_offset(p, 0) - (is_value ? 0 : share.begin()) + place.element;
      MP_REQUIRE(kept && place.element < unit.shard_shape(p).count() && first >= 0 && first < kept.count() &&
                     place.bit < 8 * static_cast<std::int64_t>(bytes_of(kept.dtype)),
                 Exit::bad_configuration, "--inject {}: rank {} has no such element of {} of {}",
                 injection.text, injection.rank, place.state, tensor_name(unit, p));
      return kept.range(first, 1);
    }
  }
  fail(Exit::bad_configuration, "--inject {}: rank {} has no tensor {}", injection.text, injection.rank,
       place.tensor);
}

}  // namespace mindpipe
