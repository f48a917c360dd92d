#include "app/train/evaluation.h"

#include <algorithm>

#include "config/config.h"
#include "runtime/diagnose.h"

namespace mindpipe {

std::string orders_of(const Config& config) { return config.run.dir + "/orders"; }

Corpus validation_corpus(const Config& config, const std::vector<Field>& fields) {
  const std::string orders = orders_of(config);
  return config.train.evaluate_batches > 0
             ? Corpus(config.data, Subset::validation, fields, config.seed, 0, orders)
             : Corpus::once(config.data, Subset::validation, fields, config.seed, orders);
}

HeldOut held_out_sources(const Config& config, const std::vector<Field>& fields) {
  HeldOut sources;
  for (const DataSource& source : config.data.validation) {
    Config alone = config;
    alone.data.validation = {source};
    sources.push_back({source.path, validation_corpus(alone, fields)});
  }
  return sources;
}

std::int64_t evaluation_batches(const Config& config, const Corpus& corpus) {
  const std::int64_t batch = config.train.batch;
  return corpus.samples() > 0 ? (corpus.samples() + batch - 1) / batch : config.train.evaluate_batches;
}

HeldOutEvaluation evaluate(Run& run, HeldOut& sources, double limit, const std::string& phase,
                           const std::string& what) {
  HeldOutEvaluation found;
  const bool several = sources.size() > 1;
  for (auto& [name, corpus] : sources) {
    const std::string which = several ? " of " + name : "", of_phase = phase + which;
    const std::int64_t batches = evaluation_batches(run.config(), corpus);
    const auto before = [&](std::int64_t batch) {
      run.watchdog().arm(limit, fmt::format("batch {} of {} of {}", batch + 1, batches, of_phase),
                         "watchdog.step");
    };
    found.of_sources.emplace_back(name,
                                  finite_evaluation(run.worker(), corpus, batches, what + which, before));
    found.all.add(found.of_sources.back().second);
  }
  return found;
}

void add_evaluation(JsonLine& line, const Evaluation& evaluation, const RunPlan& plan) {
  line.add("validation_loss", evaluation.loss())
      .add("validation_perplexity", evaluation.perplexity())
      .add("validation_accuracy", evaluation.accuracy())
      .add("validation_exact", evaluation.exact());
  const bool of_pictures = std::any_of(plan.fields.begin(), plan.fields.end(),
                                       [](const Field& field) { return field.name == field::picture; });
  if (of_pictures)
    line.add("validation_top_1", evaluation.accuracy()).add("validation_top_5", evaluation.within_five());
  line.add("validation_targets", evaluation.targets).add("validation_samples", evaluation.samples());
}

std::string to_string(const Evaluation& evaluation) {
  return fmt::format("validation loss {:.4f}, {:.2f} % of targets right, {:.2f} % of samples exact",
                     evaluation.loss(), 100 * evaluation.accuracy(), 100 * evaluation.exact());
}

}  // namespace mindpipe
