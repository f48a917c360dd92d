#include "state/file_shares.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "optim/unit_share.h"
#include "state/residency.h"
#include "state/stages_on_paper.h"

namespace mindpipe {
namespace {

/// What a rank has of a tensor: the first element of each file_piece of it, as it is stored, and the run.
using Held = std::map<std::int64_t, ElementRun>;

/// The runs that a rank has of a saved tensor by its own layout, neighbours joined.
Held held_of(const Unit& own, const SavedTensor& saved, const StageRanks& ranks, int data_rank) {
  const bool in_shares = ranks.sharded && saved.state != "value";
  const Elements part =
      in_shares ? Elements{share_edge(own, ranks.data, data_rank), share_edge(own, ranks.data, data_rank + 1)}
                : Elements{0, own.flat_count()};
  Held held;
  for (const ElementRun& run : runs_of(own, saved.tensor.pieces.front(), part)) {
    const std::int64_t at = stored_at(saved.tensor, run.row, run.column);
    if (!held.empty()) {
      auto& [before, last] = *held.rbegin();
      if (before + last.count == at && last.flat + last.count == run.flat) {
        last.count += run.count;
        continue;
      }
    }
    held[at] = run;
  }
  return held;
}

bool has(const Held& held, std::int64_t at, const ElementRun& run) {
  auto next = held.upper_bound(at);
  if (next == held.begin()) return false;
  const auto& [first, all] = *--next;
  return at + run.count <= first + all.count && run.flat - all.flat == at - first;
}

/// A stage on paper whose shares are looked at.
struct Shares {
  const std::vector<std::unique_ptr<PaperModel>>& models;  ///< one for each tensor rank
  StageRanks ranks;
  std::vector<SavedTensor> tensors;
  std::vector<FilePiece> file_pieces;
  std::string what;

  Shares(const Config& config, const std::vector<std::unique_ptr<PaperModel>>& as_ranks_have_it,
         const StageRanks& stage, const std::vector<char>& is_here)
      : models(as_ranks_have_it),
        ranks(stage),
        tensors(saved_tensors(state_names(config.train, config.optimizer), models[0]->model())) {
    what = fmt::format("tensor {} data {}{}", ranks.tensor, ranks.data, ranks.sharded ? " in parts" : "");
    file_pieces = shared_out(models[0]->model(), tensors, ranks, is_here);
    for (const auto& other : models) {
      const std::vector<FilePiece> theirs = shared_out(other->model(), tensors, ranks, is_here);
      EXPECT_TRUE(std::equal(theirs.begin(), theirs.end(), file_pieces.begin(), file_pieces.end(),
                             [](const FilePiece& a, const FilePiece& b) {
                               return a.tensor == b.tensor && a.stored.first == b.stored.first &&
                                      a.stored.end == b.stored.end && a.writer == b.writer;
                             }))
          << what << ": ranks share out in other ways";
    }
  }
  const Unit& unit(const SavedTensor& saved, int tensor_rank) const {
    return *models[tensor_rank]->model().units()[saved.tensor.pieces.front().unit];
  }
  bool split_by_columns(const SavedTensor& saved) const {
    return unit(saved, 0).params()[saved.tensor.pieces.front().param].split == Split::in;
  }

  /// Each tensor of units that are here is tiled by its file_pieces, in order; others have none.
  void expect_tiles(const std::vector<char>& is_here) const {
    std::vector<std::int64_t> end(tensors.size(), 0);
    for (const FilePiece& file_piece : file_pieces) {
      ASSERT_EQ(file_piece.stored.first, end[file_piece.tensor])
          << what << " " << tensors[file_piece.tensor].path;
      ASSERT_LT(file_piece.stored.first, file_piece.stored.end);
      end[file_piece.tensor] = file_piece.stored.end;
    }
    for (std::size_t i = 0; i < tensors.size(); ++i)
      ASSERT_EQ(end[i], is_here[tensors[i].tensor.pieces.front().unit] != 0 ? tensors[i].tensor.count() : 0)
          << what << " " << tensors[i].path;
  }
  /// None too long, none but the last of a tensor too short, whole rows or a part of one.
  void expect_good_sizes() const {
    for (const FilePiece& file_piece : file_pieces) {
      const WholeTensor& tensor = tensors[file_piece.tensor].tensor;
      const std::int64_t row = tensor.columns == 0 ? tensor.rows : tensor.columns;
      EXPECT_LE(file_piece.bytes(), longest_file_piece) << what << " " << tensor.name;
      if (file_piece.stored.end < tensor.count()) {
        EXPECT_GE(file_piece.bytes() * 4, longest_file_piece) << what << " " << tensor.name;
      }
      const bool rows = file_piece.stored.first % row == 0 && file_piece.stored.end % row == 0,
                 in_one = file_piece.stored.first / row == (file_piece.stored.end - 1) / row;
      EXPECT_TRUE(rows || in_one) << what << " " << tensor.name;
    }
  }
  /// Every element of a file_piece has one giver, which has it where it says.
  void expect_givers() const {
    std::map<std::pair<int, int>, Held> known;
    for (const FilePiece& file_piece : file_pieces) {
      const SavedTensor& saved = tensors[file_piece.tensor];
      std::vector<Elements> given;
      for (int from = 0; from < ranks.size(); ++from) {
        const auto [held, fresh] = known.try_emplace({file_piece.tensor, from});
        const int tensor_rank = ranks.tensor_rank(from), data_rank = ranks.data_rank(from);
        if (fresh) held->second = held_of(unit(saved, tensor_rank), saved, ranks, data_rank);
        const Model& model = models[ranks.tensor_rank(file_piece.writer)]->model();
        for (const ElementRun& run : given_by(model, tensors, ranks, file_piece, from)) {
          const std::int64_t at = stored_at(saved.tensor, run.row, run.column);
          ASSERT_TRUE(has(held->second, at, run))
              << what << " " << saved.path << ": rank " << from << " has no elements " << at << " to "
              << at + run.count << " at " << run.flat;
          given.push_back({at, at + run.count});
        }
      }
      std::sort(given.begin(), given.end(), [](auto& a, auto& b) { return a.first < b.first; });
      std::int64_t end = file_piece.stored.first;
      for (const Elements& elements : given) {
        ASSERT_EQ(elements.first, end) << what << " " << saved.path << ": an element has none or two givers";
        end = elements.end;
      }
      ASSERT_EQ(end, file_piece.stored.end) << what << " " << saved.path;
    }
  }
  /// Elements of a file_piece that all data ranks of a tensor rank have; the first of them.
  std::pair<std::int64_t, std::int64_t> part_of_tensor_rank(const FilePiece& file_piece,
                                                            int tensor_rank) const {
    const SavedTensor& saved = tensors[file_piece.tensor];
    std::int64_t count = 0, first = -1;
    for (const auto& [at, run] :
         held_of(unit(saved, tensor_rank), saved, StageRanks{ranks.tensor, 1, false}, 0)) {
      const std::int64_t begin = std::max(at, file_piece.stored.first),
                         end = std::min(at + run.count, file_piece.stored.end);
      if (begin >= end) continue;
      if (count == 0) first = begin;
      count += end - begin;
    }
    return {count, first};
  }
  /// No tensor rank has more of a file_piece than its writer, unless columns are split; and of its data ranks
  /// the writer is the one that has their first element.
  void expect_writers_have_most() const {
    for (const FilePiece& file_piece : file_pieces) {
      const SavedTensor& saved = tensors[file_piece.tensor];
      const int tensor_rank = ranks.tensor_rank(file_piece.writer),
                data_rank = ranks.data_rank(file_piece.writer);
      const auto [count, first] = part_of_tensor_rank(file_piece, split_by_columns(saved) ? 0 : tensor_rank);
      for (int t = 0; t < ranks.tensor && !split_by_columns(saved); ++t)
        ASSERT_LE(part_of_tensor_rank(file_piece, t).first, count) << what << " " << saved.path;
      const int having_first = split_by_columns(saved) ? 0 : tensor_rank;
      const Held held = held_of(unit(saved, having_first), saved, ranks, data_rank);
      if (count == 0) continue;  // a part of a row, of other columns than the first
      const auto next = held.upper_bound(first);
      ASSERT_TRUE(next != held.begin() && std::prev(next)->first + std::prev(next)->second.count > first)
          << what << " " << saved.path << " from " << file_piece.stored.first;
    }
  }
  /// Bytes that a rank writes; `free`: only those that other data ranks could write as well.
  std::int64_t written_by(int number, bool free = false) const {
    std::int64_t bytes = 0;
    for (const FilePiece& file_piece : file_pieces) {
      const bool bound = ranks.sharded && tensors[file_piece.tensor].state != "value";
      if (file_piece.writer == number && !(free && bound)) bytes += file_piece.bytes();
    }
    return bytes;
  }
  std::int64_t longest() const {
    std::int64_t bytes = 0;
    for (const FilePiece& file_piece : file_pieces) bytes = std::max(bytes, file_piece.bytes());
    return bytes;
  }
  /// No share is larger than another by more than so many file_pieces, unless only this rank may write all of
  /// it.
  void expect_balance(int apart) const {
    std::int64_t least = written_by(0);
    for (int number = 1; number < ranks.size(); ++number) least = std::min(least, written_by(number));
    for (int number = 0; number < ranks.size(); ++number)
      if (written_by(number, true) > 0) {
        EXPECT_LE(written_by(number) - least, apart * longest()) << what << ": rank " << number;
      }
  }
};

template <class Look>
void for_all_stages(const std::function<std::vector<std::unique_ptr<PaperModel>>(int tensor)>& make,
                    const Config& config, Look look) {
  for (int tensor = 1; tensor <= 4; ++tensor) {
    const auto models = make(tensor);
    for (int data = 1; data <= 4; ++data)
      for (const bool sharded : {false, true})
        if (!sharded || data > 1) look(config, models, StageRanks{tensor, data, sharded});
  }
}

void look_at_all(const Config& config, const std::vector<std::unique_ptr<PaperModel>>& models,
                 const StageRanks& ranks) {
  // All units on one stage; then every other one of them.
  for (const int stride : {1, 2}) {
    std::vector<char> is_here(models[0]->model().units().size(), 0);
    for (std::size_t unit = 0; unit < is_here.size(); unit += stride) is_here[unit] = 1;
    const Shares shares(config, models, ranks, is_here);
    shares.expect_tiles(is_here);
    shares.expect_good_sizes();
    shares.expect_givers();
    shares.expect_writers_have_most();
  }
}

TEST(FileShares, EveryElementOfEveryModelIsGivenOnceToTheOneThatWritesIt) {
  for (const Config& config : models_on_paper())
    for_all_stages([&](int tensor) { return model_of_ranks(config, tensor); }, config, look_at_all);
}

TEST(FileShares, SoIsEveryElementOfTensorsOfManyPieces) {
  const Config config = models_on_paper().front();
  for_all_stages([&](int tensor) { return large_tensors_of_ranks(config, tensor); }, config, look_at_all);
}

template <int apart>
void look_at_balance(const Config& config, const std::vector<std::unique_ptr<PaperModel>>& models,
                     const StageRanks& ranks) {
  const std::vector<char> all(models[0]->model().units().size(), 1);
  Shares(config, models, ranks, all).expect_balance(apart);
}

TEST(FileShares, AllWriteAboutEqually) {
  // The longest tensor of a small model is a padded table, of which the last rank has least: twice it is that
  // of others.
  for (const Config& config : models_on_paper())
    for_all_stages([&](int tensor) { return model_of_ranks(config, tensor); }, config, look_at_balance<2>);
  const Config config = models_on_paper().front();
  for_all_stages([&](int tensor) { return large_tensors_of_ranks(config, tensor); }, config,
                 look_at_balance<1>);
}

TEST(FileShares, SavedAreTheMastersOrTheValuesAndEveryMoment) {
  Config config = models_on_paper().front();
  const auto models = model_of_ranks(config, 1);
  const auto paths = [&](Precision precision, OptimizerKind kind) {
    Config c = config;
    c.train.precision = precision;
    c.optimizer.kind = kind;
    c.optimizer.momentum = 0.9;
    std::map<std::string, int> folders;
    for (const SavedTensor& saved : saved_tensors(state_names(c.train, c.optimizer), models[0]->model())) {
      EXPECT_EQ(saved.bytes(), saved.tensor.count() * 4);
      folders[saved.path.substr(0, saved.path.size() - saved.tensor.name.size()) + " " +
              std::string(saved.state)] += 1;
    }
    return folders;
  };
  const int all = static_cast<int>(tensors_of_pieces(models[0]->model()).size());
  using Folders = std::map<std::string, int>;
  EXPECT_EQ(paths(Precision::f32, OptimizerKind::adamw),
            (Folders{{"/model/ value", all}, {"/optim/m/ m", all}, {"/optim/v/ v", all}}));
  EXPECT_EQ(paths(Precision::bf16, OptimizerKind::adamw),
            (Folders{{"/model/ master", all}, {"/optim/m/ m", all}, {"/optim/v/ v", all}}));
  EXPECT_EQ(paths(Precision::f32, OptimizerKind::sgd),
            (Folders{{"/model/ value", all}, {"/optim/velocity/ velocity", all}}));
}

}  // namespace
}  // namespace mindpipe
