#include "runtime/carriers.h"

#include "core/clock.h"

namespace mindpipe {

Request Carriers::copy(ActionKind kind, std::span<const std::pair<Tensor, Tensor>> ways, bool at_once) {
  Request newest;
  for (const auto& [from, to] : ways) newest = {Request::copies, copies_.begin(name_of(kind), from, to)};
  if (at_once) copies_.finish();
  return newest;
}

bool Carriers::is_done(const Request& request) const {
  switch (request.carrier) {
    case Request::nobody:
      return true;
    case Request::channels:
      return wires_.channels->done(request.number);
    case Request::reductions:
      return wires_.reductions.done(request.number);
    case Request::copies:
      return copies_.done(request.number);
  }
  return true;
}

std::optional<std::int64_t> Carriers::take_end(const Request& request) {
  switch (request.carrier) {
    case Request::nobody:
    case Request::copies:
      break;
    case Request::channels:
      return wires_.channels->take_end(request.number);
    case Request::reductions:
      return wires_.reductions.take_end(request.number);
  }
  return {};
}

void Carriers::progress() {
  const auto move_on = [&] {
    if (wires_.channels != nullptr && wires_.channels->under_way() > 0) wires_.channels->progress();
    if (wires_.reductions.under_way() > 0) wires_.reductions.progress();
  };
  move_on();
  copies_.progress();
  // Ports decide when all is offered that is known of.
  if (wires_.ports != nullptr && wires_.ports->serve(now_ns())) move_on();
}

std::string Carriers::describe(const Request& request) const {
  if (is_done(request)) return "";
  switch (request.carrier) {
    case Request::nobody:
      break;
    case Request::channels:
      return wires_.channels->describe(request.number);
    case Request::reductions:
      return wires_.reductions.describe(request.number);
    case Request::copies:
      return copies_.describe(request.number);
  }
  return "";
}

}  // namespace mindpipe
