#pragma once
#include <cstdint>
#include <vector>

#include "runtime/worker.h"

namespace mindpipe {

/// Tokens in, logits of the next one out, keys and values cached: a model on one rank, one sample.
class Generator {
 public:
  Generator(const Config& config, Worker& worker);

  /// Feeds tokens behind those fed before; the logits of what follows the last.
  std::vector<float> append(const std::vector<std::int32_t>& tokens);
  std::int64_t position() const { return tape_.position; }
  /// Forgets all tokens.
  void restart();

 private:
  Worker& worker_;
  std::int64_t vocabulary_;
  Arena caches_, scratch_, inputs_;
  Tape tape_;
};

}  // namespace mindpipe
