#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "config/config.h"
#include "corpus/blend.h"
#include "corpus/dataset.h"
#include "corpus/text_file.h"

namespace mindpipe {

/// Samples that a run trains on or is judged by: the sources of one subset, blended by weight. A source is a
/// .bin/.idx pair without its ending, a .txt file, or "synthetic:arithmetic". The sample at each index is a
/// function of (seed, index) alone; validation is in the order of the files.
class Corpus {
 public:
  /// A corpus of one subset. `planned` samples, where known, give the order that existing tools give a run of
  /// that length; 0: epoch by epoch, whatever the length of the run.
  Corpus(const DataConfig& data, Subset subset, const ModelConfig& model, std::uint64_t seed,
         std::int64_t planned = 0);

  /// tokens[s][q] and targets[s][q] of samples first_sample + s; the target is the token that comes next.
  void batch(std::int64_t first_sample, std::int64_t samples, std::int32_t* tokens, std::int32_t* targets);
  std::int64_t sequence() const { return sequence_; }
  /// Lines for the log, one for each source.
  std::vector<std::string> describe() const;

 private:
  std::int64_t sequence_;
  std::vector<std::unique_ptr<Dataset>> datasets_;
  Blend blend_;
  std::vector<std::int32_t> sample_;  ///< sequence + 1 tokens
};

}  // namespace mindpipe
