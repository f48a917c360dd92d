#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/models/blocks.h"

namespace mindpipe {

struct Node;

struct CandidateRow {
  std::string_view name;     ///< what its word begins with
  std::string_view numbers;  ///< what follows, a letter for each number
};

// clang-format off
#define MINDPIPE_CANDIDATES(kind) /* numbers: K rows, H heads, R times */ \
  kind(convolution, "conv", "-K") \
  kind(separable, "separable", "-K") \
  kind(light, "light", "-K-R") \
  kind(attention, "attention", "-H") \
  kind(cross, "cross", "-H") \
  kind(gated, "glu", "") \
  kind(mlp, "mlp", "-R") \
  kind(identity, "identity", "")
// clang-format on

MINDPIPE_KINDS(CandidateKind, CandidateRow, MINDPIPE_CANDIDATES)

/// One of the layers that a block of a space may be: light-5-4 has the numbers 5 and 4.
struct Candidate {
  static constexpr int most_taps = 15;

  CandidateKind kind{};
  std::array<int, 2> numbers{};

  int taps() const { return numbers[0]; }    ///< rows that a convolution sees
  int heads() const { return numbers[0]; }   ///< of attention
  int times() const { return numbers[0]; }   ///< the model's width that an MLP has inside
  int shared() const { return numbers[1]; }  ///< channels that share the weights of a light convolution
  std::string word() const;
  bool operator==(const Candidate&) const = default;
};

/// The candidate that a word names; none where it names none.
std::optional<Candidate> candidate_named(const std::string& word);
/// All words, with letters for numbers: "conv-K, separable-K, ...".
std::string candidate_words();
/// End of a sentence about a wrong word: a kind's name as it is spelt, with the numbers that were written.
std::string word_meant(const std::string& word);

/// The candidates of each block of a model.
struct Space {
  std::string name;
  std::vector<std::vector<Candidate>> encoder, decoder;  ///< no encoder: a language model
  std::string written;  ///< as a configuration says it: a word, or all of it on one line

  bool has_encoder() const { return !encoder.empty(); }
  int blocks() const { return static_cast<int>(encoder.size() + decoder.size()); }
  /// Whether a block is the encoder's: its blocks come first.
  bool encodes(int block) const { return block < static_cast<int>(encoder.size()); }
  const std::vector<Candidate>& candidates(int block) const {
    return encodes(block) ? encoder[block] : decoder[block - encoder.size()];
  }
  bool operator==(const Space&) const = default;
};

/// Settings of models whose blocks are candidates of a space.
struct SpaceSettings : TextSettings {
  SpaceSettings() {
    norm_epsilon = 1e-6;
    vocabulary = 260;  // bytes and the special tokens
  }
  Space space;
  bool tied = true;  ///< embeddings and head share their table
  bool operator==(const SpaceSettings&) const = default;
};

/// How many networks a space has; the largest number where they are more.
std::int64_t networks_of(const Space& space);

/// What a setting that holds a space may be.
std::string allowed_spaces();
/// Reads a space as strictly as a configuration: a word, a file that describes one, or what stands in such a
/// file. `key` is the setting's.
Space read_space(const Node& node, const std::string& key);

std::vector<Setting> space_settings(SpaceSettings& m, Config& config);
void fill_in_space(const SpaceSettings& m, Config& config);
/// Refuses samples that are none of the space's, or do not fit the context.
void check_space(const SpaceSettings& m, const Config& config, const Complaints& complain);
/// The rows of samples, which logical tensor shards divide.
std::vector<Extent> rows_of_space(const SpaceSettings& m, const Config& config);
/// Why a width or a number of logical tensor shards has no room for a candidate, with the nearest that fit:
/// "attention-5, whose heads do not divide ..."; empty where it fits.
std::string misfit_of(const Candidate& candidate, int width, int shards);

}  // namespace mindpipe
