#pragma once
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "app/run/json_line.h"
#include "app/run/run.h"

namespace mindpipe {

/// The folder in which a run keeps the orders of its samples.
std::string orders_of(const Config& config);

/// The samples that evaluations read: any number of them, or as train.evaluate_batches says all of them once.
Corpus validation_corpus(const Config& config, const std::vector<Field>& fields);

/// A source of data.validation, by its path, and its samples.
struct HeldOutSource {
  std::string name;
  Corpus corpus;
};
/// The sources of data.validation, each with samples of its own.
using HeldOut = std::vector<HeldOutSource>;
HeldOut held_out_sources(const Config& config, const std::vector<Field>& fields);

/// What was found of each source, in their order, and of all of them together: means over all targets.
struct HeldOutEvaluation {
  Evaluation all;
  std::vector<std::pair<std::string, Evaluation>> of_sources;
  /// The sources, where there are several: one alone is all.
  std::span<const std::pair<std::string, Evaluation>> several() const {
    return of_sources.size() > 1 ? std::span(of_sources) : std::span(of_sources).first(0);
  }
};
/// Batches of an evaluation: train.evaluate_batches, or as many as hold all samples of the corpus.
std::int64_t evaluation_batches(const Config& config, const Corpus& corpus);
/// Evaluates each source on evaluation_batches(), each of which may take `limit` seconds. Collective.
HeldOutEvaluation evaluate(Run& run, HeldOut& sources, double limit, const std::string& phase,
                           const std::string& what);

/// Adds what an evaluation has found, by the same names wherever it is told.
void add_evaluation(JsonLine& line, const Evaluation& evaluation, const RunPlan& plan);
/// Words for a log: "validation loss 1.2345, 67.89 % of targets right, 12.34 % of samples exact".
std::string to_string(const Evaluation& evaluation);

}  // namespace mindpipe
