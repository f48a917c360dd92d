#include "app/search/results.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "app/report/front_files.h"
#include "app/run/subnet_config.h"
#include "app/search/network_search.h"
#include "app/train/report_end.h"
#include "config/config.h"
#include "config/models/choices.h"
#include "config/models/search.h"
#include "core/log.h"
#include "core/text.h"
#include "io/file.h"
#include "supernet/front.h"

namespace mindpipe {
namespace {

std::string text_of(Objective objective, double value) {
  switch (objective) {
    case Objective::loss:
      return std::isfinite(value) ? fmt::format("{:.4f}", value) : "none";
    case Objective::latency:
      return human_seconds(value);
    case Objective::bytes:
      return human_bytes(value);
    case Objective::parameters:
    case Objective::operations:
      break;
  }
  return human_count(value);
}

std::vector<std::vector<double>> points_of(const std::vector<Score>& scores,
                                           const std::vector<Objective>& objectives) {
  std::vector<std::vector<double>> points;
  for (const Score& score : scores) {
    points.emplace_back();
    for (const Objective objective : objectives)
      points.back().push_back(objective == Objective::loss ? score.rank_loss() : score.value(objective));
  }
  return points;
}

/// The places of a search's front, from the lowest loss on; of a search for the loss alone, all.
std::vector<std::size_t> candidates_of(const Config& config, const std::vector<Score>& scores) {
  std::vector<std::size_t> places = by_loss(scores);
  if (!row_of(config.search.searcher).has_front) return places;
  const auto front = front_of(points_of(scores, objectives_of(config.search)));
  std::erase_if(
      places, [&](std::size_t place) { return std::find(front.begin(), front.end(), place) == front.end(); });
  return places;
}

}  // namespace

std::vector<std::size_t> best_of(const Config& config, const std::vector<Score>& scores) {
  std::vector<std::size_t> best = candidates_of(config, scores);
  const auto count = std::min(best.size(), static_cast<std::size_t>(config.search.best));
  if (row_of(config.search.searcher).has_front && count > 1)
    for (std::size_t i = 0; i < count; ++i) best[i] = best[i * (best.size() - 1) / (count - 1)];
  best.resize(count);
  return best;
}

std::string table_of(const Config& config, const std::vector<Score>& scores,
                     const std::vector<std::size_t>& best) {
  double sum = 0, most = 0;
  std::int64_t finite = 0;
  for (const Score& score : scores)
    if (std::isfinite(score.rank_loss())) {
      sum += score.rank_loss();
      most = std::max(most, score.rank_loss());
      ++finite;
    }
  const double least = scores[by_loss(scores).front()].rank_loss();
  std::string text = fmt::format(
      "\n{} networks of {}, each scored on {} held-out batch{}: loss {:.4f} to {:.4f}, in the mean "
      "{:.4f}{}\n",
      scores.size(), config.model.supernet.space.name, config.search.batches,
      config.search.batches == 1 ? "" : "es", least, most,
      sum / static_cast<double>(std::max<std::int64_t>(1, finite)),
      finite < std::ssize(scores) ? fmt::format("; {} have none", std::ssize(scores) - finite) : "");
  if (row_of(config.search.searcher).has_front)
    text +=
        fmt::format("{} of them are on the front: no other is better in one of {} and as good in the rest\n",
                    candidates_of(config, scores).size(), join(config.search.objectives, ", "));
  text += fmt::format("{:>4} {:>7}", "", "id");
  for (const Objective objective : all_kinds<Objective>()) text += fmt::format(" {:>11}", name_of(objective));
  text += "  choice\n";
  for (std::size_t i = 0; i < best.size(); ++i) {
    const Score& score = scores[best[i]];
    text += fmt::format("{:>4} {:>7}", i + 1, score.id);
    for (const Objective objective : all_kinds<Objective>())
      text += fmt::format(" {:>11}", text_of(objective, score.value(objective)));
    text += "  " + joined({score.choice.begin(), score.choice.end()}) + "\n";
  }
  return text;
}

namespace {

SearchFound found_by(const Config& config, const std::vector<Score>& scores,
                     const std::vector<std::size_t>& best) {
  const std::vector<Objective> objectives = objectives_of(config.search);
  SearchFound found{.names = {}, .scores = {}, .front = candidates_of(config, scores), .best = best};
  for (const Objective objective : objectives)
    found.names.push_back({std::string(name_of(objective)), std::string(row_of(objective).unit)});
  const auto points = points_of(scores, objectives);
  for (std::size_t i = 0; i < scores.size(); ++i)
    found.scores.push_back({scores[i].id, scores[i].choice, points[i]});
  return found;
}

}  // namespace

void write_results(const Config& config, const std::vector<Score>& scores,
                   const std::vector<std::size_t>& best, const std::string& directory) {
  const Config supernet = with_steps(config, steps_of_networks(config));
  for (std::size_t i = 0; i < best.size(); ++i) {
    const Score& score = scores[best[i]];
    const std::string name = fmt::format("{}/best-{}", directory, i + 1);
    replace_file(name + ".yaml", subnet_yaml(supernet, score.choice, name));
    if (const std::string blind = blindness_of(config.model.supernet.space, score.choice); !blind.empty())
      warning("best-{}.yaml: {}", i + 1, blind);
  }
  std::error_code none;  // those of an earlier, larger answer
  for (std::size_t i = best.size();
       std::filesystem::remove(fmt::format("{}/best-{}.yaml", directory, i + 1), none);)
    ++i;
  info("{} configurations: {}/best-1.yaml{}", best.size(), directory,
       best.size() > 1 ? fmt::format(" to best-{}.yaml", best.size()) : "");
  if (!row_of(config.search.searcher).has_front) return;
  const SearchFound found = found_by(config, scores, best);
  replace_file(directory + "/front.csv", front_as_csv(found));
  replace_file(directory + "/front.svg", front_as_svg(found, fmt::format("{} networks of {}", scores.size(),
                                                                         config.model.supernet.space.name)));
  info("the front: {0}/front.csv, and a picture of it, {0}/front.svg", directory);
}

}  // namespace mindpipe
