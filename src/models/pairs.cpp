#include "models/pairs.h"

#include "config/sections/data.h"

namespace mindpipe {

void see_pairs(Model& model, const DataConfig& data, std::int64_t vocabulary) {
  const std::int64_t rows = data.target_sequence;
  model.add_field({field::source, DType::i32, {data.source_sequence}, vocabulary});
  model.add_field({field::source_lengths, DType::i32, {1}});
  model.add_field({field::tokens, DType::i32, {rows}, vocabulary});
  model.add_field({field::targets, DType::i32, {rows}, vocabulary});
  model.count_in({"token", rows});
}

}  // namespace mindpipe
