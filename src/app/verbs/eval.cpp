#include "app/run/run.h"
#include "app/run/weights.h"
#include "app/train/evaluation.h"
#include "app/verbs/main_verb.h"
#include "app/verbs/verbs.h"
#include "config/config.h"
#include "config/tokens.h"
#include "core/log.h"

namespace mindpipe {

/// How well the run's saved weights do on its validation data.
int eval(const Arguments& arguments, const Config& given) {
  MP_REQUIRE(!given.data.validation.empty(), Exit::bad_configuration,
             "eval needs data.validation: name a source there, or on the command line");
  Run run(arguments, given, Run::on_job(with_any_grid),
          given.run.dir + "/log/eval");  // beside the roll of a training that may be going on there
  const Config& config = run.config();
  if (run.is_rank_0()) run.watchdog().forget_earlier_rolls();
  require_kept_tokenizer(config);
  HeldOut sources = held_out_sources(config, fields_of(config));
  for (const HeldOutSource& source : sources)
    for (const std::string& line : source.corpus.describe()) info("validation: {}", line);
  run.make_worker(Purpose::reading);
  read_weights_of_run(run.worker());
  const HeldOutEvaluation found =
      evaluate(run, sources, run.step_limit(), "the evaluation", "the validation loss");
  if (!run.is_rank_0()) return 0;
  const RunPlan& plan = run.worker().plan();
  std::int64_t batches = 0;
  for (const HeldOutSource& source : sources) batches += evaluation_batches(config, source.corpus);
  for (const auto& [name, evaluation] : found.several()) {
    JsonLine line;
    add_evaluation(line.add("source", name), evaluation, plan);
    print(line.text() + "\n");
  }
  JsonLine line;
  add_evaluation(line, found.all, plan);
  print(line.add("batches", batches).text() + "\n");
  return 0;
}

}  // namespace mindpipe
