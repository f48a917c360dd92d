#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <span>

#include "core/traffic_class.h"
#include "program/clock/ports.h"

namespace mindpipe {

/// Nanoseconds for each pair of traffic classes: of who waits, then of whom it waits for.
using TimesByPair = std::array<std::array<std::int64_t, traffic_classes.size()>, traffic_classes.size()>;

/// Hears of one transfer that waited for another one, and how long.
using SeeWait =
    std::function<void(const Ports::Left& waits, const Ports::Left& holds, std::int64_t nanoseconds)>;
/// Who stood ready while another one held the port, see waits_at_ports.
void each_wait_at_ports(std::span<const Ports::Left> transfers, const SeeWait& see);

/// How long transfers of each class stood ready while another one held their port: at the out port until they
/// began, at the in port beyond their leaving, shared among those that it took meanwhile. The transfers may
/// be those of a plan, or of a step that was recorded, in any order.
TimesByPair waits_at_ports(std::span<const Ports::Left> transfers);

inline std::int64_t& at(TimesByPair& times, TrafficClass waits, TrafficClass holds) {
  return times[static_cast<std::size_t>(waits)][static_cast<std::size_t>(holds)];
}

}  // namespace mindpipe
