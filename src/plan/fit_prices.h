#pragma once
#include <map>
#include <span>
#include <string>
#include <vector>

#include "config/models/prices.h"
#include "program/outline.h"
#include "supernet/subnet.h"
#include "trace/subnet_ranks.h"

namespace mindpipe {

/// A subnet's measured passes on one stage, in seconds of one micro-batch, and its update there.
struct StagePasses {
  int stage = 0, first = 0, last = 0;  ///< which blocks
  std::vector<std::uint8_t> choice;
  double forward = 0, backward = 0, update = 0;
  int rank = 0;  ///< whose, among those that run the stage
  std::int64_t subnet = 0;
};

/// A table of prices in the form of a file that supernet.prices names, and how far off the plan's own were.
struct FittedPrices {
  double unit = 0;  ///< seconds
  double backward = 0, update = 0;
  double embedding = 0, bridge = 0, head = 0;
  std::map<std::string, double> candidates;    ///< by word
  std::vector<double> stages;                  ///< how many times as long as elsewhere passes take on each
  double forwards_off = 1, backwards_off = 1;  ///< medians over passes: measured over planned
  std::map<std::string, double> off;           ///< for each word, fitted over planned
  std::vector<PricedPasses> passes;            ///< what was fitted, beside prices that all stages share
};

/// Fits prices to measured passes. In turn for each word and each stage, the median of measured over priced
/// times becomes 1; a stage that several ranks run is as slow as most of them. A word without a pass keeps
/// the plan's price, scaled as the others are. Parts that all subnets share get the time of the passes beside
/// their candidates.
FittedPrices fit_prices(const Outline& outline, const Space& space, std::span<const StagePasses> passes);

/// What such a file says; `of_run`: where it was measured.
std::string text_of(const FittedPrices& prices, const std::string& of_run);

}  // namespace mindpipe
