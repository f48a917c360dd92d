#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "config/kinds.h"

namespace mindpipe {

/// Which subnets of a supernet are trained, and how together.
struct SupernetConfig {
  std::string sampler = "uniform";     ///< uniform | permutation | spaced | a file with a choice a line
  int spacing = 0;                     ///< spaced: subnets between two uses of a candidate; 0: the usual
  int window = 16;                     ///< subnets that read one version of what all share
  int admission = 0;                   ///< in flight; 0: as few as cost little
  int slots = 0;                       ///< micro-batch slots of a stage; 0: as few as cost little
  SubnetCuts cuts = SubnetCuts::home;  ///< one for all, or each subnet's own
  std::string prices;                  ///< paper | equal | h200 | a file; empty: of the device on paper
  int evaluate_subnets = 4;            ///< subnets of an evaluation, always the same ones
  int calibrate_batches = 2;           ///< batches that calibrate batch norms before an evaluation
  bool operator==(const SupernetConfig&) const = default;
};

/// The most that a network may have to be scored; 0: no limit.
struct LimitsConfig {
  double parameters = 0, operations = 0, latency = 0, bytes = 0;
  bool operator==(const LimitsConfig&) const = default;
};

/// The search for good networks of a trained supernet.
struct SearchConfig {
  std::string dir;  ///< empty: run.dir/search
  SearcherKind searcher = SearcherKind::evolution;
  int scores = 0;         ///< networks that are scored; 0: 480, or all that the space has
  int batches = 8;        ///< held-out batches of a score
  int lag = 64;           ///< parents of a network have ids that lie so far back
  int population = 50;    ///< networks that are drawn before any has parents
  int parents = 10;       ///< best networks that others are made of
  double mutation = 0.1;  ///< share of the blocks that a mutation draws again
  std::vector<std::string> objectives{"loss", "parameters"};  ///< pareto
  LimitsConfig limits;
  int best = 5;              ///< networks that come out
  int steps = 0;             ///< steps of a network that is trained by itself; 0: train.steps
  int verify = 0;            ///< networks that are trained to see what scores are worth
  std::vector<int> halving;  ///< steps of the first round, and the factor between rounds
  bool operator==(const SearchConfig&) const = default;
};

}  // namespace mindpipe
