#pragma once
#include <memory>
#include <string>
#include <vector>

#include "config/config.h"
#include "layers/layer.h"

namespace mindpipe {

/// A model as one would write it for one device: a list of blocks, and the units that hold their parameters,
/// in model order. A rank builds the whole list, which takes no memory, and allocates its own blocks' units.
class Model {
 public:
  struct Block {
    std::string name;
    std::unique_ptr<Layer> layer;
    std::vector<int> units;      ///< indices into units(), ascending
    int use = 0;                 ///< number of this block among the users of a shared unit
    bool reads_encoder = false;  ///< whether the boundary that enters this block carries an encoder's output
  };

  Unit& add_unit(const std::string& name);
  /// Appends a block whose parameters live in `units`.
  void add_block(const std::string& name, std::unique_ptr<Layer> layer, const std::vector<Unit*>& units,
                 int use = 0);

  std::vector<Block>& blocks() { return blocks_; }
  const std::vector<Block>& blocks() const { return blocks_; }
  std::vector<std::unique_ptr<Unit>>& units() { return units_; }
  const std::vector<std::unique_ptr<Unit>>& units() const { return units_; }
  std::int64_t parameters() const;
  /// The blocks that use a unit, in model order.
  const std::vector<int>& blocks_of(int unit) const { return blocks_of_[unit]; }

  /// Name of a tensor in files that others read, and whether they store it as [in, out].
  struct ExportName {
    std::string name;
    bool transposed = false;
  };
  virtual ExportName export_name(const std::string& unit, const std::string& part) const;
  virtual ~Model() = default;

 private:
  std::vector<std::unique_ptr<Unit>> units_;
  std::vector<Block> blocks_;
  std::vector<std::vector<int>> blocks_of_;  ///< the blocks that use each unit
};

/// Builds the model that the configuration names. Recomputation and dropout are taken from it too.
std::unique_ptr<Model> make_model(const Config& config, const LayerContext& context);

// make_gpt, make_translator: every model of config/kinds.h, each in a file of its own.
#define MINDPIPE_DECLARE_MODEL(model, ...) \
  std::unique_ptr<Model> make_##model(const Config& config, const LayerContext& context);
MINDPIPE_MODELS(MINDPIPE_DECLARE_MODEL)
#undef MINDPIPE_DECLARE_MODEL

/// Wraps a block so that it is recomputed, when the configuration asks for it.
std::unique_ptr<Layer> maybe_recomputed(const Config& config, std::unique_ptr<Layer> block);

/// Refuses, with the nearest that fits, heads or widths that the logical tensor shards do not divide.
void require_divisible(std::int64_t value, int shards, const std::string& key);

}  // namespace mindpipe
