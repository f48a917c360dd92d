#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "corpus/documents.h"
#include "corpus/sample_order.h"

namespace mindpipe {

/// Samples of sequence + 1 tokens, without end; each is a function of the seed and its number.
class Dataset {
 public:
  virtual ~Dataset() = default;
  /// Copies sample `index` to `tokens`, sequence + 1 of them.
  virtual void sample(std::int64_t index, std::int32_t* tokens) = 0;
  /// Line for the log that says what the dataset is.
  virtual std::string describe() const = 0;
};

/// The samples of documents, round after round. A round is one epoch with an order of its own; with `planned`
/// samples the first round is as many epochs as give them, in the order that existing tools give a run of
/// that many samples. Without a seed every round is in the order of the file.
class DocumentDataset : public Dataset {
 public:
  DocumentDataset(std::unique_ptr<Documents> documents, std::int64_t sequence,
                  std::optional<std::uint64_t> seed, std::int64_t planned = 0);
  void sample(std::int64_t index, std::int32_t* tokens) override;
  std::string describe() const override;

 private:
  void open_round(std::int64_t round);

  std::unique_ptr<Documents> documents_;
  std::int64_t sequence_, tokens_ = 0;
  std::optional<std::uint64_t> seed_;
  Epochs first_round_;
  std::int64_t first_samples_, round_samples_;  ///< samples of round 0, of every later round
  std::optional<SampleOrder> order_;  ///< order of the open round, made when one of its samples is asked for
  std::int64_t round_ = -1;
};

}  // namespace mindpipe
