#include "comm/grid.h"

#include <algorithm>
#include <vector>

namespace mindpipe {

const char* name_of(Axis axis) {
  switch (axis) {
    case Axis::tensor:
      return "tensor";
    case Axis::data:
      return "data";
    case Axis::pipeline:
      return "pipeline";
    case Axis::supernet:
      return "supernet";
  }
  return "?";
}

std::string to_string(const Coord& shape) {
  return fmt::format("supernet {} x pipeline {} x data {} x tensor {}", shape.supernet, shape.pipeline,
                     shape.data, shape.tensor);
}

int num_ranks(const Coord& n) { return n.tensor * n.data * n.pipeline * n.supernet; }

int rank_at(const Coord& n, const Coord& c) {
  return c.tensor + n.tensor * (c.data + n.data * (c.pipeline + n.pipeline * c.supernet));
}

Coord coord_at(const Coord& n, int rank) {
  Coord c;
  c.tensor = rank % n.tensor;
  rank /= n.tensor;
  c.data = rank % n.data;
  rank /= n.data;
  c.pipeline = rank % n.pipeline;
  c.supernet = rank / n.pipeline;
  return c;
}

int program_ranks(const Coord& n) { return n.supernet * n.pipeline; }

int program_rank_at(const Coord& n, const Coord& c) { return c.supernet * n.pipeline + c.pipeline; }

int rank_that_runs(const Coord& n, int program_rank, int data, int tensor) {
  return rank_at(n, {tensor, data, program_rank % n.pipeline, program_rank / n.pipeline});
}

std::string name_of_program_rank(const Coord& n, int program_rank) {
  const int lane = program_rank / n.pipeline, stage = program_rank % n.pipeline;
  return n.supernet == 1 ? std::to_string(stage) : fmt::format("{}.{}", lane, stage);
}

namespace {

constexpr int most_ranks = 1 << 20;

/// Distance between two grids: the product of the factors by which their degrees differ.
double distance(const Coord& a, const Coord& b) {
  double factor = 1;
  for (Axis axis : axes)
    factor *= std::max(a[axis], b[axis]) / static_cast<double>(std::min(a[axis], b[axis]));
  return factor;
}

}  // namespace

std::vector<Coord> nearest_grids(const Coord& wanted, int ranks, const GridFits& fits, std::size_t most) {
  std::vector<Coord> all, nearest;
  for (int tensor = 1; tensor <= ranks; ++tensor)
    for (int data = 1; ranks % tensor == 0 && data <= ranks / tensor; ++data)
      for (int pipeline = 1; ranks / tensor % data == 0 && pipeline <= ranks / tensor / data; ++pipeline)
        if (ranks / tensor / data % pipeline == 0)
          all.push_back({tensor, data, pipeline, ranks / tensor / data / pipeline});
  std::stable_sort(all.begin(), all.end(),
                   [&](const Coord& a, const Coord& b) { return distance(a, wanted) < distance(b, wanted); });
  for (std::size_t i = 0; i < all.size() && nearest.size() < most; ++i)
    if (!fits || fits(all[i])) nearest.push_back(all[i]);
  return nearest;
}

std::string to_string(const std::vector<Coord>& shapes) {
  std::string text;
  for (const Coord& shape : shapes) text += (text.empty() ? "" : "; ") + to_string(shape);
  return text.empty() ? "none (this model and batch cannot use so many ranks; start fewer)" : text;
}

Coord resolve_grid(const Coord& degrees, int ranks, const GridFits& fits) {
  MP_CHECK(ranks >= 1, "a job of {} ranks", ranks);
  Coord shape = degrees;
  std::int64_t product = 1;
  int autos = 0;
  Axis open = Axis::tensor;
  for (Axis axis : axes) {
    MP_REQUIRE(shape[axis] >= 0 && shape[axis] <= most_ranks, Exit::bad_configuration,
               "grid.{} is {} (a degree is at least 1, or auto)", name_of(axis), shape[axis]);
    if (shape[axis] == 0) {
      ++autos;
      open = axis;
    } else {
      product = std::min(product * shape[axis], std::int64_t{most_ranks} * most_ranks);
    }
  }
  MP_REQUIRE(autos <= 1, Exit::bad_configuration,
             "grid: {} degrees are auto (at most one can follow from the number of ranks); write the others "
             "as numbers",
             autos);
  if (autos == 1) {
    shape[open] = product <= ranks ? static_cast<int>(ranks / product) : 1;
    MP_REQUIRE(product * shape[open] == ranks, Exit::bad_configuration,
               "grid.{} is auto, but the other degrees multiply to {} and the job has {} ranks (not a "
               "multiple); start a multiple of {} "
               "ranks; grids of {} ranks that fit: {}",
               name_of(open), product, ranks, product, ranks, to_string(nearest_grids(shape, ranks, fits)));
  }
  MP_REQUIRE(product * (autos == 1 ? shape[open] : 1) == ranks, Exit::bad_configuration,
             "grid: {} needs {} ranks, but the job has {}; start that many; grids of {} ranks that fit: {}",
             to_string(shape), product, ranks, ranks, to_string(nearest_grids(shape, ranks, fits)));
  return shape;
}

bool can_share(int logical, int degree) { return logical >= 1 && degree >= 1 && logical % degree == 0; }

void check_degree(Axis axis, int logical, int degree) {
  if (can_share(logical, degree)) return;
  std::string allowed;
  for (int n = 1; n <= logical; ++n)
    if (can_share(logical, n)) allowed += fmt::format("{}{}", allowed.empty() ? "" : ", ", n);
  fail(Exit::bad_configuration,
       "grid.{} is {}, but the run's sums have {} logical shards (reproducible.{}), which {} ranks cannot "
       "share equally; use one of: {}",
       name_of(axis), degree, logical, name_of(axis), degree, allowed);
}

}  // namespace mindpipe
