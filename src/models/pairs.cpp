#include "models/pairs.h"

namespace mindpipe {

void see_pairs(Model& model, const Config& config, std::int64_t vocabulary) {
  const std::int64_t rows = config.data.target_sequence;
  model.add_field({field::source, DType::i32, {config.data.source_sequence}, vocabulary});
  model.add_field({field::source_lengths, DType::i32, {1}});
  model.add_field({field::tokens, DType::i32, {rows}, vocabulary});
  model.add_field({field::targets, DType::i32, {rows}, vocabulary});
  model.count_in({"token", rows});
}

}  // namespace mindpipe
