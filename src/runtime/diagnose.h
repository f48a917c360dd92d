#pragma once
#include <functional>
#include <string>

#include "runtime/worker.h"

namespace mindpipe {

/// Names, after a loss that is not finite, the first weight, or else first block's output, of the whole model
/// that is not finite on some rank. Collective over the grid; every rank gets the same sentence. Outputs are
/// those of the last batch.
std::string diagnose(Worker& worker);
/// The part about weights alone, for who has no batch.
std::string diagnose_weights(Worker& worker);

/// Evaluator::evaluate for what is reported: a loss that is not finite is refused, `what` naming it ("the
/// validation loss"), with what came of which batch. Collective.
Evaluation finite_evaluation(Worker& worker, Corpus& corpus, std::int64_t batches, const std::string& what,
                             const std::function<void(std::int64_t batch)>& before = {});

/// "nan", "inf" or "-inf", or the number: a NaN's sign says nothing.
std::string number_text(double number);

}  // namespace mindpipe
