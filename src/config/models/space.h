#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/models/blocks.h"
#include "config/models/pictures.h"

namespace mindpipe {

struct Node;

/// Where a candidate's word may stand: among the candidates of blocks of texts or of pictures, in a cell's
/// branches, or as what combines them.
enum class WordUse : char { texts = 't', pictures = 'p', cells = 'c', combiner = '+' };

struct CandidateRow {
  std::string_view name;     ///< what its word begins with
  std::string_view numbers;  ///< what follows, a letter for each number
  std::string_view uses;     ///< the letters of WordUse
};

// clang-format off
#define MINDPIPE_CANDIDATES(kind) /* numbers: K rows, H heads, R times; uses */ \
  kind(convolution, "conv", "-K", "tpc") \
  kind(separable, "separable", "-K", "tpc") \
  kind(light, "light", "-K-R", "tc") \
  kind(attention, "attention", "-H", "tc") \
  kind(cross, "cross", "-H", "tc") \
  kind(gated, "glu", "", "tc") \
  kind(mlp, "mlp", "-R", "tc") \
  kind(dilated, "dilated", "-K", "p") \
  kind(maximum, "max", "-K", "p") \
  kind(average, "average", "-K", "p") \
  kind(identity, "identity", "", "tpc") \
  kind(normed_mlp, "normed_mlp", "-R", "c") \
  kind(none, "none", "", "c") \
  kind(add, "add", "", "+") \
  kind(multiply, "multiply", "", "+") \
  kind(concat, "concat", "", "+")
#define MINDPIPE_CELL_NORMS(kind) /* of a branch; shared: one for both branches of a block */ \
  kind(none, "none") \
  kind(own, "own") \
  kind(shared, "shared")
#define MINDPIPE_CELL_ACTIVATIONS(kind) \
  kind(none, "none") \
  kind(relu, "relu") \
  kind(gelu, "gelu") \
  kind(silu, "silu")
// clang-format on

MINDPIPE_KINDS(CandidateKind, CandidateRow, MINDPIPE_CANDIDATES)

inline bool is_for(const CandidateRow& row, WordUse use) {
  return row.uses.find(static_cast<char>(use)) != std::string_view::npos;
}
MINDPIPE_KINDS(CellNorm, NamedRow, MINDPIPE_CELL_NORMS)
MINDPIPE_KINDS(CellActivation, NamedRow, MINDPIPE_CELL_ACTIVATIONS)

/// What a branch of a cell's block has around its layer.
struct CellBranch {
  int input = 1;  ///< which state before the block it reads: 1 is the last one, 2 the one before
  CellNorm norm = CellNorm::none;
  CellActivation activation = CellActivation::none;  ///< behind the layer; inside it for an MLP
  int times = 1, part = 1;  ///< a convolution gives the model's width x times / part numbers
  bool operator==(const CellBranch&) const = default;
};

/// One of the layers that a block of a space may be: light-5-4 has the numbers 5 and 4. In a space of cells
/// it is a branch, or what combines two of them.
struct Candidate {
  static constexpr int most_taps = 15;

  CandidateKind kind{};
  std::array<int, 2> numbers{};
  /// Space of pictures: the candidate opens a group and leaves half the rows and columns.
  bool halves = false;
  CellBranch branch{};

  int taps() const { return numbers[0]; }    ///< rows that a convolution or a pool sees
  int heads() const { return numbers[0]; }   ///< heads of an attention
  int times() const { return numbers[0]; }   ///< the model's width that an MLP has inside
  int shared() const { return numbers[1]; }  ///< channels that share the weights of a light convolution
  std::string word() const;
  bool operator==(const Candidate&) const = default;
};

/// The candidate that a word names; none where it names none.
std::optional<Candidate> candidate_named(const std::string& word);
/// All words of a use, with letters for numbers: "conv-K, separable-K, ...".
std::string candidate_words(WordUse use = WordUse::texts);
/// End of a sentence about a wrong word: a kind's name as it is spelt, with the numbers that were written.
std::string word_meant(const std::string& word);

/// Blocks that follow each other in a space of pictures. The first halves a picture's height and width.
struct PictureGroup {
  int blocks = 0, width = 0;  ///< channels behind each of its blocks
  bool operator==(const PictureGroup&) const = default;
};

/// The blocks of a cell, of which an encoder or a decoder has several.
struct CellSide {
  int blocks = 0;             ///< blocks of one cell; 0: there are no cells
  std::vector<int> residual;  ///< each block's state that is added, as CellBranch::input; 0: none
  bool operator==(const CellSide&) const = default;
};

/// The candidates of each block of a model. A block of a cell is three of what follows, a number of a choice
/// each: its left branch, its right branch, and what combines them.
struct Space {
  static constexpr int places_of_cell_block = 3;

  std::string name;
  std::vector<std::vector<Candidate>> encoder, decoder;  ///< no encoder: a language model
  std::vector<std::vector<Candidate>> pictures;          ///< blocks of pictures: then no encoder, no decoder
  std::vector<PictureGroup> groups;                      ///< groups of the picture blocks
  CellSide encoder_cell, decoder_cell;                   ///< cells of a space of cells
  std::string written;  ///< the configuration's own text: a word, or the whole space on one line

  bool has_encoder() const { return !encoder.empty(); }
  bool is_of_pictures() const { return !pictures.empty(); }
  int blocks() const { return static_cast<int>(encoder.size() + decoder.size() + pictures.size()); }
  bool has_cells() const { return decoder_cell.blocks > 0; }
  /// Numbers of a choice that one layer of a network's list takes; and how many layers there are.
  int places_of_layer() const { return has_cells() ? places_of_cell_block : 1; }
  int layers() const { return blocks() / places_of_layer(); }
  /// "block 7", or "right of block 2 in cell 1 of the encoder".
  std::string name_of(int block) const;
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
  Places positions = Places::learned;
  bool tied = true;            ///< embeddings and head share their table
  double norm_momentum = 0.1;  ///< momentum of the batch norms of one network
  bool operator==(const SpaceSettings&) const = default;
};

/// How many networks a space has; the largest number where they are more.
std::int64_t networks_of(const Space& space);

/// What a setting that holds a space may be.
std::string allowed_spaces();
/// Reads a space as strictly as a configuration: a word, a file that describes one, or what stands in such a
/// file. `key` is the setting's.
Space read_space(const Node& node, const std::string& key);

/// The settings of a model of a space: those of texts or of pictures, as the space is; both where it is not
/// known yet.
std::vector<Setting> space_settings(SpaceSettings& m, Config& config);
void fill_in_space(const SpaceSettings& m, Config& config);
/// Refuses samples that are none of the space's, or do not fit the context.
void check_space(const SpaceSettings& m, const Config& config, const Complaints& complain);
/// The rows of samples, of pictures the fewest pixels, which logical tensor shards divide.
std::vector<Extent> rows_of_space(const SpaceSettings& m, const Config& config);
/// Why a candidate does not fit a width or a number of logical tensor shards, with the nearest that fit:
/// "attention-5, whose heads do not divide ..."; empty where it fits.
std::string misfit_of(const Candidate& candidate, int width, int shards);
/// The first misfit of a network of a space, or without a choice of all of them: "block 3 attention-5, whose
/// heads ...".
std::string misfit_of(const Space& space, const std::vector<int>* choice, int width, int shards);

}  // namespace mindpipe
