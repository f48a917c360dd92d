#pragma once
#include <cstdint>
#include <limits>

#include "program/schedules/pass_clock.h"

namespace mindpipe {

/// An order with weight gradients, as its tapes lie in the slab.
struct OrderInSlab {
  Order order;
  std::int64_t bytes = std::numeric_limits<std::int64_t>::max();
  std::int64_t step = 0;  ///< by the inner clock

  /// Takes another one that keeps a limit, or comes nearer to it, and is the shorter of two that keep it.
  void improve(OrderInSlab other, std::int64_t limit) {
    const bool keeps = bytes <= limit, other_keeps = other.bytes <= limit;
    const bool is_better = keeps && other_keeps ? other.step < step : other.bytes < bytes;
    if (is_better) *this = std::move(other);
  }
};

/// Bytes of the largest slab of tapes of a stage, without what Outline::fewer_tapes says: what
/// schedule.memory is about.
std::int64_t largest_slab_alone(const Order& order, const Outline& outline);

/// How closely weight gradients are fitted into gaps and slab: roughly, where many orders are compared.
enum class Fit { close, rough };

/// Puts the weight gradients of an order where its slab keeps a limit and the step is the shortest by the
/// inner clock, or where the slab comes nearest to the limit.
OrderInSlab in_slab(const Order& order, const Outline& outline, const PriceList& prices, std::int64_t limit,
                    Fit fit = Fit::close);

/// What a step lasts by the inner clock with weight gradients as in_slab would put them if tapes left no
/// gaps: about the least that it can find, in a fraction of its time.
std::int64_t step_without_gaps(const Order& order, const Outline& outline, const PriceList& prices,
                               std::int64_t limit);

/// An order found within a limit, or the one that comes nearest to it: the shortest of a long search, or what
/// a short one finds, which tells whether there is one.
OrderInSlab searched_in_slab(const Outline& outline, const PriceList& prices, std::int64_t limit,
                             bool is_long = true);

}  // namespace mindpipe
