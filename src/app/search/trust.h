#pragma once
#include <string>
#include <vector>

#include "app/search/score.h"
#include "app/search/trainings.h"

namespace mindpipe {

/// The places of `count` scores from the lowest loss to the highest, equally far apart in rank.
std::vector<std::size_t> over_all_ranks(const std::vector<Score>& scores, int count);

/// What scores are worth, in words: how far their order agrees with that of the losses `truths` after
/// training, how much is lost by trust in them, and how far the two halves of their batches agree.
std::string trust_text(const std::vector<Score>& scores, const std::vector<double>& truths);

/// Trains search.verify networks and prints what their scores were worth. Collective; false: some are
/// still to be trained, by another job or by the next start.
bool verify_scores(const Config& config, const std::vector<Score>& scores, Trainings& trainings,
                   const World& world);

}  // namespace mindpipe
