#pragma once
#include <string>

#include "runtime/worker.h"

namespace mindpipe {

/// After a loss that is not finite: the first weight, or else the first block's output, of the whole model that is not finite on some rank.
/// Collective over the grid; every rank gets the same sentence.
std::string diagnose(Worker& worker);

/// "nan", "inf" or "-inf", or the number: a NaN's sign says nothing.
std::string number_text(double number);

}  // namespace mindpipe
