#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/field.h"
#include "layers/layer.h"

namespace mindpipe {

struct Config;

/// A model as one would write it for one device: a list of blocks, and the units that hold their parameters,
/// in model order. A rank builds the whole list, which takes no memory, and allocates its own blocks' units.
///
/// Whatever plans, runs or measures a model asks it: which fields a sample has, what crosses the edge before
/// each block, how many targets count, what a sample counts for. So a model is written down in one place, the
/// function that makes it:
///
///   add_field   what a sample is made of; a model has as many losses as its field `targets` has numbers
///   stream      [rows, width] of a sample behind the blocks that are added next
///   add_block   a block, with the units that hold its parameters
///   carry_memory, count_in, estimate, continue_texts, export_as where they apply
class Model {
 public:
  struct Block {
    std::string name;
    std::unique_ptr<Layer> layer;
    std::vector<int> units;  ///< indices into units(), ascending
    int use = 0;             ///< number of this block among the users of a shared unit
    Shape behind{};          ///< [rows, width] of the activation of a sample that leaves it
    Shape memory{};          ///< [rows, width] of an encoder's output that enters it; none: none does
    /// One of the numbers of a subnet's choice that a block depends on.
    struct Choice {
      int place = 0;           ///< in the choice
      std::vector<int> units;  ///< each candidate's, -1: it has none
    };
    std::vector<Choice> choices = {};  ///< numbers of a supernet block's choice
    bool is_swapped = false;  ///< whether its part of a tape waits on the host between forward and backward
    bool reads_encoder() const { return memory.rank > 0; }
    bool is_choice() const { return !choices.empty(); }
  };

  // What the function that makes a model says.

  /// Adds a field of every sample. The losses are one for each number of the field `targets`.
  void add_field(const Field& field) { fields_.push_back(field); }
  /// Says the shape [rows, width] of a sample's activation behind the blocks added from here on. Logical
  /// tensor shards divide its rows: padded_rows.
  void stream(const Shape& rows_and_width) { stream_ = rows_and_width; }
  Unit& add_unit(const std::string& name);
  /// Appends a block whose parameters live in `units`.
  void add_block(const std::string& name, std::unique_ptr<Layer> layer, const std::vector<Unit*>& units,
                 int use = 0);
  /// Appends a block of a supernet that depends on the numbers of a choice from `place` on. `units`: of each
  /// candidate of each of them, nullptr where it has no parameters.
  void add_choice(const std::string& name, std::unique_ptr<Layer> layer,
                  const std::vector<std::vector<Unit*>>& units, int place);
  /// Says that an encoder's output, [rows, width] of a sample, enters the blocks [first, last].
  void carry_memory(std::size_t first, std::size_t last, const Shape& rows_and_width);
  /// What a run's speed is counted in, and how many of them a sample is.
  struct Counted {
    std::string_view what = "token";  ///< one of them
    std::int64_t of_sample = 0;
  };
  void count_in(const Counted& counted) { counted_ = counted; }
  /// A formula for the operations that one of what is counted takes, forward and backward: "6N + 6Lhq".
  struct Formula {
    std::string text;
    double operations = 0;
  };
  void estimate(const Formula& formula) { formula_ = formula; }
  /// What it takes to go on with a text.
  struct Continuation {
    std::int64_t context = 0;     ///< the most tokens that it sees
    std::int64_t vocabulary = 0;  ///< logits of a position
  };
  void continue_texts(const Continuation& continuation) { continuation_ = continuation; }
  /// How a tensor stands in files that others read.
  struct ExportName {
    std::string name;
    bool transposed = false;               ///< they store it as [in, out]
    std::vector<std::int64_t> shape = {};  ///< there, where it is not [rows, columns]
  };
  using Names = std::function<ExportName(const std::string& unit, const std::string& part)>;
  void export_as(Names names) { names_ = std::move(names); }
  /// What files of others hold beside the model's own tensors, and how their names may differ.
  struct FileNames {
    std::string prefix = {};  ///< files of a model without its head leave it out: "transformer."
    std::vector<std::pair<std::string, std::string>> second = {};  ///< second names of tensors, and the first
    std::vector<std::string> left_out = {};  ///< patterns with * of tensors that nothing here is made of
    std::vector<std::string> head = {};      ///< patterns of heads' tensors, which depend on a task
    std::vector<std::string> optional =
        {};  ///< patterns of tensors that stay as they are drawn where none is there
    /// Tensors of zeros that others expect, which are no parameters here.
    std::vector<std::pair<std::string, std::vector<std::int64_t>>> zeros = {};
  };
  void expect_in_files(FileNames names) { file_names_ = std::move(names); }

  // What others ask.

  const std::vector<Field>& fields() const { return fields_; }
  /// The fields that the blocks of some ranges [first, last) read.
  std::vector<Field> fields_of(const std::vector<std::pair<int, int>>& ranges) const;
  /// Losses of a sample.
  std::int64_t targets_per_sample() const;
  /// [rows, width] of the activation of a sample that enters a block; none enters the first.
  Shape before(int block) const { return block == 0 ? Shape{} : blocks_[block - 1].behind; }
  const Counted& counted() const { return counted_; }
  const Formula& formula() const { return formula_; }
  /// None where a model does not continue texts.
  const std::optional<Continuation>& continuation() const { return continuation_; }
  /// Bytes of what is kept of earlier rows while texts are continued.
  std::size_t cache_bytes(std::int64_t samples) const;

  std::vector<Block>& blocks() { return blocks_; }
  const std::vector<Block>& blocks() const { return blocks_; }
  std::vector<std::unique_ptr<Unit>>& units() { return units_; }
  const std::vector<std::unique_ptr<Unit>>& units() const { return units_; }
  std::int64_t parameters() const;
  /// The blocks that use a unit, in model order.
  const std::vector<int>& blocks_of(int unit) const { return blocks_of_[unit]; }

  /// Whether all subnets of a supernet share a unit, which no choice block has. Other models have none.
  bool is_shared(int unit) const;
  /// Whether some block is one of several candidates.
  bool has_choices() const;

  /// What a part of a unit is called in files that others read: "unit.part" where the model has no names.
  ExportName export_name(const std::string& unit, const std::string& part) const;
  const FileNames& file_names() const { return file_names_; }

 private:
  std::vector<std::unique_ptr<Unit>> units_;
  std::vector<Block> blocks_;
  std::vector<std::vector<int>> blocks_of_;  ///< the blocks that use each unit
  std::vector<Field> fields_;
  Shape stream_;
  Counted counted_;
  Formula formula_;
  std::optional<Continuation> continuation_;
  Names names_;
  FileNames file_names_;
};

/// Builds the model that the configuration names. Recomputation and dropout are taken from it too.
std::unique_ptr<Model> make_model(const Config& config, const LayerContext& context);

/// Refuses, with the nearest that fits, heads or widths that the logical tensor shards do not divide.
void require_divisible(std::int64_t value, int shards, const std::string& key);

/// Rows padded up to a multiple of the logical tensor shards. Attention sees `key_rows` of them; padding is
/// finite, has no target, and the gradient that goes back through it is zero.
inline std::int64_t padded_rows(std::int64_t rows, int shards) {
  return (rows + shards - 1) / shards * shards;
}

}  // namespace mindpipe
