#pragma once
#include <cstdint>

namespace mindpipe {

struct RateConfig;

/// The learning rate of step `step` (from 0) of `steps`. Warm-up rises linearly from peak / warmup to peak;
/// then constant; linear, cosine: down to the floor at step `decay` (0: behind the last); inverse_sqrt: peak
/// sqrt(warmup / step); wsd: constant, then linear to the floor over the last `decay` steps; steps: times
/// drop_factor from each of `drops` on.
double rate_at(const RateConfig& rule, std::int64_t step, std::int64_t steps);

}  // namespace mindpipe
