#pragma once
#include <algorithm>
#include <cstdint>
#include <tuple>

#include "core/traffic_class.h"

namespace mindpipe {

/// Where ports are: between ranks of a node, between nodes, between a device and its host.
enum class Level : std::uint8_t { node, net, copies };
inline constexpr int levels = 3;

/// The share that one of so many turns, or parts, has of a quantity of all.
constexpr std::int64_t of_turn(int turn, int turns, std::int64_t whole) {
  return turns == 1 ? whole : whole * (turn + 1) / turns - whole * turn / turns;
}

/// The rule by which transfers meet at ports, on paper and between ranks that imitate devices.
struct PortRule {
  static constexpr int most_turns = 16;
  /// In how many turns something goes to a port that takes so many nanoseconds, and is made of so many
  /// messages: higher classes pass between turns, and short messages go several together.
  static constexpr int turns(std::int64_t takes, int messages) {
    constexpr std::int64_t length = 250'000;
    return static_cast<int>(std::clamp<std::int64_t>((takes + length - 1) / length, 1,
                                                     std::min<std::int64_t>(most_turns, messages)));
  }
  /// By what a free out port chooses: the highest class first, then who came first.
  static constexpr auto turn(TrafficClass traffic, std::int64_t offered, int to, std::int64_t order) {
    return std::tuple(traffic, offered, to, order);
  }
  /// By what in ports take those that leave: their time, then class, from, to.
  static constexpr auto leave(std::int64_t left, TrafficClass traffic, int from, int to, std::int64_t order) {
    return std::tuple(left, traffic, from, to, order);
  }
  /// When an in port has what left, if `others` is its time for all that left for it meanwhile.
  static constexpr std::int64_t arrived(std::int64_t left, std::int64_t takes, std::int64_t in_free,
                                        std::int64_t others) {
    return std::max(left, std::min(in_free + takes, left + others));
  }
};

}  // namespace mindpipe
