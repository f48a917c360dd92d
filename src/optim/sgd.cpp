#include "optim/update_rule.h"

namespace mindpipe {

/// Gradient descent, with momentum or without.
void sgd_update(Backend& backend, const Update& u) {
  const Sgd rule{
      .rate = u.rate, .momentum = static_cast<float>(u.config.momentum), .nesterov = u.config.nesterov};
  const Tensor velocity = u.moments.empty() ? Tensor{} : u.moments[0];
  backend.sgd_of_spans({{rule, u.decision, u.gradient, u.master, velocity, u.rounded}, u.spans});
}

}  // namespace mindpipe
