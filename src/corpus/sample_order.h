#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "corpus/documents.h"

namespace mindpipe {

/// How often documents are gone through in one order, and whether the last time is shuffled apart.
struct Epochs {
  std::int64_t count = 1;
  bool last_apart = false;
  bool operator==(const Epochs&) const = default;
};
/// The fewest epochs that give `samples`; the last stands apart when under 80 % of its samples are needed.
Epochs epochs_for(std::int64_t tokens_per_epoch, std::int64_t sequence, std::int64_t samples);

/// The order of the samples of some epochs. The documents, repeated epoch by epoch and shuffled, make one
/// long line of tokens; sample k is its tokens [k sequence, (k + 1) sequence], so neighbours share one token;
/// samples are drawn in the order of a second shuffle. All shuffles draw from one stream, in this order.
class SampleOrder {
 public:
  struct Start {
    std::int64_t position, offset;
    bool operator==(const Start&) const = default;
  };

  /// An order of the samples of `epochs`. Without a seed nothing is shuffled.
  SampleOrder(const Documents& documents, std::int64_t sequence, std::optional<std::uint32_t> seed,
              Epochs epochs = {});

  std::int64_t samples() const { return samples_; }
  /// Number of the sample of the line that comes at `index`.
  std::int64_t drawn(std::int64_t index) const { return shuffle_.empty() ? index : shuffle_[index]; }
  /// Start of sample k, or the line's end for k = samples(): position in the line, token within its document.
  Start start(std::int64_t k) const;
  std::int64_t positions() const { return static_cast<std::int64_t>(line_.size()); }
  /// The document at a position of the line.
  std::int64_t document(std::int64_t position) const { return line_[position]; }

 private:
  std::int64_t sequence_, samples_ = 0;
  std::vector<std::int64_t> line_, begins_, shuffle_;  ///< begins_[p]: tokens before position p
};

}  // namespace mindpipe
