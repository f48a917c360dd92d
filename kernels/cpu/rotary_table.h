#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "core/memory.h"
#include "core/portable_math.h"

namespace mindpipe {

/// Cosines and sines of position * frequency, kept from call to call, since all layers ask for them.
class RotaryTable {
 public:
  explicit RotaryTable(Memory& memory) : memory_(memory) {}
  static std::size_t bytes_for(std::int64_t width, std::int64_t count) {
    return static_cast<std::size_t>(2 * count * (width / 2)) * sizeof(double);
  }
  /// Memory for the largest table to come.
  void reserve(std::size_t bytes) {
    area_.reserve(memory_, bytes);
    count_ = 0;
  }
  /// Makes the table hold positions [first, first + count).
  void prepare(std::span<const double> frequencies, std::int64_t width, std::int64_t first,
               std::int64_t count) {
    if (std::ranges::equal(frequencies, frequencies_) && width == width_ && first >= first_ &&
        first + count <= first_ + count_)
      return;
    frequencies_.assign(frequencies.begin(), frequencies.end());
    width_ = width;
    first_ = first;
    count_ = count;
    const std::int64_t half = width / 2;
    cosines_ = static_cast<double*>(area_.take(memory_, bytes_for(width, count)));
    sines_ = cosines_ + count * half;
    for (std::int64_t i = 0; i < half; ++i) {
      for (std::int64_t r = 0; r < count; ++r) {
        const double angle = static_cast<double>(first + r) * frequencies_[i];
        const auto [sine, cosine] = portable::sine_cosine(angle);
        cosines_[r * half + i] = cosine;
        sines_[r * half + i] = sine;
      }
    }
  }
  const double* cosines(std::int64_t position) const { return cosines_ + (position - first_) * (width_ / 2); }
  const double* sines(std::int64_t position) const { return sines_ + (position - first_) * (width_ / 2); }

 private:
  Memory& memory_;
  WorkArea area_;
  std::vector<double> frequencies_;
  std::int64_t width_ = 0, first_ = 0, count_ = 0;
  double *cosines_ = nullptr, *sines_ = nullptr;
};

}  // namespace mindpipe
