#include "app/main_verb.h"
#include "app/run.h"
#include "app/verbs.h"
#include "app/weights_file.h"
#include "core/log.h"
#include "io/file.h"
#include "runtime/diagnose.h"

namespace mindpipe {

/// Loss of the run's saved weights on its validation data.
int eval(const Arguments& arguments, const Config& given) {
  MP_REQUIRE(!given.data.validation.empty(), Exit::bad_configuration,
             "eval needs data.validation: name a source there, or on the command line");
  Run run(arguments, given, with_any_grid);
  const Config& config = run.config();
  Corpus corpus(config.data, Part::validation, config.model, config.seed);
  for (const std::string& line : corpus.describe()) info("validation: {}", line);
  run.make_worker(Purpose::reading);
  read_weights(run.worker(), config.run.dir + "/model.safetensors");
  run.watchdog().arm(run.step_limit() * config.train.evaluate_batches, "the evaluation", "watchdog.step a batch");
  const double loss = finite_loss(run.worker(), corpus, config.train.evaluate_batches, "the validation loss");
  if (run.speaks()) print(JsonLine().add("validation_loss", loss).add("batches", config.train.evaluate_batches).text() + "\n");
  return 0;
}

}  // namespace mindpipe
