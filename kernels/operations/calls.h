#pragma once
#include <cstdint>

/// What a checked call hands to the kernels of either device: plain numbers, no types of ours, no library.
namespace mindpipe {

/// A dropout mask over rows [first, first + rows) of the whole sequences of some samples, and over `cols`
/// columns from `first_col` on of the `whole_cols` that a whole row has.
struct MaskRows {
  std::uint32_t key[2] = {0, 0}, step = 0, sample = 0;
  std::uint32_t threshold = 0;  ///< 0: everything is kept and nothing is drawn
  double scale = 1;
  std::int64_t rows = 0, first = 0, cols = 0, first_col = 0, whole_cols = 0;
};

/// [samples, rows, cols], summed by columns; part i has rows [i rows/parts, (i+1) rows/parts) of each sample.
struct RowParts {
  std::int64_t samples, rows, cols, parts;
};

/// [samples, rows, cols], of which the first lengths[sample] rows are no padding; without lengths all.
struct LengthCall {
  std::int64_t samples, rows, cols;
  const std::int32_t* lengths;
};

/// A convolution over rows: tap t of row r is row r - before + t.
struct TapCall {
  LengthCall of;
  int taps, before;
};

/// Weights [taps, columns] that `channels` share.
struct SharedTaps {
  int taps;
  std::int64_t columns, channels;
};

/// gelu is the tanh form, as GPT-2 has it; gelu_exact is x / 2 (1 + erf(x / sqrt(2))), as BERT has it.
enum class Activation : std::uint8_t { none, relu, gelu, silu, gelu_exact };

/// Frequencies of sines over a width d, i from 0 to d/2 - 1: below_base is 10000^(-2i/d), whose last is above
/// 1/10000; up_to_base is exp(-i ln(10000) / (d/2 - 1)), whose last is 1/10000.
enum class Sinusoids : std::uint8_t { below_base, up_to_base };

/// Rows of [samples, rows, cols], row r at position first + r; frequency i is exp(-i rate).
struct SinusoidCall {
  std::int64_t samples, rows, cols, first;
  double rate;
};

/// Rows [first, first + rows) of the whole sequences of some samples, each of which picks `picked`.
struct PickCall {
  std::int64_t samples, rows, cols, picked, first;
};

/// Pictures [channels, height, width] of bytes in square patches, and how their numbers are made.
struct PictureShape {
  static constexpr int most_channels = 4;
  std::int64_t channels = 0, height = 0, width = 0, side = 0;
  float mean[most_channels] = {},
        deviation[most_channels] = {1, 1, 1, 1};  ///< by channel, of numbers from 0 to 1

  constexpr std::int64_t patches() const { return (height / side) * (width / side); }
  constexpr std::int64_t patch_size() const { return channels * side * side; }
};

/// Patches as rows of [samples, rows, patch size], from row first_row on.
struct PatchCall {
  std::int64_t samples, rows, cols, first_row, patches;
  PictureShape picture;
};

/// Logits [n, cols] of a shard of the vocabulary: columns [0, valid) count, from token `first_column` on.
struct LogitShard {
  std::int64_t cols, valid, first_column;
};

/// Targets of some samples, `each` for every sample.
struct TargetList {
  std::int64_t samples, each;
};

/// What an evaluation counts beside its losses: places of an f64 tensor.
struct Hits {
  enum Place : std::uint8_t {
    right,        ///< targets whose logit is the largest, the lowest word's of several
    within_five,  ///< targets before which at most four words come
    exact,        ///< samples whose every target is right
    samples,      ///< samples that have a target
    places
  };
};

/// Gradients as whole numbers: 1 is `per_one` units, an element beyond +-most is none, and the sum of
/// `contributions` still fits into 64 bits.
struct IntegerGradients {
  static constexpr std::int64_t per_one = std::int64_t{1} << 40, most = 1024, contributions = 8191;
};
static_assert(IntegerGradients::contributions ==
              INT64_MAX / (IntegerGradients::most * IntegerGradients::per_one));

/// What AdamW needs for one step beside the decision, worked out once in f64.
struct AdamWStep {
  double rate, keep;  ///< keep = 1 - rate decay
  double beta1, beta2, one_less_beta1, one_less_beta2;
  double epsilon;
};
struct SgdStep {
  double rate, momentum, decay;
  bool nesterov;
};

}  // namespace mindpipe
