#pragma once
#include <algorithm>
#include <set>
#include <utility>

#include "plans/planned_attention.h"

namespace mindpipe {

/// Bytes that CUDA's backend keeps.
inline constexpr std::size_t gpu_workspace_bytes = std::size_t{64} << 20;

/// Why our own kernels compute an attention and no plan of a library does.
enum class OwnAttention : std::uint8_t {
  form,   ///< f32, dropout, a width or mask that is_planned leaves out
  limit,  ///< neither whole nor in pieces within AttentionLimit
  refused
};

/// Working memory that a backend keeps beside operands: for each purpose, the most that was asked for.
struct Workspace {
  std::size_t products = 0;             ///< packed operands of all threads
  std::size_t attention = 0;            ///< what the tasks of all threads work in
  std::size_t rotary = 0;               ///< the table of angles
  bool attention_is_estimated = false;  ///< by formula, where no library said it
  /// What a library of the device will be asked, so that it plans before the first step.
  std::set<PlannedAttention> planned = {};
  /// Directions, of which true is backwards, in which our own kernels compute some attention.
  std::set<std::pair<bool, OwnAttention>> own = {};
  std::size_t total() const { return aligned(products) + aligned(attention) + aligned(rotary); }
  void include(const Workspace& other) {
    products = std::max(products, other.products);
    attention = std::max(attention, other.attention);
    rotary = std::max(rotary, other.rotary);
    attention_is_estimated = attention_is_estimated || other.attention_is_estimated;
    planned.insert(other.planned.begin(), other.planned.end());
    own.insert(other.own.begin(), other.own.end());
  }
};

}  // namespace mindpipe
