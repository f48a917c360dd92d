#include "optim/update_rule.h"

namespace mindpipe {

/// AdamW: the gradient's mean over the root of its mean square, decay apart from both.
void adamw_update(Backend& backend, const Update& u) {
  const AdamW rule{u.rate, static_cast<float>(u.config.beta1), static_cast<float>(u.config.beta2),
                   static_cast<float>(u.config.epsilon)};
  backend.adamw_of_spans(
      {{rule, u.decision, u.gradient, u.master, u.moments[0], u.moments[1], u.rounded}, u.spans});
}

}  // namespace mindpipe
