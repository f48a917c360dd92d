#include "optim/update_rule.h"

namespace mindpipe {

void apply(Backend& backend, const Update& update) {
  switch (update.config.kind) {
#define MINDPIPE_CALL_UPDATE(kind, ...) \
  case OptimizerKind::kind:             \
    return kind##_update(backend, update);
    MINDPIPE_OPTIMIZERS(MINDPIPE_CALL_UPDATE)
#undef MINDPIPE_CALL_UPDATE
  }
}

}  // namespace mindpipe
