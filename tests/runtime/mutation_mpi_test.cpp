// thorough ranks: 2 4
#include <gtest/gtest.h>
#include <mpi.h>

#include "comm/fault_points.h"
#include "runtime/parity_cases.h"
#include "runtime/ranks.h"

namespace mindpipe {
namespace {

/// What trains: a model on a grid of two or four ranks.
struct Case {
  GridConfig grid;
  enum Options {
    none = 0,
    sequence = 1,
    zero = 2,
    zero2 = 4,
    halves = 8,
    host = 16,
    swaps = 32
  } options = none;
  Style style = Style::gpt2;

  int ranks() const { return grid.pipeline * grid.data * grid.tensor; }
};
constexpr GridConfig on_tensor{1, 1, 1, 2}, on_data{1, 1, 2, 1}, on_pipeline{1, 2, 1, 1};

/// So many words that the second of two shards has but a few: whoever asks it alone finds many a target among
/// the five likeliest, which shows that the ranks of targets are not summed. A picture, which has one target,
/// has fewer classes still.
void take_few_words(Config& config) {
  if (config.model.kind == ModelKind::vit) {
    config.model.vit.classes = 64 + 4;
    return;
  }
  if (config.model.kind == ModelKind::wide_resnet) {
    config.model.wide_resnet.classes = 64 + 4;
    return;
  }
  text_model(config).vocabulary = 64 + 16;
  config.data.special.mask = text_model(config).vocabulary - 1;
}

Config config_of(const Case& c) {
  Config config = tiny(c.style, 2, 2, 1, 4);
  take_few_words(config);
  config.grid = c.grid;
  config.train.sequence_parallel = c.options == Case::sequence;
  config.train.zero = c.options == Case::zero ? 1 : c.options == Case::zero2 ? 2 : 0;
  if (c.options == Case::halves) {
    config.schedule.kind = ScheduleKind::half_v;
    config.schedule.chunks = 2;
    config.train.batch *= 2;  // with fewer micro-batches whole backwards are as fast
  }
  if (c.options == Case::host) config.memory.optimizer = StatePlace::host;
  if (c.options == Case::swaps) config.train.swap = WhichBlocks::block;
  return resolve(config);
}

std::string name_of(const ::testing::TestParamInfo<Case>& info) {
  const auto& [grid, options, style] = info.param;
  const char* more = options == Case::sequence ? "sequence_"
                     : options == Case::zero   ? "zero_"
                     : options == Case::zero2  ? "zero2_"
                     : options == Case::halves ? "halves_"
                     : options == Case::host   ? "host_"
                     : options == Case::swaps  ? "swaps_"
                                               : "";
  return fmt::format("{}x{}x{}_{}{}", grid.pipeline, grid.data, grid.tensor, more, mindpipe::name_of(style));
}

/// Everything that can be left out.
std::vector<std::string> all_mutations() {
  std::vector<std::string> names{"gradients.fold",     "gradients.combine_sequence",
                                 "gradients.add_uses", "gradients.clear",
                                 "copy.fetch",         "copy.evict",
                                 "copy.stash",         "copy.unstash"};
  for (const char* axis : {"tensor", "data", "pipeline"})
    for (const char* operation :
         {"sum", "sum_scatter", "gather", "maximum", "sum_over_shards", "sum_over_ranks", "sum_integers"})
      names.push_back(fmt::format("{}.{}", axis, operation));
  for (Payload payload : {Payload::activation, Payload::encoder_output, Payload::gradient,
                          Payload::encoder_output_gradient, Payload::unit_gradient})
    for (const char* way : {"0>1", "1>0"})
      names.push_back(fmt::format("message.{}.{}", static_cast<int>(payload), way));
  return names;
}

class Mutations : public ::testing::TestWithParam<Case> {
 protected:
  /// A step; then one with the mutation, an evaluation and the digest of the state. Where they differ from
  /// one rank's, as text.
  std::string noticed(const std::string& name, int number) {
    Worker worker(config, world);
    share_processors(worker);
    Outcome got;
    std::string text;
    try {
      train_some(worker, 2, got, [&](int step) { set_mutation(step == 1 ? name : "", number); });
      got.state = worker.state().digest();
      text = difference(got, wanted);
    } catch (const Error& error) {
      text = error.what();  // replicas that differ are an error of their own, on both of them
    }
    calls = mutable_calls();
    set_mutation("");
    int here = text.empty() ? 0 : 1, anywhere = 0;
    MPI_Allreduce(&here, &anywhere, 1, MPI_INT, MPI_MAX, world.comm);
    return anywhere == 0 ? "" : text.empty() ? "noticed by the other rank" : text;
  }
  /// How often a step, an evaluation and the digest ask for this, on the rank that does so most often.
  int calls_of(const std::string& name) const {
    const auto found = calls.find(name);
    int here = found == calls.end() ? 0 : found->second, most = 0;
    MPI_Allreduce(&here, &most, 1, MPI_INT, MPI_MAX, world.comm);
    return most;
  }

  World world = all_ranks();
  Config config = config_of(GetParam());
  Outcome wanted = GetParam().ranks() == world.size ? outcome_of(alone(config), {}, 2) : Outcome{};
  std::map<std::string, int> calls;
};

TEST_P(Mutations, OfEachCallAloneAreNoticedAndNothingElseIs) {
  if (GetParam().ranks() != world.size) GTEST_SKIP() << "for " << GetParam().ranks() << " ranks";
  ASSERT_EQ(noticed("nothing.at_all", -1), "");
  std::map<std::string, int> counts;
  for (const std::string& name : all_mutations())
    if (const int count = calls_of(name); count > 0) counts[name] = count;
  std::string said;
  for (const auto& [name, count] : counts) {
    said += fmt::format(" {} x {}", count, name);
    for (int number = 0; number < count; ++number)
      EXPECT_NE(noticed(name, number), "")
          << name << " number " << number << " of " << count << " can be left out without a test failing";
  }
  if (world.rank == 0) std::printf("left out, one at a time:%s\n", said.c_str());
}

INSTANTIATE_TEST_SUITE_P(
    Of, Mutations,
    ::testing::Values(
        Case{on_tensor}, Case{on_tensor, Case::sequence}, Case{on_data}, Case{on_data, Case::zero},
        Case{on_data, Case::zero2}, Case{on_pipeline}, Case{on_pipeline, Case::host},
        Case{on_pipeline, Case::swaps}, Case{on_pipeline, Case::halves, Style::transformer},
        Case{on_tensor, Case::none, Style::transformer}, Case{on_tensor, Case::sequence, Style::llama},
        Case{on_tensor, Case::sequence, Style::transformer}, Case{on_data, Case::none, Style::llama},
        Case{on_data, Case::zero2, Style::transformer}, Case{on_pipeline, Case::none, Style::llama},
        Case{on_pipeline, Case::none, Style::transformer}, Case{on_tensor, Case::none, Style::bert},
        Case{on_tensor, Case::sequence, Style::bert}, Case{on_tensor, Case::sequence, Style::vit},
        Case{on_data, Case::zero2, Style::vit}, Case{on_pipeline, Case::none, Style::post_norm},
        Case{{1, 2, 2, 1}, Case::zero2}, Case{on_tensor, Case::sequence, Style::wide_resnet},
        Case{on_data, Case::zero2, Style::wide_resnet}, Case{{1, 2, 1, 2}, Case::sequence},
        Case{{1, 1, 2, 2}, Case::zero, Style::llama}),
    name_of);

/// Rooms of tapes that are forgotten a pass too early, and gradients that wait in the place of what a product
/// before them still reads.
TEST_P(Mutations, OfRoomsThatAreStillReadAreNoticed) {
  if (GetParam().ranks() != world.size) GTEST_SKIP() << "for " << GetParam().ranks() << " ranks";
  EXPECT_NE(noticed("rooms.last_pass", -1), "");
  if (GetParam().options != Case::halves) return;
  EXPECT_NE(noticed("tape.product", -1), "");
  EXPECT_GT(calls_of("tape.product"), 0);
}

/// SHA-256 of all weights as they are written to a file.
Sha256::Digest digest_of_file(Worker& worker) {
  Sha256 sha;
  worker.state().gather_weights([&](const std::byte* words, std::size_t bytes) { sha.add(words, bytes); });
  return sha.end();
}

TEST(Mutation, OfWhatIsWrittenToAFileIsNoticed) {
  const World world = all_ranks();
  if (world.size != 2) GTEST_SKIP() << "for two ranks";
  for (const auto& [c, axis] : {std::pair{Case{on_tensor}, "tensor"},
                                {Case{on_pipeline}, "pipeline"},
                                {Case{on_data, Case::zero}, "data"}}) {
    Config config = config_of(c);
    config.train.precision = Precision::bf16;  // masters, which lie in parts
    Worker one(alone(config), {}), worker(config, world);
    share_processors(worker);
    const Sha256::Digest wanted = digest_of_file(one), right = digest_of_file(worker);
    set_mutation(fmt::format("{}.sum_integers", axis));
    const Sha256::Digest mutated = digest_of_file(worker);
    set_mutation("");
    if (world.rank != 0) continue;
    EXPECT_EQ(right, wanted) << axis;
    EXPECT_NE(mutated, wanted) << axis;
  }
}

}  // namespace
}  // namespace mindpipe
