#include "app/search/trust.h"

#include <algorithm>
#include <cmath>

#include "app/verbs/main_verb.h"
#include "config/config.h"
#include "config/models/search.h"
#include "core/log.h"
#include "supernet/rank_statistics.h"

namespace mindpipe {
namespace {

using Correlate = std::optional<RankCorrelation> (*)(std::span<const double>, std::span<const double>);

std::string correlation_text(const char* name, Correlate correlate, const std::vector<double>& a,
                             const std::vector<double>& b) {
  const std::optional<RankCorrelation> found = correlate(a, b);
  return found ? fmt::format("{} {:.3f} (p = {:.2g})", name, found->value, found->p)
               : fmt::format("{} has no value, as all are equal", name);
}

std::string correlations(const std::vector<double>& a, const std::vector<double>& b) {
  return correlation_text("Kendall's tau-b", kendall_tau, a, b) + ", " +
         correlation_text("Spearman's rho", spearman_rho, a, b);
}

/// Losses that are no numbers come last.
double ranked(double loss) { return std::isnan(loss) ? std::numeric_limits<double>::infinity() : loss; }

}  // namespace

std::vector<std::size_t> over_all_ranks(const std::vector<Score>& scores, int count) {
  const std::vector<std::size_t> sorted = by_loss(scores);
  std::vector<std::size_t> chosen;
  const double last = static_cast<double>(sorted.size() - 1);
  for (int i = 0; i < count; ++i)
    chosen.push_back(sorted[static_cast<std::size_t>(std::lround(i * last / std::max(1, count - 1)))]);
  return chosen;
}

std::string trust_text(const std::vector<Score>& scores, const std::vector<double>& truths) {
  std::vector<double> losses, trained, first_half, second_half;
  for (const Score& score : scores) {
    losses.push_back(score.rank_loss());
    first_half.push_back(ranked(score.halves[0]));
    second_half.push_back(ranked(score.halves[1]));
  }
  for (const double truth : truths) trained.push_back(ranked(truth));
  std::string text =
      fmt::format("{} networks, {:>6}  {:>10}  {:>13}\n", scores.size(), "id", "score", "after training");
  for (std::size_t i = 0; i < scores.size(); ++i)
    text += fmt::format("{:>{}}  {:>10.4f}  {:>13.4f}\n", scores[i].id,
                        fmt::formatted_size("{} networks, ", scores.size()) + 6, losses[i], trained[i]);
  text += fmt::format("scores against losses after training: {}\n", correlations(losses, trained));
  text += fmt::format("regret: {:.4f} with the best score, {:.4f} with the best of the five best scores\n",
                      regret(losses, trained, 1), regret(losses, trained, 5));
  if (!std::isnan(scores.front().halves[0]))
    text += fmt::format("noise of scores, one half of the batches against the other: {}\n",
                        correlations(first_half, second_half));
  return text;
}

bool verify_scores(const Config& config, const std::vector<Score>& scores, Trainings& trainings,
                   const World& world) {
  std::vector<Score> trained;
  std::vector<double> truths;
  int left = 0;
  const int steps = steps_of_networks(config);
  const std::vector<std::size_t> places = over_all_ranks(scores, config.search.verify);
  std::vector<TrainingWish> wishes;
  for (const std::size_t place : places)
    wishes.push_back({std::to_string(scores[place].id), scores[place].choice, steps, steps});
  const std::vector<std::optional<double>> losses = trainings.train(wishes, world);
  for (std::size_t i = 0; i < losses.size(); ++i) {
    if (losses[i]) trained.push_back(scores[places[i]]);
    if (losses[i]) truths.push_back(*losses[i]);
    left += losses[i] ? 0 : 1;
  }
  if (world.rank != 0) return left == 0;
  info("verify: {} networks trained now, {} found done, {} left{}", trainings.done_now(),
       trainings.done_before(), left, trainings.words_on_left(left));
  if (left == 0) print("\n" + trust_text(trained, truths));
  return left == 0;
}

}  // namespace mindpipe
