#pragma once
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/random.h"
#include "spaces.h"
#include "supernet/front.h"
#include "supernet/searcher.h"

namespace mindpipe {

/// A made-up loss of all networks of a space: a normal deviate for each candidate of each block, and `pairs`
/// times one for each pair of candidates of neighbouring blocks.
class Landscape {
 public:
  Landscape(const Space& space, std::uint64_t seed, const char* name, double pairs)
      : space_(space), stream_{seed, purpose_of(name)}, pairs_(pairs) {
    for (int block = 0; block < space.blocks(); ++block) {
      stream_.step = static_cast<std::uint32_t>(block);
      std::vector<double> alone, beside;
      for (int i = 0; i < count(block); ++i) alone.push_back(stream_.normal(static_cast<std::uint64_t>(i)));
      for (int i = 0; block > 0 && i < count(block - 1) * count(block); ++i)
        beside.push_back(pairs * stream_.normal(1000 + static_cast<std::uint64_t>(i)));
      alone_.push_back(alone);
      beside_.push_back(beside);
    }
    measure();
  }

  double at(const std::vector<std::uint8_t>& choice) const {
    double sum = 0;
    for (int block = 0; block < space_.blocks(); ++block) {
      sum += alone_[block][choice[block]];
      if (block > 0) sum += pair(block, choice[block - 1], choice[block]);
    }
    return sum;
  }
  /// How many deviations of all networks a network lies below the mean of all.
  double below_mean(const std::vector<std::uint8_t>& choice) const { return (mean - at(choice)) / deviation; }

  double mean = 0, deviation = 0;

 private:
  int count(int block) const { return static_cast<int>(space_.candidates(block).size()); }
  double pair(int block, int before, int number) const {
    return beside_[block][static_cast<std::size_t>(before * count(block) + number)];
  }

  /// Mean and deviation over all networks, exactly: what a candidate adds by itself, its pairs' means
  /// included, and what pairs add beyond that, do not depend on each other.
  void measure() {
    double variance = 0;
    std::vector<std::vector<double>> effects = alone_;
    for (int block = 1; block < space_.blocks(); ++block) {
      const int rows = count(block - 1), columns = count(block);
      double sum = 0;
      std::vector<double> by_row(rows), by_column(columns);
      for (int row = 0; row < rows; ++row)
        for (int column = 0; column < columns; ++column) {
          by_row[row] += pair(block, row, column) / columns;
          by_column[column] += pair(block, row, column) / rows;
          sum += pair(block, row, column);
        }
      const double middle = sum / (rows * columns);
      for (int row = 0; row < rows; ++row)
        for (int column = 0; column < columns; ++column) {
          const double rest = pair(block, row, column) - by_row[row] - by_column[column] + middle;
          variance += rest * rest / (rows * columns);
        }
      for (int row = 0; row < rows; ++row) effects[block - 1][row] += by_row[row] - middle;
      for (int column = 0; column < columns; ++column) effects[block][column] += by_column[column];
    }
    for (const std::vector<double>& effect : effects) {
      double sum = 0, squares = 0;
      for (const double value : effect) sum += value;
      for (const double value : effect) squares += std::pow(value - sum / std::ssize(effect), 2);
      mean += sum / std::ssize(effect);
      variance += squares / std::ssize(effect);
    }
    deviation = std::sqrt(variance);
  }

  Space space_;
  RandomStream stream_;
  double pairs_;
  std::vector<std::vector<double>> alone_, beside_;
};

/// What a search has proposed and been told.
struct Searched {
  std::vector<Proposal> proposals;
  std::vector<Objectives> found;
};

/// Has `count` networks scored as late as the lag allows.
template <class Score>
Searched search(const Space& space, const SearchRules& rules, int count, Score score, Excess excess = {}) {
  const auto searcher = make_searcher(space, rules, std::move(excess));
  Searched searched;
  for (std::int64_t id = 0; id < count; ++id) {
    if (id >= rules.lag) {
      searched.found.push_back(
          score(searched.proposals[static_cast<std::size_t>(id - rules.lag)].subnet.choice));
      searcher->tell(searched.found.back());
    }
    searched.proposals.push_back(searcher->next());
  }
  while (std::ssize(searched.found) < count)
    searched.found.push_back(score(searched.proposals[searched.found.size()].subnet.choice));
  return searched;
}

}  // namespace mindpipe
