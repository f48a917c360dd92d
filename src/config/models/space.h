#pragma once
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "config/models/blocks.h"

namespace mindpipe {

struct Node;

/// Where a word may stand: in any space, as a layer of a cell alone, or between the branches of a cell's
/// block.
enum class WordUse : std::uint8_t { anywhere, in_cells, combiner };

struct CandidateRow {
  std::string_view name;     ///< what its word begins with
  std::string_view numbers;  ///< what follows, a letter for each number
  WordUse use = WordUse::anywhere;
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
  kind(identity, "identity", "") \
  kind(normed_mlp, "normed_mlp", "-R", WordUse::in_cells) \
  kind(none, "none", "", WordUse::in_cells) \
  kind(add, "add", "", WordUse::combiner) \
  kind(multiply, "multiply", "", WordUse::combiner) \
  kind(concat, "concat", "", WordUse::combiner)
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
MINDPIPE_KINDS(CellNorm, NamedRow, MINDPIPE_CELL_NORMS)
MINDPIPE_KINDS(CellActivation, NamedRow, MINDPIPE_CELL_ACTIVATIONS)

/// What a branch of a cell's block has around its layer.
struct CellBranch {
  int input = 1;  ///< which state before the block it reads: 1 is the last one, 2 the one before
  CellNorm norm = CellNorm::none;
  CellActivation activation = CellActivation::none;  ///< of what the layer gives; of an MLP inside it
  int times = 1, part = 1;  ///< a convolution gives the model's width x times / part numbers
  bool operator==(const CellBranch&) const = default;
};

/// One of the layers that a block of a space may be: light-5-4 has the numbers 5 and 4. In a space of cells
/// it is a branch, or what combines two of them.
struct Candidate {
  static constexpr int most_taps = 15;

  CandidateKind kind{};
  std::array<int, 2> numbers{};
  CellBranch branch{};

  int taps() const { return numbers[0]; }    ///< rows that a convolution sees
  int heads() const { return numbers[0]; }   ///< of attention
  int times() const { return numbers[0]; }   ///< the model's width that an MLP has inside
  int shared() const { return numbers[1]; }  ///< channels that share the weights of a light convolution
  std::string word() const;
  bool operator==(const Candidate&) const = default;
};

/// The candidate that a word names; none where it names none.
std::optional<Candidate> candidate_named(const std::string& word);
/// All words of a use, with letters for numbers: "conv-K, separable-K, ...". In cells words of any space are,
/// too.
std::string candidate_words(WordUse use = WordUse::anywhere);
/// End of a sentence about a wrong word: a kind's name as it is spelt, with the numbers that were written.
std::string word_meant(const std::string& word);

/// The blocks of a cell, of which an encoder or a decoder has several.
struct CellSide {
  int blocks = 0;             ///< of one cell; 0: there are no cells
  std::vector<int> residual;  ///< of each block: the state that is added, as CellBranch::input; 0: none
  bool operator==(const CellSide&) const = default;
};

/// The candidates of each block of a model. A block of a cell is three of what follows, a number of a choice
/// each: its left branch, its right branch, and what combines them.
struct Space {
  static constexpr int places_of_cell_block = 3;

  std::string name;
  std::vector<std::vector<Candidate>> encoder, decoder;  ///< no encoder: a language model
  CellSide encoder_cell, decoder_cell;                   ///< of a space of cells
  std::string written;  ///< as a configuration says it: a word, or all of it on one line

  bool has_encoder() const { return !encoder.empty(); }
  int blocks() const { return static_cast<int>(encoder.size() + decoder.size()); }
  bool has_cells() const { return decoder_cell.blocks > 0; }
  /// Numbers of a choice that one layer of a network's list takes; and how many layers there are.
  int places_of_layer() const { return has_cells() ? places_of_cell_block : 1; }
  int layers() const { return blocks() / places_of_layer(); }
  /// "block 7", or "right of block 2 in cell 1 of the encoder".
  std::string name_of(int block) const;
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
  Places positions = Places::learned;
  bool tied = true;  ///< embeddings and head share their table
  bool operator==(const SpaceSettings&) const = default;
};

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
/// The first misfit of a network of a space, or without a choice of all of them: "block 3 attention-5, whose
/// heads ...".
std::string misfit_of(const Space& space, const std::vector<int>* choice, int width, int shards);

}  // namespace mindpipe
