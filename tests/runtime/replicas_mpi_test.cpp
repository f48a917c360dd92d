// ranks: 2 4
#include "runtime/replicas.h"

#include <gmock/gmock.h>

#include "comm/text_of_rank_0.h"
#include "runtime/predicted.h"

// One bit that changes in one rank's copy of what several ranks hold.
namespace mindpipe {
namespace {

using testing::HasSubstr;

World world() {
  World world{MPI_COMM_WORLD};
  MPI_CHECK(MPI_Comm_rank(world.comm, &world.rank));
  MPI_CHECK(MPI_Comm_size(world.comm, &world.size));
  return world;
}

/// A worker that has taken two steps, and its comparison.
struct Trained {
  explicit Trained(const Config& config) : worker(resolve(config), world()), replicas(worker) {
    Corpus corpus(config.data, Subset::train, fields_of(worker.config()), config.seed);
    for (int step = 0; step < 2; ++step)
      worker.step(corpus, step, std::int64_t{step} * config.train.batch, 1e-3);
    worker.steps().drop();
  }
  /// Flips a bit of an element of a slot on one rank; whether that rank keeps the element.
  bool flip(int rank, const std::string& tensor, std::string_view slot, std::int64_t element, int bit) {
    bool kept = false;
    if (world().rank == rank)
      for (const int index : worker.stage().local_units()) {
        const Unit& unit = worker.stage().unit(index);
        for (int p = 0; p < static_cast<int>(unit.params().size()); ++p) {
          if (tensor_name(unit, p) != tensor) continue;
          const std::int64_t at = unit.flat_offset(p, 0) + element -
                                  (slot == "value" ? 0 : worker.residency().shares().of(index).begin());
          const Tensor whole = worker.residency().newest(index, slot);
          if (at < 0 || at >= whole.count()) continue;
          auto* bytes = static_cast<std::byte*>(whole.range(at, 1).data);
          bytes[bit / 8] ^= std::byte{1} << (bit % 8);
          kept = true;
        }
      }
    return any_rank(world(), kept);
  }
  Worker worker;
  Replicas replicas;
};

struct Place {
  const char *tensor, *slot;
  std::int64_t element;
  int bit;
};

/// Each change is found, and its rank and tensor named, alone where most ranks hold another copy; turned back
/// it is not found any more.
void expect_found(const Config& config, const std::vector<Place>& places, std::size_t copies) {
  Trained trained(config);
  ASSERT_TRUE(trained.replicas.are_held());
  EXPECT_EQ(trained.replicas.difference(), "");
  const int ranks = world().size;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const auto& [tensor, slot, element, bit] = places[i];
    const int rank = static_cast<int>(i) % ranks;
    ASSERT_TRUE(trained.flip(rank, tensor, slot, element, bit)) << tensor << " " << slot;
    const std::string found = trained.replicas.difference(), what = fmt::format("{} ({})", tensor, slot);
    EXPECT_THAT(found, HasSubstr(what));
    if (copies > 2) {
      EXPECT_THAT(found, HasSubstr(fmt::format("rank {} (", rank)));
      EXPECT_THAT(found, HasSubstr(fmt::format("than the other {}", copies - 1)));
    } else {
      EXPECT_THAT(found, HasSubstr("hold different copies of " + what + ", and none is that of most"));
      EXPECT_THAT(found, testing::ContainsRegex(fmt::format("(ranks |, ){} \\(", rank)));
    }
    trained.flip(rank, tensor, slot, element, bit);
    EXPECT_EQ(trained.replicas.difference(), "") << tensor;
  }
}

const char* const gain = "layers.0.attention.norm.weight";
const char* const table = "embedding.embedding.weight";
const char* const matrix = "layers.1.mlp.mlp.up.weight";

Config over_data(int zero) {
  Config config = small_run();
  config.grid.data = config.reproducible.data = world().size;
  config.train.batch = 8;
  config.train.micro_batch = 1;
  config.train.zero = zero;
  return config;
}

TEST(Replicas, ABitOfAValueIsFoundOverDataHoweverTheRestIsSharded) {
  for (const int zero : {0, 1, 2})
    expect_found(over_data(zero),
                 {{gain, "value", 0, 3},
                  {matrix, "value", 7, 0},
                  {matrix, "value", 100, 31},
                  {table, "value", 5, 22},
                  {gain, "value", 15, 12},
                  {table, "value", 63, 1}},
                 static_cast<std::size_t>(world().size));
}

TEST(Replicas, ABitOfAMomentIsFoundWhereNothingIsSharded) {
  expect_found(over_data(0),
               {{gain, "m", 0, 3}, {matrix, "v", 7, 0}, {matrix, "m", 100, 31}, {table, "v", 5, 22}},
               static_cast<std::size_t>(world().size));
  Config config = over_data(0);
  config.train.precision = Precision::bf16;
  expect_found(config, {{matrix, "master", 3, 1}, {gain, "value", 3, 2}},
               static_cast<std::size_t>(world().size));
}

TEST(Replicas, WhatNoTensorRankHasAPartOfIsComparedOverThem) {
  Config config = small_run();
  config.grid.tensor = config.reproducible.tensor = world().size;
  config.train.zero = 0;
  expect_found(config, {{gain, "value", 0, 3}, {gain, "m", 1, 0}, {gain, "v", 2, 30}, {gain, "value", 3, 12}},
               static_cast<std::size_t>(world().size));
}

TEST(Replicas, BothEndsOfATiedTableAreCompared) {
  Config config = small_run();
  config.grid.pipeline = 2;
  config.grid.data = config.reproducible.data = world().size / 2;
  Trained trained(config);
  EXPECT_EQ(trained.replicas.difference(), "");
  const int last = world().size - 1;
  ASSERT_TRUE(trained.flip(last, table, "m", 9, 4));
  const std::string found = trained.replicas.difference();
  EXPECT_THAT(found, HasSubstr(fmt::format("{} (m)", table)));
  EXPECT_THAT(found, HasSubstr(fmt::format("{} (", last)));
}

TEST(Replicas, MostOfAllCopiesAreRightWhicheverAxisTheyLieAlong) {
  if (world().size < 4) GTEST_SKIP() << "four copies take four ranks";
  Config config = over_data(1);
  config.grid.data = config.reproducible.data = 2;
  config.grid.tensor = config.reproducible.tensor = 2;
  expect_found(config, {{gain, "value", 0, 3}, {gain, "value", 1, 0}, {gain, "value", 2, 30}}, 4);
}

TEST(Replicas, OneOfFourIsNamedAndTwoOfTwoAre) {
  using Copies = std::vector<Replicas::Copy>;
  const auto named = [](const Copies& copies) { return Replicas::odd_ones("t (value)", copies); };
  EXPECT_EQ(named({{0, "a", 7}, {1, "a", 7}}), "");
  EXPECT_EQ(named({{0, "a", 7}, {1, "b", 8}}),
            "ranks 0 (a), 1 (b) hold different copies of t (value), and none is that of most");
  EXPECT_EQ(named({{0, "a", 7}, {1, "a", 7}, {2, "b", 9}, {3, "b", 7}}),
            "rank 2 (b) holds another copy of t (value) than the other 3");
  EXPECT_EQ(named({{0, "a", 7}, {1, "a", 6}, {2, "b", 9}, {3, "b", 7}}),
            "ranks 1 (a), 2 (b) hold another copy of t (value) than the other 2");
}

}  // namespace
}  // namespace mindpipe
