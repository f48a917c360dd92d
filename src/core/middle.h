#pragma once
#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace mindpipe {

/// The value that so many others of its kind stand before; 0 of none.
inline double in_place(std::vector<double> values, std::ptrdiff_t place) {
  if (values.empty()) return 0;
  std::nth_element(values.begin(), values.begin() + place, values.end());
  return values[static_cast<std::size_t>(place)];
}

/// The value in the middle; of an even count the lower of two: where one of two is slow, the other one.
inline double lower_middle(std::vector<double> values) {
  const std::ptrdiff_t place = (std::ssize(values) - 1) / 2;
  return in_place(std::move(values), place);
}
/// The value in the middle; of an even count the upper of two.
inline double upper_middle(std::vector<double> values) {
  const std::ptrdiff_t place = std::ssize(values) / 2;
  return in_place(std::move(values), place);
}

/// The median: of an even count the mean of the middle two; 0 of none. Reorders the values.
inline double median_of(std::vector<double>& values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

}  // namespace mindpipe
