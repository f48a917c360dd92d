#pragma once
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "config/config.h"
#include "lots.h"

namespace mindpipe {

/// How many supernets tests draw, numbered from 1 on.
inline constexpr int random_supernets = 200;

/// A supernet with all that decides how it runs, drawn from its number: its space, its grid of 1 to 16 ranks,
/// how a batch is divided, its window, its rooms and what is said to take how long. Some are refused.
class RandomSupernet {
 public:
  explicit RandomSupernet(int number) : number_(number), lots_("random supernet", number) {
    draw_grid();
    draw_batch();
    draw_space();
    draw_rules();
  }

  const GridConfig& grid() const { return grid_; }
  int ranks() const { return grid_.supernet * grid_.pipeline * grid_.data * grid_.tensor; }
  int window() const { return window_; }
  /// Logical data shards of one data rank, and micro-batches of one of them.
  int shards_here() const { return shards_here_; }
  int micro_batches() const { return micro_batches_; }
  bool has_own_cuts() const { return own_cuts_; }
  const std::string& prices() const { return prices_; }
  const std::vector<std::vector<std::string>>& blocks() const { return blocks_; }

  std::string name() const {
    return fmt::format(
        "supernet {}: {} x {} x {} x {} (lanes, stages, data, tensor), {} blocks{}{}, window {}, "
        "{} shards a rank of {} micro-batches, prices {}, {}, {}",
        number_, grid_.supernet, grid_.pipeline, grid_.data, grid_.tensor, blocks_.size(),
        is_of_pairs_ ? " of pairs" : "", own_cuts_ ? ", own cuts" : "", window_, shards_here_, micro_batches_,
        prices_, rooms_, links_);
  }

  /// The configuration that the program is given, whose run writes into `directory`.
  std::string text(const std::string& directory) const {
    return fmt::format("seed: 3\nrun: {{dir: {}}}\n", directory) + text_of_model() +
           fmt::format("grid: {{supernet: {}, pipeline: {}, data: {}, tensor: {}}}\n", grid_.supernet,
                       grid_.pipeline, grid_.data, grid_.tensor) +
           fmt::format("reproducible: {{tensor: {}, data: {}}}\n", tensor_shards_,
                       shards_here_ * grid_.data) +
           fmt::format("supernet: {{sampler: {}, window: {}, cuts: {}, prices: {}, {}}}\n", sampler_, window_,
                       own_cuts_ ? "own" : "home", prices_, rooms_) +
           fmt::format("train: {{steps: {}, batch: {}, micro_batch: {}, clip: 0.05, {}}}\n", subnets_,
                       micro_batch_ * micro_batches_ * shards_here_ * grid_.data, micro_batch_, arithmetic_) +
           fmt::format("optimizer: {{kind: {}, rate: {{kind: linear, peak: 0.01}}}}\n", optimizer_) +
           fmt::format("device: {{threads: 1, {}}}\n", links_);
  }

  /// The configuration as the program reads it, or its refusal.
  Config read() const {
    const std::string file =
        (std::filesystem::temp_directory_path() / fmt::format("random_supernet.{}.yaml", getpid())).string();
    std::ofstream(file) << text("nowhere");
    struct Removed {
      const std::string& file;
      ~Removed() { std::filesystem::remove(file); }
    } removed{file};
    return read_config(file, {});
  }

 private:
  int factor_of(int number, int most) {
    std::vector<int> factors;
    for (int factor = 1; factor <= std::min(number, most); ++factor)
      if (number % factor == 0) factors.push_back(factor);
    return factors[lots_.below(static_cast<int>(factors.size()))];
  }

  void draw_grid() {
    constexpr int counts[] = {1, 2, 2, 3, 4, 4, 5, 6, 8, 8, 10, 12, 16, 16};
    int left = counts[lots_.below(std::size(counts))];
    left /= grid_.supernet = factor_of(left, 16);
    left /= grid_.data = factor_of(left, 4);
    left /= grid_.tensor = left % 2 == 0 && lots_.once_in(4) ? 2 : 1;
    grid_.pipeline = left;
    tensor_shards_ = std::max(grid_.tensor, 1 + lots_.below(2));
  }

  void draw_batch() {
    micro_batches_ = lots_.once_in(3) ? 4 : 1;
    shards_here_ = 1 + lots_.below(micro_batches_ == 4 ? 3 : 7);
    micro_batch_ = 1 + lots_.below(2);
    subnets_ = 8 + lots_.below(25);
  }

  std::vector<std::string> draw_candidates(bool decodes_pairs) {
    constexpr const char* layers[] = {"conv-1",      "conv-3", "separable-3", "light-3-4", "attention-4",
                                      "attention-2", "glu",    "mlp-2",       "mlp-4"};
    std::vector<std::string> candidates(1 + lots_.below(8));
    for (std::string& candidate : candidates)
      candidate = lots_.once_in(3)                    ? "identity"
                  : decodes_pairs && lots_.once_in(3) ? "cross-4"
                                                      : layers[lots_.below(std::size(layers))];
    return candidates;
  }

  void draw_space() {
    is_of_pairs_ = lots_.once_in(4);
    blocks_.resize(std::max(2, grid_.pipeline) + lots_.below(6));
    for (std::size_t block = 0; block < blocks_.size(); ++block)
      blocks_[block] = draw_candidates(is_of_pairs_ && block >= blocks_.size() / 2);
    const bool fits = std::ssize(blocks_) >= 2 * grid_.pipeline;
    own_cuts_ = lots_.once_in(fits ? 2 : 12);  // where they do not fit they are refused
    is_tied_ = lots_.once_in(2);
  }

  void draw_rules() {
    constexpr const char *samplers[] = {"uniform", "permutation", "spaced"},
                         *prices[] = {"paper", "equal", "h200"},
                         *links[] = {"links: {rate: 1.0e6}", "links: {rate: 1.0e9}", "links: {rate: 3.5e11}"};
    sampler_ = samplers[lots_.below(3)];
    window_ = 1 + lots_.below(lots_.once_in(2) ? 3 : 20);
    prices_ = prices[lots_.below(3)];
    links_ = links[lots_.below(3)];
    const int lanes = grid_.supernet, here = shards_here_ * micro_batches_;
    // Every twelfth of those that are drawn is one too few, and refused.
    const int few = lots_.once_in(12) ? 1 : 0;
    rooms_ = lots_.once_in(2) ? "admission: auto"
                              : fmt::format("admission: {}", std::max(1, lanes - few) +
                                                                 lots_.below(3 * lanes * grid_.pipeline));
    rooms_ += lots_.once_in(2) ? ", slots: auto"
                               : fmt::format(", slots: {}",
                                             few > 0 ? std::max(1, here - 1) : here + lots_.below(2 * here));
    arithmetic_ = fmt::format(
        "precision: {}, sequence_parallel: {}, recompute: {}", lots_.once_in(3) ? "bf16" : "f32",
        grid_.tensor > 1 && lots_.once_in(2) ? "true" : "false", lots_.once_in(4) ? "block" : "none");
    optimizer_ = lots_.once_in(4) ? "sgd" : "adamw";
  }

  std::string text_of_blocks(std::size_t first, std::size_t last) const {
    std::string text;
    for (std::size_t block = first; block < last; ++block) {
      text += block > first ? ", [" : "{blocks: [[";
      for (std::size_t k = 0; k < blocks_[block].size(); ++k) text += (k > 0 ? ", " : "") + blocks_[block][k];
      text += "]";
    }
    return text + "]}";
  }

  std::string text_of_model() const {
    const std::size_t half = is_of_pairs_ ? blocks_.size() / 2 : 0;
    const std::string encoder = is_of_pairs_ ? "encoder: " + text_of_blocks(0, half) + ", " : "";
    return fmt::format(
               "model: {{kind: supernet, width: 16, context: 28, vocabulary: 260, tied: {}, dropout: 0.1,\n"
               "  space: {{name: random-{}, {}decoder: {}}}}}\n",
               is_tied_, number_, encoder, text_of_blocks(half, blocks_.size())) +
           (is_of_pairs_
                ? std::string("data: {train: [\"synthetic:dates\"], source_sequence: 28, "
                              "target_sequence: 12}\n")
                : fmt::format("data: {{train: [{}/data/alice.txt], sequence: 8}}\n", MINDPIPE_SOURCE_DIR));
  }

  int number_;
  Lots lots_;
  GridConfig grid_;
  int tensor_shards_ = 1, shards_here_ = 1, micro_batches_ = 1, micro_batch_ = 1, subnets_ = 1, window_ = 1;
  bool is_of_pairs_ = false, own_cuts_ = false, is_tied_ = false;
  std::vector<std::vector<std::string>>
      blocks_;  ///< candidates of the encoder's blocks, then of the decoder's
  std::string sampler_, prices_, links_, rooms_, arithmetic_, optimizer_;
};

}  // namespace mindpipe
