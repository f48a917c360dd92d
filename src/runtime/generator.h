#pragma once
#include <cstdint>
#include <vector>

#include "runtime/worker.h"

namespace mindpipe {

/// Tokens in, logits of the next one out, what layers need of earlier rows cached: a model on one rank, one
/// sample.
class Generator {
 public:
  Generator(const Config& config, Worker& worker);

  /// Feeds tokens behind those fed before, no more than the context holds in all; the logits of what follows
  /// the last.
  std::vector<float> append(const std::vector<std::int32_t>& tokens);
  /// The logits of what follows `text`, of which all but the last token have been fed. When the context is
  /// full, it starts again with the later half.
  std::vector<float> follow(const std::vector<std::int32_t>& text);
  std::int64_t position() const { return tape_.position; }
  /// Forgets all tokens.
  void restart() { tape_.position = 0; }

 private:
  Worker& worker_;
  Model::Continuation text_;
  Arena caches_, outputs_, scratch_, inputs_;
  Tape tape_;
};

}  // namespace mindpipe
