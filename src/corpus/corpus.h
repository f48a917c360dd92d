#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "corpus/blend.h"
#include "corpus/dataset.h"
#include "corpus/text_file.h"
#include "tokenize/tokenizer.h"

namespace mindpipe {

struct DataConfig;

/// What a source is read from.
struct SourceFiles {
  std::string how;  ///< "reversed:", for instance; all of the name where the program makes the samples
  std::vector<std::string> files;
};
/// The files of the source that a path names, those beside it among them: indices, masks, labels.
SourceFiles files_of_source(const std::string& path);

/// Samples that a run trains on or is judged by: the sources of one subset, blended by weight. Texts are a
/// .bin/.idx pair without its ending, a .txt file or "synthetic:arithmetic", which are masked where the model
/// looks for masked tokens, and of which "reversed:" makes pairs; of conversations answers alone count. Pairs
/// are a .tsv file, "pairs:SOURCES:TARGETS" or "synthetic:dates"; pictures an IDX file, "cifar10:FILE",
/// "cifar100:FILE" or "synthetic:shapes". The sample at each index is a function of (seed, index) alone;
/// validation is in the order of the files.
class Corpus {
 public:
  /// A corpus of one subset, whose samples have `fields`. `planned` samples, where known, give the order that
  /// existing tools give a run of that length; 0: epoch by epoch, whatever the length of the run. Orders of
  /// many samples stand in files in the folder `orders`, for all ranks; empty: in the memory of each.
  Corpus(const DataConfig& data, Subset subset, const std::vector<Field>& fields, std::uint64_t seed,
         std::int64_t planned = 0, const std::string& orders = "");

  /// A corpus that goes once over each source, one after the other, whatever their weights; refused where one
  /// has no end. Samples behind the last have no target that counts.
  static Corpus once(const DataConfig& data, Subset subset, const std::vector<Field>& fields,
                     std::uint64_t seed, const std::string& orders = "");
  /// How many samples there are to go over; 0: without end.
  std::int64_t samples() const { return ends_.empty() ? 0 : ends_.back(); }

  /// Writes samples from `first_sample` on into fields [samples, extents of the field] in the host's memory;
  /// those that `to` does not have are left out.
  void batch(std::int64_t first_sample, const FieldTensors& to);
  /// Lines for the log, one for each source.
  std::vector<std::string> describe() const;

 private:
  void sample(std::int64_t number, const FieldTensors& to);

  std::unique_ptr<Tokenizer> tokenizer_;  ///< none: bytes
  std::vector<std::unique_ptr<Dataset>> datasets_;
  Blend blend_;
  std::vector<std::int64_t> ends_;  ///< end of each source's samples, where they are gone over once
};

}  // namespace mindpipe
