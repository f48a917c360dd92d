#include <algorithm>

#include "config/models/cells.h"
#include "core/check.h"

namespace mindpipe {
namespace {

constexpr int left_of = 0, right_of = 1, combine_of = 2;

/// A network's layers, one after the other, or those of all networks at once.
class CellWalk {
 public:
  CellWalk(const Space& space, const std::vector<int>* choice, int width)
      : space_(space), choice_(choice), width_(width) {}

  /// Calls see(layer, shape) for each block; the shape of the next one follows from it.
  template <class See>
  void walk(const See& see) const {
    std::int64_t newest = width_, older = 0;
    for (int layer = 0; layer < space_.layers(); ++layer) {
      CellShape shape;
      if (place(layer) == 0) older = 0;
      shape.newest = newest;
      shape.older = reads_second(layer) ? older : 0;
      shape.residual = side(layer).residual[place(layer)];
      shape.left = branch_width(layer, left_of, shape);
      shape.right = branch_width(layer, right_of, shape);
      const std::int64_t added = shape.residual == 2 ? shape.older : shape.residual == 1 ? newest : 0;
      shape.width = candidate(layer, combine_of).kind == CandidateKind::concat
                        ? shape.left + shape.right
                        : std::max({shape.left, shape.right, added});
      const bool is_last = place(layer) + 1 == side(layer).blocks;
      shape.keeps = !is_last && reads_second(layer + 1);
      see(layer, shape);
      older = newest;
      newest = is_last ? width_ : shape.width;
    }
  }
  bool encodes(int layer) const { return space_.encodes(layer * Space::places_of_cell_block); }
  const CellSide& side(int layer) const { return encodes(layer) ? space_.encoder_cell : space_.decoder_cell; }
  /// A block's number in its cell.
  int place(int layer) const {
    const int encoder = static_cast<int>(space_.encoder.size()) / Space::places_of_cell_block;
    return (encodes(layer) ? layer : layer - encoder) % side(layer).blocks;
  }
  /// The candidates that a network, or any, may have at a part of a block.
  std::vector<Candidate> candidates(int layer, int part) const {
    const int block = layer * Space::places_of_cell_block + part;
    if (choice_ == nullptr) return space_.candidates(block);
    return {space_.candidates(block)[(*choice_)[block]]};
  }
  Candidate candidate(int layer, int part) const { return candidates(layer, part).front(); }

 private:
  bool reads_second(int layer) const {
    if (side(layer).residual[place(layer)] == 2) return true;
    for (const int part : {left_of, right_of})
      for (const Candidate& candidate : candidates(layer, part))
        if (candidate.branch.input == 2) return true;
    return false;
  }
  std::int64_t branch_width(int layer, int part, const CellShape& shape) const {
    if (choice_ == nullptr) return width_;
    const Candidate c = candidate(layer, part);
    if (c.kind == CandidateKind::none) return 0;
    if (c.kind == CandidateKind::convolution || c.kind == CandidateKind::separable)
      return std::int64_t{width_} * c.branch.times / c.branch.part;
    return c.branch.input == 2 ? shape.older : shape.newest;
  }

  const Space& space_;
  const std::vector<int>* choice_;
  int width_;
};

/// Why a branch does not fit what it reads.
std::string misfit_of_branch(const Candidate& c, std::int64_t reads, int width, int shards) {
  if (std::int64_t{width} * c.branch.times % c.branch.part != 0)
    return fmt::format(
        "{} of width 1/{}, which does not divide model.width {} (the nearest that fit are {} "
        "and {})",
        c.word(), c.branch.part, width, width / c.branch.part * c.branch.part,
        (width / c.branch.part + 1) * c.branch.part);
  if (c.kind == CandidateKind::cross && reads != width)
    return fmt::format(
        "{} of a state of {} numbers (what it attends to has model.width {} of them; let it "
        "read a state as wide)",
        c.word(), reads, width);
  return misfit_of(c, static_cast<int>(reads), shards);
}

/// Why a block may not be one of a supernet, in which all states are as wide and each unit is one branch's.
std::string misfit_in_supernet(const Candidate& c) {
  constexpr const char* else_take = "write one network of it, model.kind: subnet";
  if (c.kind == CandidateKind::concat)
    return fmt::format("concat, which makes a wider state (in a supernet all are as wide as the model; {})",
                       else_take);
  if (c.branch.times != 1 || c.branch.part != 1)
    return fmt::format(
        "{} of width {} (in a supernet all are as wide as the model; {})", c.word(),
        c.branch.part > 1 ? fmt::format("1/{}", c.branch.part) : std::to_string(c.branch.times), else_take);
  if (c.branch.norm == CellNorm::shared)
    return fmt::format("a shared norm (in a supernet each branch has its own; {})", else_take);
  return "";
}

}  // namespace

std::vector<CellShape> shapes_of_cells(const Space& space, const std::vector<int>* choice, int width) {
  std::vector<CellShape> shapes;
  CellWalk(space, choice, width).walk([&](int, const CellShape& shape) { shapes.push_back(shape); });
  return shapes;
}

std::string misfit_of_cells(const Space& space, const std::vector<int>* choice, int width, int shards) {
  std::string misfit;
  const CellWalk network(space, choice, width);
  network.walk([&](int layer, const CellShape& shape) {
    const auto found = [&](int part, const std::string& sentence) {
      if (misfit.empty() && !sentence.empty())
        misfit = fmt::format("{} {}", space.name_of(layer * Space::places_of_cell_block + part), sentence);
    };
    for (const int part : {left_of, right_of, combine_of})
      for (const Candidate& c : network.candidates(layer, part)) {
        if (choice == nullptr) found(part, misfit_in_supernet(c));
        if (part == combine_of || c.kind == CandidateKind::none) continue;
        found(part, misfit_of_branch(c, c.branch.input == 2 ? shape.older : shape.newest, width, shards));
      }
    const bool is_last = network.place(layer) + 1 == network.side(layer).blocks;
    if (is_last && shape.width != width)
      found(combine_of, fmt::format("a state of {} numbers at the end of a cell, which gives model.width {} "
                                    "of them (let a branch of width 1 end it)",
                                    shape.width, width));
  });
  return misfit;
}

}  // namespace mindpipe
