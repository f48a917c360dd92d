// ranks: 1 2, thorough ranks: 1 2 3 4 8
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "make_backend.h"
#include "runtime/parity_compare.h"
#include "runtime/traffic.h"

namespace mindpipe {
namespace {

/// All layouts (MINDPIPE_ALL_LAYOUTS=1), or one in so many of all, mixed (a larger number); 0: a covering
/// choice.
int layouts_wished() {
  const char* wish = std::getenv("MINDPIPE_ALL_LAYOUTS");
  return wish == nullptr ? 0 : std::atoi(wish);
}

/// A covering choice of layouts, for what is tried beside every layout. Networks of a space, whose layers
/// other models have, go over two ranks at most there.
std::vector<Choice> covering_of(int ranks) {
  return covering_choices(ranks, ranks > 2 ? style_count - 2 : style_count);
}

/// Which layouts to try, and how many are left out: of the covering choice every third on one rank, where
/// nothing is cut, and on many to a processor, and on three ranks every second.
std::vector<Config> cases(int ranks, std::size_t& left_out) {
  const int wished = layouts_wished(), stride = wished > 0 ? wished : 1;
  const std::vector<Choice> choices =
      wished > 0 ? all_choices(ranks) : covering_choices(ranks, style_count, shardings);
  const std::size_t step = wished > 0 || ranks == 2 || ranks == 4 ? 1 : ranks == 3 ? 2 : 3;
  std::vector<Config> configs;
  for (std::size_t i = 0; i < choices.size(); i += step)
    if (stride <= 1 || ((i * 0x9E3779B97F4A7C15u) >> 40) % static_cast<std::size_t>(stride) == 0)
      configs.push_back(config_of(choices[i], ranks));
  left_out = choices.size() - configs.size();
  return configs;
}

/// From choice `first` on every `stride`-th of the covering ones; fewer where ranks are many to a processor.
std::vector<Config> some_cases(std::size_t first, std::size_t stride) {
  const int ranks = all_ranks().size;
  const std::vector<Choice> choices = covering_of(ranks);
  std::vector<Config> configs;
  for (std::size_t i = first; i<choices.size(); i += ranks> 4 ? 3 * stride : stride)
    configs.push_back(config_of(choices[i], ranks));
  return configs;
}

/// Waits for some microseconds after each block, different ones each time, so that ranks meet in ever other
/// orders.
Outcome outcome_of_the_unsteady(const Config& config, const World& world, int steps) {
  Worker worker(config, world);
  share_processors(worker);
  std::uint32_t turn = 0;
  worker.stage().after_block = [&](int, const Boundary&) {
    const std::uint32_t word =
        RandomStream{3, purpose_of("unsteady"), static_cast<std::uint32_t>(world.rank), 0}.word(turn++);
    std::this_thread::sleep_for(std::chrono::microseconds(word % 4 == 0 ? word % 2000 : 0));
  };
  Outcome outcome;
  train_some(worker, steps, outcome);
  outcome.state = worker.state().digest();
  return outcome;
}

/// Steps that show more than their bits: memory is the plan's to the byte, and the first step sends what the
/// plan says.
Outcome outcome_with_witnesses(const Config& config, const World& world, int steps) {
  const RunPlan plan = make_run_plan(config);
  Worker worker(config, world, plan);
  share_processors(worker);
  EXPECT_EQ(static_cast<std::int64_t>(worker.memory().allocated()),
            total_of(plan.memory_of(worker.layout().coord)))
      << describe(config);
  const Coord& here = worker.layout().coord;
  EXPECT_EQ(static_cast<std::int64_t>(worker.host().allocated()), plan.host_memory[here.pipeline][here.data])
      << describe(config);
  worker.ledger().clear();
  Outcome outcome;
  train_some(worker, steps, outcome, [&](int step) {
    if (step == 1 && worker.backend().host_may_read()) compare_with_plan(worker);
  });
  outcome.state = worker.state().digest();
  return outcome;
}

TEST(Parity, EveryLayoutGivesTheBitsOfOneRank) {
  std::size_t left_out = 0;
  const std::vector<Config> tried = cases(all_ranks().size, left_out);
  compare(tried, left_out, steps_of_tests(6), outcome_with_witnesses, outcome_of_steps);
}

TEST(Parity, RanksThatMeetInOtherOrdersGetTheSameBits) {
  compare(some_cases(0, 3), 0, 4, outcome_of_the_unsteady, outcome_of_steps);
}

TEST(Parity, ADeviceThatIsAlwaysLateGetsTheSameBits) {
  compare(some_cases(2, 4), 0, 4, outcome_of_the_late, outcome_of_steps);
}

TEST(Parity, DevicesThatCarryTheirMessagesThemselvesGetTheSameBits) {
  const int ranks = all_ranks().size;
  const std::vector<Choice> choices = covering_of(ranks);
  std::vector<Config> configs;
  const std::size_t stride = layouts_wished() > 0 ? 1 : 5;
  for (std::size_t i = 1; i < choices.size(); i += stride) configs.push_back(config_of(choices[i], ranks));
  compare(configs, 0, 3, outcome_of_the_queued, outcome_of_steps);
}

/// What a run has that does as the program does: samples of a corpus, steps and evaluations of a worker.
Outcome outcome_from_a_corpus(const Config& config, const World& world, int steps) {
  Corpus corpus(config.data, Subset::train, fields_of(config), config.seed),
      validation(config.data, Subset::validation, fields_of(config), config.seed);
  Worker worker(config, world);
  share_processors(worker);
  Outcome outcome;
  for (int step = 0; step < steps; ++step) {
    const auto at_once =
        worker.step(corpus, step, static_cast<std::int64_t>(step) * config.train.batch, 0.01);
    const StepScalars scalars = at_once ? *at_once : worker.steps().remaining().value();
    outcome.losses.push_back(scalars.loss);
    outcome.norms.push_back(scalars.gradient_norm);
    outcome.evaluation = worker.evaluator().evaluate(validation, 2).losses;
  }
  outcome.state = worker.state().digest();
  return outcome;
}

TEST(Parity, StepsOnACorpusAndEvaluationsBetweenThemHaveTheSameBits) {
  std::vector<Config> configs = some_cases(1, 3);
  std::erase_if(configs, [](const Config& config) { return !has_a_corpus(config); });
  for (Config& config : configs) {
    read_a_corpus(config);
    config = resolve(config);
  }
  compare(configs, 0, 4, outcome_from_a_corpus, outcome_from_a_corpus);
}

/// Pre-norm transformers whose sources are twice as long as their targets, or half as long.
std::vector<Config> uneven_pairs() {
  std::vector<Config> configs;
  for (Config& config : some_cases(0, 1)) {
    if (config.model.kind != ModelKind::transformer || config.model.transformer.scaled) continue;
    const bool longer = configs.size() % 2 == 0;
    text_model(config).context = 2 * config.data.sequence;
    config.data.source_sequence = longer ? 2 * config.data.sequence : config.data.sequence / 2;
    if (config.data.source_sequence % config.reproducible.tensor == 0) configs.push_back(resolve(config));
  }
  return configs;
}

TEST(Parity, SourcesAndTargetsMayHaveLengthsOfTheirOwn) {
  compare(uneven_pairs(), 0, 4, outcome_of_steps, outcome_of_steps);
}

/// The Evolved Transformer of a case as a network of cells, block by block.
Config of_its_cells(const Config& whole) {
  const evolved_transformer::Settings& m = whole.model.evolved_transformer;
  std::ifstream file(MINDPIPE_SOURCE_DIR "/configs/spaces/evolved-transformer.yaml");
  std::string space(std::istreambuf_iterator<char>(file), {});
  const auto put = [&](const std::string& was, const std::string& is) {
    for (std::size_t at = 0; (at = space.find(was, at)) != std::string::npos; at += is.size())
      space.replace(at, was.size(), is);
  };
  put("attention-8", fmt::format("attention-{}", evolved_transformer::parallel_heads(m)));
  put("attention-4", fmt::format("attention-{}", m.heads));
  put("cross-4", fmt::format("cross-{}", m.heads));
  put("cells: 3", fmt::format("cells: {}", m.layers));
  put("cells: 4", fmt::format("cells: {}", m.decoder_layers));
  Config config = whole;
  config.model.evolved_transformer = {};
  config.data.sequence = 0;
  config.model.kind = ModelKind::subnet;
  subnet::Settings& network = config.model.subnet;
  network.space = space_from(space);
  network.positions = Places::closed_sinusoids;
  network.width = m.width;
  network.context = m.context;
  network.vocabulary = m.vocabulary;
  network.dropout = m.dropout;
  network.attention_dropout = m.attention_dropout;
  if (config.train.recompute.are_some()) config.train.recompute = every_other_block(config, 1);
  if (config.train.swap.are_some()) config.train.swap = every_other_block(config);
  return resolve(config);
}

TEST(Parity, NetworksOfCellsInWhichTwoStatesCrossCutsHaveTheSameBits) {
  std::vector<Config> configs;
  for (const Config& config : some_cases(0, 1))
    if (config.model.kind == ModelKind::evolved_transformer && configs.size() < 6)
      configs.push_back(of_its_cells(config));
  compare(configs, 0, 4, outcome_of_steps, outcome_of_steps);
}

/// A vit with 196 patches and one class token.
Config of_197_rows(const GridConfig& grid, int tensor) {
  Config c = tiny(Style::vit, tensor, std::max(2, grid.data), 1, std::max(4, grid.pipeline));
  vit::Settings& m = c.model.vit;
  m.channels = 1;
  m.picture_height = m.picture_width = 28;
  m.patch = 2;
  c.grid = grid;
  c.train.sequence_parallel = grid.data == 1;
  c.train.precision = grid.pipeline == 1 ? Precision::f32 : Precision::bf16;
  return resolve(c);
}

TEST(Parity, RowsThatShardsDoNotDivideArePadded) {
  const int ranks = all_ranks().size;
  std::vector<Config> configs;
  for (const GridConfig& grid : grids_of(ranks))
    for (int tensor : {2, 4})
      if (tensor % grid.tensor == 0 && (ranks < 8 || grid.tensor > 1))
        configs.push_back(of_197_rows(grid, tensor));
  compare(configs, 0, 2, outcome_of_steps, outcome_of_steps);
}

/// A small model of each style that is no gpt, cut once before each of its blocks; on more ranks
/// with one block for each, and those that are left for the last.
TEST(Parity, ACutMayBeBeforeAndBehindEveryBlock) {
  const int ranks = all_ranks().size;
  if (ranks == 1) GTEST_SKIP() << "nothing to cut";
  std::vector<Config> configs;
  for (Style style : {Style::transformer, Style::bert, Style::post_norm, Style::vit, Style::evolved,
                      Style::wide_resnet, Style::subnet, Style::texts}) {
    Config c = tiny(style, 1, 2, 1, std::max(4, ranks));
    c.grid.pipeline = ranks;
    Memory memory(Memory::Kind::counted);
    const auto backend = make_cpu_backend(memory, 1, "auto");
    Communicator alone(*backend, 1);
    const auto blocks = static_cast<int>(make_model(resolve(c), {*backend, alone})->blocks().size());
    for (int first = 1; first + ranks - 2 < blocks; ++first) {
      c.schedule.cuts.clear();
      for (int cut = first; cut < first + ranks - 1; ++cut) c.schedule.cuts.push_back(cut);
      configs.push_back(resolve(c));
    }
  }
  compare(configs, 0, 2, outcome_of_steps, outcome_of_steps);
}

/// Tables that ZeRO cuts within a tensor and messages that go in parts; more tokens than the classifier takes
/// at once and than a product's tile has; plain gradient descent.
TEST(Parity, LargeAndLongCasesAreNoException) {
  const int ranks = all_ranks().size;
  if (ranks == 3) GTEST_SKIP() << "grids of a power of two";
  std::vector<Config> configs;
  for (const GridConfig& grid : grids_of(ranks)) {
    if (ranks > 4 && std::min({grid.pipeline, grid.data, grid.tensor}) == 1) continue;
    for (Style style : {Style::gpt2, Style::transformer}) {
      Config large = tiny(style, std::max(2, grid.tensor), std::max(2, grid.data));
      large.grid = grid;
      text_model(large).vocabulary = style == Style::gpt2 ? 40001 : 1031;
      large.train.zero = style == Style::gpt2 ? 2 : 1;
      configs.push_back(resolve(large));
      Config lengthy = tiny(style, std::max(2, grid.tensor), std::max(2, grid.data), 2);
      lengthy.grid = grid;
      text_model(lengthy).context = lengthy.data.sequence = 168;
      lengthy.train.sequence_parallel = style == Style::gpt2;
      lengthy.train.precision = style == Style::gpt2 ? Precision::bf16 : Precision::f32;
      lengthy.optimizer.kind = OptimizerKind::sgd;
      configs.push_back(resolve(lengthy));
    }
  }
  compare(configs, 0, 4, outcome_of_steps, outcome_of_steps);
}

}  // namespace
}  // namespace mindpipe
