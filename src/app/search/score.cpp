#include "app/search/score.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <nlohmann/json.hpp>

#include "app/run/json_line.h"

namespace mindpipe {
namespace {

double number_of(const nlohmann::json& value) {
  return value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
}

}  // namespace

double Score::rank_loss() const {
  const double loss = value(Objective::loss);
  return std::isnan(loss) ? std::numeric_limits<double>::infinity() : loss;
}

std::string line_of(const Score& score) {
  JsonLine line;
  line.add("id", score.id)
      .add("parents", std::vector<int>(score.parents.begin(), score.parents.end()))
      .add("how", score.how)
      .add("choice", std::vector<int>(score.choice.begin(), score.choice.end()));
  for (const Objective objective : all_kinds<Objective>())
    line.add(name_of(objective), score.value(objective));
  line.add("first_half", score.halves[0]).add("second_half", score.halves[1]);
  return line.text();
}

std::optional<Score> score_of(const std::string& line) {
  try {
    const nlohmann::json json = nlohmann::json::parse(line);
    Score score;
    score.id = json.at("id").get<std::int64_t>();
    score.parents = json.at("parents").get<std::vector<std::int64_t>>();
    score.how = json.at("how").get<std::string>();
    score.choice = json.at("choice").get<std::vector<std::uint8_t>>();
    for (const Objective objective : all_kinds<Objective>())
      score.value(objective) = number_of(json.at(std::string(name_of(objective))));
    score.halves = {number_of(json.at("first_half")), number_of(json.at("second_half"))};
    return score;
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

std::vector<std::size_t> by_loss(const std::vector<Score>& scores) {
  std::vector<std::size_t> places(scores.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  std::stable_sort(places.begin(), places.end(), [&](std::size_t a, std::size_t b) {
    return scores[a].rank_loss() < scores[b].rank_loss();
  });
  return places;
}

}  // namespace mindpipe
