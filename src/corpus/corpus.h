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
/// .bin/.idx pair without its ending, a .txt file, or "synthetic:arithmetic"; "reversed:" before one of these
/// makes pairs of it. The sample at each index is a function of (seed, index) alone; validation is in the
/// order of the files.
class Corpus {
 public:
  /// A corpus of one subset, whose samples have `fields`. `planned` samples, where known, give the order that
  /// existing tools give a run of that length; 0: epoch by epoch, whatever the length of the run.
  Corpus(const DataConfig& data, Subset subset, const std::vector<Field>& fields, std::uint64_t seed,
         std::int64_t planned = 0);

  /// Writes samples from `first_sample` on into fields [samples, extents of the field] in the host's memory;
  /// those that `to` does not have are left out.
  void batch(std::int64_t first_sample, const FieldTensors& to);
  /// Lines for the log, one for each source.
  std::vector<std::string> describe() const;

 private:
  std::vector<std::unique_ptr<Dataset>> datasets_;
  Blend blend_;
};

}  // namespace mindpipe
