#include "app/main_verb.h"

#include "app/run.h"
#include "app/stop_request.h"
#include "app/verbs.h"
#include "config/config.h"
#include "core/check.h"
#include "core/launcher.h"

namespace mindpipe {

int run_verb(const Arguments& arguments) {
  if (arguments.verb != "train" || arguments.dry_run || arguments.print_config || !arguments.answer.empty())
    stop_at_once();
  if (!arguments.answer.empty()) {
    if (launch().rank == 0) print(arguments.answer);
    return 0;
  }
  if (arguments.verb == "doctor" && arguments.tune.empty()) return doctor(arguments);
  if (arguments.verb == "data") return data(arguments);

  const Config config = read_for_ranks(arguments.config, arguments.overrides, arguments.ranks);
  if (arguments.print_config) {
    if (launch().rank == 0) print(to_yaml(config));
    return 0;
  }
  if (arguments.verb == "doctor") return tune(arguments, config);
  if (arguments.verb == "train") return train(arguments, config);
  if (arguments.verb == "eval") return eval(arguments, config);
  if (arguments.verb == "generate") return generate(arguments, config);
  MP_CHECK(arguments.verb == "plan", "no function for the verb {}", arguments.verb);
  return plan(arguments, config);
}

}  // namespace mindpipe
