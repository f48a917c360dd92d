#include "app/main_verb.h"

#include "app/grid_choice.h"
#include "app/stop_request.h"
#include "app/verbs.h"
#include "core/launcher.h"

namespace mindpipe {

int run_verb(const Arguments& arguments) {
  const Verb& verb = verb_named(arguments.verb);
  if (!verb.has_steps || arguments.dry_run || arguments.print_config || !arguments.answer.empty())
    stop_at_once();
  std::string answer = arguments.answer;
  Config config;
  if (answer.empty() && arguments.reads_config)
    config = read_for_ranks(arguments.config, arguments.overrides, arguments.ranks);
  if (arguments.print_config && answer.empty()) answer = to_yaml(config);
  if (answer.empty()) return verb.run(arguments, config);
  if (launch().rank == 0) print(answer);
  return 0;
}

}  // namespace mindpipe
