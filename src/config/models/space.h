#pragma once
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "config/models/blocks.h"
#include "config/models/pictures.h"

namespace mindpipe {

struct Node;

struct CandidateRow {
  std::string_view name;     ///< what its word begins with
  std::string_view numbers;  ///< what follows, a letter for each number
  bool of_texts, of_pictures;
};

// clang-format off
#define MINDPIPE_CANDIDATES(kind) /* numbers: K rows, H heads, R times; of_texts, of_pictures */ \
  kind(convolution, "conv", "-K", true, true) \
  kind(separable, "separable", "-K", true, true) \
  kind(light, "light", "-K-R", true, false) \
  kind(attention, "attention", "-H", true, false) \
  kind(cross, "cross", "-H", true, false) \
  kind(gated, "glu", "", true, false) \
  kind(mlp, "mlp", "-R", true, false) \
  kind(dilated, "dilated", "-K", false, true) \
  kind(maximum, "max", "-K", false, true) \
  kind(average, "average", "-K", false, true) \
  kind(identity, "identity", "", true, true)
// clang-format on

MINDPIPE_KINDS(CandidateKind, CandidateRow, MINDPIPE_CANDIDATES)

/// One of the layers that a block of a space may be: light-5-4 has the numbers 5 and 4.
struct Candidate {
  static constexpr int most_taps = 15;

  CandidateKind kind{};
  std::array<int, 2> numbers{};
  bool halves =
      false;  ///< of pictures: in the first block of a group, which leaves half the rows and columns

  int taps() const { return numbers[0]; }    ///< rows that a convolution or a pool sees
  int heads() const { return numbers[0]; }   ///< of attention
  int times() const { return numbers[0]; }   ///< the model's width that an MLP has inside
  int shared() const { return numbers[1]; }  ///< channels that share the weights of a light convolution
  std::string word() const;
  bool operator==(const Candidate&) const = default;
};

/// The candidate that a word names; none where it names none.
std::optional<Candidate> candidate_named(const std::string& word);
/// The words of spaces of texts, or of pictures, with letters for numbers: "conv-K, separable-K, ...".
std::string candidate_words(bool of_pictures = false);
/// End of a sentence about a wrong word: a kind's name as it is spelt, with the numbers that were written.
std::string word_meant(const std::string& word);

/// Blocks that follow each other in a space of pictures. The first halves a picture's height and width.
struct PictureGroup {
  int blocks = 0, width = 0;  ///< channels behind each of its blocks
  bool operator==(const PictureGroup&) const = default;
};

/// The candidates of each block of a model.
struct Space {
  std::string name;
  std::vector<std::vector<Candidate>> encoder, decoder;  ///< no encoder: a language model
  std::vector<std::vector<Candidate>> pictures;          ///< of a space of pictures, which has neither
  std::vector<PictureGroup> groups;                      ///< of its blocks
  std::string written;  ///< as a configuration says it: a word, or all of it on one line

  bool has_encoder() const { return !encoder.empty(); }
  bool is_of_pictures() const { return !pictures.empty(); }
  int blocks() const { return static_cast<int>(encoder.size() + decoder.size() + pictures.size()); }
  /// Whether a block is the encoder's: its blocks come first.
  bool encodes(int block) const { return block < static_cast<int>(encoder.size()); }
  const std::vector<Candidate>& candidates(int block) const {
    return is_of_pictures() ? pictures[block]
           : encodes(block) ? encoder[block]
                            : decoder[block - encoder.size()];
  }
  bool operator==(const Space&) const = default;
};

/// Settings of models whose blocks are candidates of a space.
struct SpaceSettings : TextSettings, PictureSettings {
  SpaceSettings() {
    norm_epsilon = 1e-6;
    vocabulary = 260;  // bytes and the special tokens
  }
  Space space;
  bool tied = true;            ///< embeddings and head share their table
  double norm_momentum = 0.1;  ///< of batch norms of one network
  bool operator==(const SpaceSettings&) const = default;
};

/// What a setting that holds a space may be.
std::string allowed_spaces();
/// Reads a space as strictly as a configuration: a word, a file that describes one, or what stands in such a
/// file. `key` is the setting's.
Space read_space(const Node& node, const std::string& key);

/// Those of texts or of pictures, as the space is; both where it is not known yet.
std::vector<Setting> space_settings(SpaceSettings& m, Config& config);
void fill_in_space(const SpaceSettings& m, Config& config);
/// Refuses samples that are none of the space's, or do not fit the context.
void check_space(const SpaceSettings& m, const Config& config, const Complaints& complain);
/// The rows of samples, of pictures the fewest pixels, which logical tensor shards divide.
std::vector<Extent> rows_of_space(const SpaceSettings& m, const Config& config);
/// Why a width or a number of logical tensor shards has no room for a candidate, with the nearest that fit:
/// "attention-5, whose heads do not divide ..."; empty where it fits.
std::string misfit_of(const Candidate& candidate, int width, int shards);

}  // namespace mindpipe
