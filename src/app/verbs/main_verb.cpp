#include "app/verbs/main_verb.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "app/plan/grid_choice.h"
#include "app/run/resume.h"
#include "app/train/stop_request.h"
#include "app/verbs/verbs.h"
#include "config/config.h"
#include "core/check.h"
#include "core/launcher.h"

namespace mindpipe {

int run_verb(const Arguments& given) {
  Arguments arguments = given;
  const Verb& verb = verb_named(arguments.verb);
  if (!verb.has_steps || arguments.dry_run || arguments.print_config || !arguments.answer.empty())
    stop_at_once();
  std::string answer = arguments.answer;
  Config config;
  if (answer.empty() && arguments.reads_config) {
    WrittenKeys written;
    config = read_for_ranks(arguments.config, arguments.overrides, arguments.ranks, written);
    arguments.open = std::move(written.open);
  }
  if (arguments.print_config && answer.empty()) answer = to_yaml(config, arguments.open);
  if (!verb.searches) config = as_trained(config, arguments.open);
  if (answer.empty()) return verb.run(arguments, config);
  if (launch().rank == 0) print(answer);
  return 0;
}

void print(const std::string& text) {
  const bool whole =
      std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  MP_REQUIRE(whole, Exit::io_error, "the output cannot be written ({})", std::strerror(errno));
}

}  // namespace mindpipe
