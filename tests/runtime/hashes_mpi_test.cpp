// ranks: 1 2 4 8, alone
#include <gtest/gtest.h>
#include <mpi.h>

#include <cstdlib>
#include <fstream>

#include "cpu/isa.h"
#include "runtime/parity_cases.h"
#include "runtime/ranks.h"

namespace mindpipe {
namespace {

/// The styles that the file began with, and as many that came later; others follow one by one.
constexpr int first_styles = 3;

/// Covering choices of some styles of models, of which `first` is the first.
std::vector<Config> runs_of(int ranks, Style first, std::size_t count, Isa isa, int styles = first_styles) {
  const std::vector<Choice> choices =
      covering_choices(ranks, styles, first_shardings, first_schedules, first_tapes);
  std::vector<Config> runs;
  for (std::size_t i = 0; i < count; ++i) {
    Choice choice = choices[i * choices.size() / count];
    choice[style_at] += static_cast<int>(first);
    Config c = config_of(choice, ranks);
    if (!has_a_corpus(c)) continue;
    c.device.instructions = name_of(isa);
    read_a_corpus(c);
    runs.push_back(resolve(c));
  }
  return runs;
}

/// SHA-256 of losses, gradient norms, evaluations, weights and optimizer state of two steps.
Sha256::Digest hash_of(const Config& config, const World& world) {
  Worker worker(config, world);
  share_processors(worker);
  Outcome outcome;
  train_some(worker, 2, outcome);
  outcome.state = worker.state().digest();
  Corpus validation(config.data, Subset::validation, fields_of(config), config.seed);
  std::vector<std::uint64_t> words = outcome.words();
  words.resize(Outcome::digest_words + 1 + 2 * outcome.losses.size());  // what the file was made with
  words.push_back(std::bit_cast<std::uint64_t>(worker.evaluator().evaluate(validation, 2).loss()));
  Sha256 sha;
  sha.add(reinterpret_cast<const std::byte*>(words.data()), words.size() * sizeof(std::uint64_t));
  return sha.end();
}

/// The lines of tests/golden/parity_hashes.txt for this number of ranks.
std::vector<std::string> golden_lines(const std::string& beginning) {
  std::ifstream file(MINDPIPE_SOURCE_DIR "/tests/golden/parity_hashes.txt");
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);)
    if (line.rfind(beginning, 0) == 0) lines.push_back(line);
  return lines;
}

/// Expects the hashes of the file; MINDPIPE_SAY_HASHES=1 prints the lines as the file has them.
void expect_golden_hashes(const World& world, Isa isa) {
  const std::string beginning = fmt::format("{} ranks, ", world.size);
  const std::vector<std::string> wanted = golden_lines(beginning);
  std::vector<std::string> got;
  std::vector<Config> runs = runs_of(world.size, Style::gpt2, 10, isa);
  for (const Config& config : runs_of(world.size, Style::bert, 6, isa)) runs.push_back(config);
  for (const Style style : {Style::evolved, Style::wide_resnet, Style::subnet})
    for (const Config& config : runs_of(world.size, style, 3, isa, 1)) runs.push_back(config);
  for (const Config& config : runs) {
    const Sha256::Digest hash = hash_of(config, world.size == 1 ? World{} : world);
    got.push_back(fmt::format("{}{}: {}", beginning, describe(config), to_string(hash)));
    if (world.rank == 0 && std::getenv("MINDPIPE_SAY_HASHES") != nullptr)
      std::printf("%s\n", got.back().c_str());
  }
  EXPECT_EQ(got, wanted);
}

// The file was made on avx2. Ranks of one job take different sets of its class, where this processor has
// both.
TEST(Hashes, RunsHaveTheBitsThatTheyHadWhenTheFileWasMade) {
  const World world = all_ranks();
  const bool has_both = processor_has(Isa::avx512);
  expect_golden_hashes(world, has_both && world.rank % 2 == 1 ? Isa::avx512 : Isa::avx2);
  if (has_both && world.size == 1) expect_golden_hashes(world, Isa::avx512);
}

}  // namespace
}  // namespace mindpipe
