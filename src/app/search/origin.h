#pragma once
#include <map>
#include <string>

namespace mindpipe {

struct Config;

/// What the scores of a search depend on, by name: settings, and the weights.
using ScoreOrigin = std::map<std::string, std::string>;
/// `weights`: the file that they are read from; empty: there are none (an emulated device).
ScoreOrigin origin_of_scores(const Config& config, const std::string& weights);

/// Refuses to go on with scores that came about otherwise. `file` says how, beside the scores; where there is
/// none yet nothing is compared.
void require_same_origin(const ScoreOrigin& origin, const std::string& file);
void write_origin(const ScoreOrigin& origin, const std::string& file);

}  // namespace mindpipe
