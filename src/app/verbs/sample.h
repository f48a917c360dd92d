#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "core/random.h"

namespace mindpipe {

struct GenerateConfig;

/// The first of the logits after which no token can be drawn: a NaN, an infinity, or the largest where that
/// is minus infinity; else nothing.
std::optional<float> unfit_to_draw(const std::vector<float>& logits);

/// The next token from its logits: greedy at temperature 0; else drawn from the softmax of logits /
/// temperature over the `top_k` likeliest (0: all), of these the fewest whose probabilities reach `top_p`.
/// Ties go to the lower id. The draw is word `position` of the stream.
std::int32_t sample_token(const std::vector<float>& logits, const GenerateConfig& rule,
                          const RandomStream& stream, std::int64_t position);

}  // namespace mindpipe
