#pragma once
#include <cstdint>
#include <vector>

namespace mindpipe {

/// Chooses which of several datasets gives sample n: the one that lags most behind its weight, argmax_i (w_i
/// max(n, 1) - count_i), the first maximum. A function of n, worked out as far as it is asked for.
class Blend {
 public:
  struct Choice {
    int dataset;
    std::int64_t sample;
    bool operator==(const Choice&) const = default;
  };

  explicit Blend(std::vector<double> weights);  ///< weights above 0, scaled here to the sum 1
  Choice at(std::int64_t n);
  const std::vector<double>& shares() const { return weights_; }  ///< the scaled weights

 private:
  static constexpr std::int64_t page = 4096;
  void open(std::int64_t index);

  std::vector<double> weights_;
  std::vector<std::vector<std::int64_t>> counts_;  ///< samples taken from each dataset before each page
  std::vector<Choice> choices_;                    ///< choices of the open page
  std::int64_t open_ = -1;
};

}  // namespace mindpipe
