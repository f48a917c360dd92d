#include "app/train/evaluation.h"

#include <algorithm>

namespace mindpipe {

std::string orders_of(const Config& config) { return config.run.dir + "/orders"; }

Corpus validation_corpus(const Config& config, const std::vector<Field>& fields) {
  const std::string orders = orders_of(config);
  return config.train.evaluate_batches > 0
             ? Corpus(config.data, Subset::validation, fields, config.seed, 0, orders)
             : Corpus::once(config.data, Subset::validation, fields, config.seed, orders);
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
