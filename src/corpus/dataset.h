#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/field.h"
#include "corpus/documents.h"
#include "corpus/sample_order.h"

namespace mindpipe {

/// Samples without end; each is a function of the seed and its number.
class Dataset {
 public:
  virtual ~Dataset() = default;
  /// After how many held-out samples the first comes again; 0: it never does.
  virtual std::int64_t count() const = 0;
  /// The names of the fields that its samples have.
  virtual std::vector<std::string_view> gives() const = 0;
  /// Writes sample `index`: of its fields those that `to` has, each [extents of the field] in the host's
  /// memory.
  virtual void sample(std::int64_t index, const FieldTensors& to) = 0;
  /// Line for the log that says what the dataset is.
  virtual std::string describe() const = 0;
};

/// Samples of texts: `sequence` tokens, and for each of them as its target the one that comes next.
class TextDataset : public Dataset {
 public:
  explicit TextDataset(std::int64_t sequence) : sequence_(sequence), text_(sequence + 1) {}
  std::vector<std::string_view> gives() const override { return {field::tokens, field::targets}; }
  void sample(std::int64_t index, const FieldTensors& to) override;
  /// Copies the text of sample `index`, sequence + 1 tokens.
  virtual void text(std::int64_t index, std::int32_t* tokens) = 0;
  std::int64_t sequence() const { return sequence_; }

 private:
  std::int64_t sequence_;
  std::vector<std::int32_t> text_;  ///< text of one sample
};

/// The samples of documents, round after round. A round is one epoch with an order of its own; with `planned`
/// samples the first round is as many epochs as give them, in the order that existing tools give a run of
/// that many samples. Without a seed every round is in the order of the file. Orders of many samples stand in
/// files in the folder `orders`, where one is named, which all ranks share.
class DocumentDataset : public TextDataset {
 public:
  DocumentDataset(std::unique_ptr<Documents> documents, std::int64_t sequence,
                  std::optional<std::uint64_t> seed, std::int64_t planned = 0,
                  const std::string& orders = "");
  std::int64_t count() const override { return round_samples_; }
  void text(std::int64_t index, std::int32_t* tokens) override;
  std::string describe() const override;

 private:
  void open_round(std::int64_t round);
  void replace_order(std::optional<std::uint32_t> seed, Epochs epochs);

  std::unique_ptr<Documents> documents_;
  DocumentLengths lengths_;
  std::optional<std::uint64_t> seed_;
  std::string orders_;
  Epochs first_round_;
  std::int64_t first_samples_, round_samples_;  ///< samples of round 0, of every later round
  std::optional<SampleOrder> order_;  ///< order of the open round, made when one of its samples is asked for
  std::int64_t round_ = -1;
};

}  // namespace mindpipe
