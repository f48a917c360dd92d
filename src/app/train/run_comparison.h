#pragma once
#include <cstdint>
#include <map>
#include <string>

#include "app/run/run_arithmetic.h"

namespace mindpipe {

/// A training beside an earlier run of the same arithmetic: losses and norms of each step, and the weights at
/// the end, have to be equal bit for bit. Lives on rank 0.
class RunComparison {
 public:
  /// Reads metrics.jsonl of `other`; refuses a run whose arithmetic has another name, and `own` itself.
  RunComparison(const std::string& other, const std::string& own, const RunArithmetic& arithmetic,
                const Config& config);

  /// A step or subnet is done: ends the job where the other run has other numbers of it.
  void see(std::int64_t step, const std::map<std::string, double>& numbers);
  /// Compares the weights that both runs have left, if the other one ended after `step`, too; tells of all.
  void end(std::int64_t step) const;

 private:
  [[noreturn]] void differ(const std::string& what) const;

  std::string other_, own_;
  std::map<std::int64_t, std::map<std::string, double>> steps_;
  std::string meaning_;  ///< what other bits mean
  std::int64_t compared_ = 0;
};

}  // namespace mindpipe
