#include "optim/update_rule.h"

namespace mindpipe {

/// Gradient descent, with momentum or without.
void sgd_update(Backend& backend, const Update& u) {
  const Sgd rule{u.rate, static_cast<float>(u.config.momentum), u.decay, u.config.nesterov};
  const Tensor velocity = u.moments.empty() ? Tensor{} : u.moments[0];
  backend.sgd({rule, u.decision, u.gradient, u.master, velocity, u.rounded});
}

}  // namespace mindpipe
