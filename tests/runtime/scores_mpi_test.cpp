// ranks: 1 2 4
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "runtime/parity_cases.h"
#include "runtime/supernet_runs.h"

// Networks of a supernet are scored one behind the other: every grid finds the bits of a plain loop, in
// order, and asks for networks when it should.
namespace mindpipe {
namespace {

constexpr int networks = 64, batches = 3;

/// The reduced space of pairs of texts, narrow, on synthetic dates.
Config scored(Precision precision = Precision::f32) {
  Config c;
  c.model.kind = ModelKind::supernet;
  c.schedule.kind = ScheduleKind::causal;
  supernet::Settings& m = c.model.supernet;
  std::ifstream file(MINDPIPE_SOURCE_DIR "/configs/spaces/nlp-small.yaml");
  m.space = space_from({std::istreambuf_iterator<char>(file), {}});
  m.width = 32;
  m.context = 32;
  m.dropout = 0.1;
  c.data.train = {{"synthetic:dates", 1}};
  c.data.source_sequence = c.data.target_sequence = 32;
  c.reproducible.tensor = c.reproducible.data = 2;
  c.train.batch = 8;
  c.train.micro_batch = 2;
  c.train.steps = 16;
  c.train.precision = precision;
  c.device.threads = 1;
  return c;
}

std::vector<Subnet> drawn() {
  std::vector<Subnet> all;
  const auto sampler = draw_subnets(scored().model.supernet.space, {.seed = 21});
  for (int id = 0; id < networks; ++id) all.push_back(sampler->next());
  return all;
}

/// What a stream hears, and in which order it asks and hears: n for a network that is asked for, h for one
/// that is heard of.
struct Heard {
  std::vector<Evaluation> scores;
  std::string order;
};

Heard scores_of(Worker& worker, std::int64_t lag = 0, std::int64_t ends_after = networks) {
  Heard heard;
  const std::vector<Subnet> all = drawn();
  std::size_t next = 0;
  Corpus corpus(worker.config().data, Subset::train, worker.plan().fields, worker.config().seed);
  worker.score(corpus, batches,
               {.next = [&]() -> std::optional<Subnet> {
                  if (static_cast<std::int64_t>(next) == ends_after) return std::nullopt;
                  heard.order += 'n';
                  return all[next++];
                },
                .hear =
                    [&](const Evaluation& found) {
                      heard.order += 'h';
                      heard.scores.push_back(found);
                    },
                .lag = lag});
  return heard;
}

TEST(Scores, AreTheSameOnEveryGrid) {
  const World world = all_ranks();
  for (const Precision precision : {Precision::f32, Precision::bf16}) {
    Config config = resolve(scored(precision));
    Worker alone(config, {});
    const Heard wanted = scores_of(alone);
    ASSERT_EQ(wanted.scores.size(), static_cast<std::size_t>(networks));
    for (const GridConfig& grid : grids_of(world.size)) {
      if (grid.tensor > 2 || grid.data > 2) continue;
      config.grid = grid;
      Worker worker(resolve(config), world);
      share_processors(worker);
      EXPECT_EQ(scores_of(worker).scores, wanted.scores) << describe(config);
    }
  }
}

}  // namespace
}  // namespace mindpipe
