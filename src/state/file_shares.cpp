#include "state/file_shares.h"

#include <algorithm>
#include <numeric>

#include "io/file.h"
#include "optim/unit_share.h"
#include "state/model_state.h"

namespace mindpipe {
namespace {

/// The unit's shards on a rank of the tensor group.
ShardRange shards_of(const Unit& unit, const StageRanks& ranks, int tensor_rank) {
  const int local = unit.shards().logical / ranks.tensor;
  return {unit.shards().logical, local, tensor_rank * local};
}

bool in_shares(const SavedTensor& saved, const StageRanks& ranks) {
  return ranks.sharded && ranks.data > 1 && saved.state != "value" && saved.state != older_state;
}

const StackedPiece& piece_of(const SavedTensor& saved) { return saved.tensor.pieces.front(); }

/// Which of several shares an element of the flat order is in.
int share_of(const Unit& unit, int shares, std::int64_t flat) {
  int share = 0;
  while (share + 1 < shares && share_edge(unit, shares, share + 1) <= flat) ++share;
  return share;
}

/// How many rows one file_piece may have: whole pages of the file where rows of this width make some.
std::int64_t rows_of_file_piece(std::int64_t width, std::int64_t most) {
  const std::int64_t rows = std::max<std::int64_t>(1, most / width);
  const std::int64_t words = file_page / static_cast<std::int64_t>(sizeof(float));
  const std::int64_t of_pages = words / std::gcd(words, width);  // the fewest rows that end with a page
  return rows < of_pages ? rows : rows / of_pages * of_pages;
}

/// Cuts a tensor: several rows together, or a row into equal parts.
std::vector<Elements> file_pieces_of(const WholeTensor& tensor, std::int64_t longest) {
  const std::int64_t most = longest / static_cast<std::int64_t>(sizeof(float));
  const std::int64_t width = tensor.columns == 0 || tensor.transposed ? tensor.rows : tensor.columns,
                     all = tensor.count();
  std::vector<Elements> cut;
  if (width <= most) {
    const std::int64_t step = rows_of_file_piece(width, most) * width;
    for (std::int64_t first = 0; first < all; first += step)
      cut.push_back({first, std::min(all, first + step)});
    return cut;
  }
  const std::int64_t parts = (width + most - 1) / most;
  for (std::int64_t row = 0; row < all; row += width)
    for (std::int64_t part = 0; part < parts; ++part)
      cut.push_back({row + width * part / parts, row + width * (part + 1) / parts});
  return cut;
}

/// What shards hold of a tensor, whose pieces are of one parameter, among its elements as they are stored.
std::vector<ElementRun> runs_of_tensor(const Unit& unit, const ShardRange& shards, const SavedTensor& saved,
                                       const Elements& stored) {
  std::vector<ElementRun> all;
  for (const StackedPiece& piece : saved.tensor.pieces) {
    MP_CHECK(piece.unit == piece_of(saved).unit && piece.param == piece_of(saved).param,
             "{} is stacked of several parameters", saved.path);
    const std::vector<ElementRun> runs = stored_runs_of(unit, shards, piece, saved.tensor, stored);
    all.insert(all.end(), runs.begin(), runs.end());
  }
  return all;
}

/// The ranks that may write a file_piece: of the tensor group those that have most of it, which are all of
/// them unless rows are split; of the replicas, where each has a part, the one that has their first element.
class Candidates {
 public:
  Candidates(const Unit& unit, const SavedTensor& saved, const StageRanks& ranks, const Elements& stored) {
    const bool by_rows = unit.params()[piece_of(saved).param].split == Split::out;
    const Elements looked_at = by_rows ? stored : Elements{stored.first, stored.first + 1};
    std::int64_t most = 0;
    int owner = -1;  // where columns are split, the one rank that has the first element says whose it is
    for (int t = 0; t < ranks.tensor; ++t) {
      const auto runs = runs_of_tensor(unit, shards_of(unit, ranks, t), saved, looked_at);
      if (in_shares(saved, ranks) && !runs.empty()) owner = share_of(unit, ranks.data, runs.front().flat);
      const std::int64_t count = by_rows ? count_of(runs) : 0;
      if (count < most) continue;
      if (count > most) owners_.clear();
      most = count;
      owners_.emplace_back(t, owner);
    }
    for (auto& [tensor_rank, data_rank] : owners_)
      if (!by_rows) data_rank = owner;
  }
  bool includes(const StageRanks& ranks, int number) const {
    return std::any_of(owners_.begin(), owners_.end(), [&](const auto& owner) {
      return owner.first == ranks.tensor_rank(number) &&
             (owner.second < 0 || owner.second == ranks.data_rank(number));
    });
  }

 private:
  std::vector<std::pair<int, int>> owners_;  ///< a tensor rank, and its one data rank; -1: any
};

}  // namespace

std::vector<SavedTensor> saved_tensors(const std::vector<std::string_view>& states, const Model& model) {
  std::vector<SavedTensor> all;
  const auto add = [&](const std::string& folder, std::string_view state) {
    for (WholeTensor& tensor : tensors_of_pieces(model, is_moment(state))) {
      const std::string path = folder + tensor.name;
      all.push_back({path, state, std::move(tensor)});
    }
  };
  for (const std::string_view state : states) {
    if (state == "value" && state_of_weights(states) != state) continue;  // the masters say what it is
    if (is_moment(state)) add(fmt::format("/optim/{}/", state), state);
    else add("/model/", state);
  }
  for (WholeTensor& tensor : tensors_of_pieces(model)) {
    if (!model.is_shared(tensor.pieces.front().unit)) continue;
    const std::string path = fmt::format("/{}/{}", older_state, tensor.name);
    all.push_back({path, older_state, std::move(tensor)});
  }
  return all;
}

std::vector<SavedTensor> weights_for_files(const std::vector<std::string_view>& states, const Model& model) {
  const std::string_view state = state_of_weights(states);
  std::vector<SavedTensor> all;
  for (WholeTensor& tensor : tensors_for_files(model)) {
    const std::string name = tensor.name;
    all.push_back({name, state, std::move(tensor)});
  }
  return all;
}

std::vector<FilePiece> shared_out(const Model& model, const std::vector<SavedTensor>& tensors,
                                  const StageRanks& ranks, const std::vector<char>& is_here,
                                  std::int64_t longest) {
  std::vector<FilePiece> all;
  for (int i = 0; i < static_cast<int>(tensors.size()); ++i)
    if (is_here[piece_of(tensors[i]).unit] != 0)
      for (const Elements& stored : file_pieces_of(tensors[i].tensor, longest))
        all.push_back({i, stored, -1});
  std::vector<std::int64_t> written(ranks.size(), 0);
  // What only one data rank may write comes first: what any may write makes their shares equal again.
  for (const bool parts : {true, false})
    for (FilePiece& file_piece : all) {
      const SavedTensor& saved = tensors[file_piece.tensor];
      if (in_shares(saved, ranks) != parts) continue;
      const Candidates candidates(*model.units()[piece_of(saved).unit], saved, ranks, file_piece.stored);
      for (int number = 0; number < ranks.size(); ++number)
        if (candidates.includes(ranks, number) &&
            (file_piece.writer < 0 || written[number] < written[file_piece.writer]))
          file_piece.writer = number;
      written[file_piece.writer] += file_piece.bytes();
    }
  return all;
}

std::vector<ElementRun> given_by(const Model& model, const std::vector<SavedTensor>& tensors,
                                 const StageRanks& ranks, const FilePiece& file_piece, int from) {
  const SavedTensor& saved = tensors[file_piece.tensor];
  const StackedPiece& piece = piece_of(saved);
  const Unit& unit = *model.units()[piece.unit];
  const bool parts = in_shares(saved, ranks), whole = unit.params()[piece.param].split == Split::none;
  const int tensor_rank = ranks.tensor_rank(from), data_rank = ranks.data_rank(from);
  if (whole && tensor_rank != ranks.tensor_rank(file_piece.writer)) return {};
  if (!parts && data_rank != ranks.data_rank(file_piece.writer)) return {};
  std::vector<ElementRun> runs =
      runs_of_tensor(unit, shards_of(unit, ranks, tensor_rank), saved, file_piece.stored);
  if (!parts) return runs;
  const std::int64_t begin = share_edge(unit, ranks.data, data_rank),
                     end = share_edge(unit, ranks.data, data_rank + 1);
  std::vector<ElementRun> own;
  for (ElementRun run : runs) {
    const std::int64_t ahead = std::max<std::int64_t>(0, begin - run.flat);
    run.count = std::min(run.flat + run.count, end) - run.flat - ahead;
    if (run.count <= 0) continue;
    const std::int64_t at = run.row * saved.tensor.width() + run.column + ahead;
    run.row = at / saved.tensor.width();
    run.column = at % saved.tensor.width();
    run.flat += ahead;
    own.push_back(run);
  }
  return own;
}

}  // namespace mindpipe
