#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "corpus/documents.h"
#include "corpus/order_file.h"

namespace mindpipe {

/// How often documents are gone through in one order, and whether the last time is shuffled apart.
struct Epochs {
  std::int64_t count = 1;
  bool last_apart = false;
  bool operator==(const Epochs&) const = default;
};
/// The fewest epochs that give `samples`; the last stands apart when under 80 % of its samples are needed.
Epochs epochs_for(std::int64_t tokens_per_epoch, std::int64_t sequence, std::int64_t samples);

/// Numbers that an order of `samples` shuffled samples of some epochs takes.
std::int64_t numbers_in_order(const Documents& documents, Epochs epochs, std::int64_t samples);
/// Refuses an order of so many numbers that no machine keeps it.
void require_order(const std::string& name, std::int64_t numbers);

/// The order of the samples of some epochs. The documents, repeated epoch by epoch and shuffled, make one
/// long line of tokens; sample k is its tokens [k sequence, (k + 1) sequence], so neighbours share one token;
/// samples are drawn in the order of a second shuffle. All shuffles draw from one stream, in this order.
class SampleOrder {
 public:
  struct Start {
    std::int64_t position, offset;
    bool operator==(const Start&) const = default;
  };

  /// An order of the samples of `epochs`. Without a seed nothing is shuffled. An order of many samples stands
  /// in a file in `folder`, where one is named, which all ranks share; `lengths` are those of the documents,
  /// if they are known already.
  SampleOrder(const Documents& documents, std::int64_t sequence, std::optional<std::uint32_t> seed,
              Epochs epochs = {}, const std::string& folder = "",
              const std::optional<DocumentLengths>& lengths = std::nullopt);

  std::int64_t samples() const { return samples_; }
  /// Number of the sample of the line that comes at `index`.
  std::int64_t drawn(std::int64_t index) const { return shuffle_.empty() ? index : shuffle_[index]; }
  /// Start of sample k, or the line's end for k = samples(): position in the line, token within its document.
  Start start(std::int64_t k) const;
  std::int64_t positions() const { return std::ssize(line_); }
  /// The document at a position of the line.
  std::int64_t document(std::int64_t position) const { return line_[position]; }

  /// Path of the order's file; empty where it is in this rank's memory.
  std::string path() const { return numbers_.path(); }

 private:
  std::int64_t sequence_, samples_;
  OrderFile numbers_;
  std::span<const std::int64_t> line_, begins_, shuffle_;  ///< begins_[p]: tokens before position p
};

}  // namespace mindpipe
