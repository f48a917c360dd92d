#pragma once
#include <string>
#include <vector>

#include "app/run/json_line.h"
#include "runtime/worker.h"

namespace mindpipe {

/// The folder in which a run keeps the orders of its samples.
std::string orders_of(const Config& config);

/// The samples that evaluations read: any number of them, or as train.evaluate_batches says all of them once.
Corpus validation_corpus(const Config& config, const std::vector<Field>& fields);

/// Adds what an evaluation has found, by the same names wherever it is told.
void add_evaluation(JsonLine& line, const Evaluation& evaluation, const RunPlan& plan);
/// Words for a log: "validation loss 1.2345, 67.89 % of targets right, 12.34 % of samples exact".
std::string to_string(const Evaluation& evaluation);

}  // namespace mindpipe
