// thorough ranks: 8, alone
#include <sys/syscall.h>
#include <unistd.h>

#include <map>
#include <mutex>
#include <set>

#include "runtime/checkpoint_pairs.h"

// A run that is saved on one grid and goes on on another has the bits of one that was never interrupted, and
// the file of a state has the same bytes whoever wrote it.
namespace mindpipe {
namespace {

/// Writes to files of checkpoints by this process, of all its threads.
struct SeenWrites {
  std::mutex mutex;
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges;  ///< first, end

  void see(int file, std::int64_t first, std::int64_t count) {
    char name[4096] = {};
    const std::string link = "/proc/self/fd/" + std::to_string(file);
    if (::readlink(link.c_str(), name, sizeof name - 1) <= 0) return;
    if (!std::string(name).ends_with(Manifest::file_name)) return;
    const std::lock_guard lock(mutex);
    ranges.emplace_back(first, first + count);
  }
};
SeenWrites& seen_writes() {
  static SeenWrites seen;
  return seen;
}

}  // namespace
}  // namespace mindpipe

// Stand before those of the C library, for all of this program.
extern "C" ssize_t pwrite64(int file, const void* bytes, size_t count, off64_t offset) {
  const ssize_t written = ::syscall(SYS_pwrite64, file, bytes, count, offset);
  if (written > 0) mindpipe::seen_writes().see(file, offset, written);
  return written;
}
extern "C" ssize_t pwrite(int file, const void* bytes, size_t count, off_t offset) {
  return pwrite64(file, bytes, count, offset);
}

namespace mindpipe {
namespace {

constexpr int steps_before = 3, steps_meanwhile = 2, steps_after = 10;

/// What one rank gets that is never interrupted, for each arithmetic among the pairs; the ranks share the
/// work.
class Uninterrupted {
 public:
  explicit Uninterrupted(const std::vector<LayoutPair>& pairs) {
    const World world = all_ranks();
    for (const LayoutPair& pair : pairs) {
      const Config one = plainest(pair);
      words_[to_yaml(one)].resize(Outcome::words_of(steps_before + steps_after));
      configs_.try_emplace(to_yaml(one), one);
    }
    int turn = 0;
    for (auto& [key, words] : words_)
      if (turn++ % world.size == world.rank) {
        Outcome outcome;
        const auto worker = worker_of(configs_.at(key), {});
        train_steps(*worker, 0, steps_before + steps_after, outcome);
        outcome.state = worker->state().digest();
        words = outcome.words();
      }
    turn = 0;
    for (auto& [key, words] : words_)
      MPI_Bcast(words.data(), static_cast<int>(words.size()), MPI_UINT64_T, turn++ % world.size, world.comm);
  }
  /// The uninterrupted run's losses and norms from a step on, and the state at its end.
  Outcome from_step(const LayoutPair& pair, int first) const {
    Outcome outcome = Outcome::from(words_.at(to_yaml(plainest(pair))));
    outcome.losses.erase(outcome.losses.begin(), outcome.losses.begin() + first);
    outcome.norms.erase(outcome.norms.begin(), outcome.norms.begin() + first);
    return outcome;
  }

 private:
  static Config plainest(const LayoutPair& pair) {
    Config c = config_of(pair, pair.before);
    c.checkpoint = {};
    return alone(c);
  }
  std::map<std::string, std::vector<std::uint64_t>> words_;
  std::map<std::string, Config> configs_;
};

/// How the first run of a pair differs from the uninterrupted one; it trains on while it is saved.
std::string saved_and_trained(const LayoutPair& pair, const Uninterrupted& uninterrupted,
                              const std::string& run_directory) {
  const FirstRanks ranks(ranks_of(pair.before));
  if (!ranks.takes_part()) return {};
  const auto worker = worker_of(config_of(pair, pair.before), ranks.world());
  const bool copies = pair.background == Background::automatic && pair.writer == CheckpointWriterKind::direct;
  EXPECT_TRUE(copies || worker->copy_memory() == nullptr);
  Outcome got;
  train_steps(*worker, 0, steps_before, got);
  save(*worker, run_directory, steps_before,
       [&] { train_steps(*worker, steps_before, steps_meanwhile, got); });
  Outcome wanted = uninterrupted.from_step(pair, 0);
  wanted.losses.resize(got.losses.size());
  wanted.norms.resize(got.norms.size());
  wanted.state = got.state;  // it goes on to the end only where it is loaded
  return difference(got, wanted);
}

/// How the second run of a pair differs from the uninterrupted one.
std::string loaded_and_trained(const LayoutPair& pair, const Uninterrupted& uninterrupted,
                               const std::string& run_directory) {
  const FirstRanks ranks(ranks_of(pair.after));
  if (!ranks.takes_part()) return {};
  const auto worker = worker_of(config_of(pair, pair.after), ranks.world());
  load(*worker, checkpoint_of(run_directory, steps_before));
  EXPECT_EQ(worker->state().applied_steps(), steps_before);
  Outcome got;
  train_steps(*worker, steps_before, steps_after, got);
  got.state = worker->state().digest();
  return difference(got, uninterrupted.from_step(pair, steps_before));
}

/// Whether it holds on every rank.
bool on_all_ranks(bool here) {
  int mine = here ? 1 : 0, all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  return all == 1;
}

void try_pairs(std::vector<LayoutPair> pairs) {
  const World world = all_ranks();
  const std::size_t all = pairs.size();
  std::erase_if(pairs, [&](const LayoutPair& p) {
    return !is_possible(p) || std::max(ranks_of(p.before), ranks_of(p.after)) > world.size;
  });
  const Uninterrupted uninterrupted(pairs);
  const SharedFolder folder;
  std::size_t failed = 0;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const std::string directory = folder / std::to_string(i);
    const std::string first = saved_and_trained(pairs[i], uninterrupted, directory);
    EXPECT_EQ(first, "") << "while it is saved, " << describe(pairs[i]);
    MPI_Barrier(world.comm);
    const std::string second = loaded_and_trained(pairs[i], uninterrupted, directory);
    EXPECT_EQ(second, "") << "loaded, " << describe(pairs[i]);
    failed += on_all_ranks(first.empty() && second.empty()) ? 0 : 1;
    if (world.rank == 0) std::filesystem::remove_all(directory);
    if (world.rank == 0 && i % 20 == 19) {
      std::printf("%d ranks: %zu of %zu pairs of layouts, %zu failed\n", world.size, i + 1, pairs.size(),
                  failed);
      std::fflush(stdout);
    }
  }
  if (world.rank == 0)
    std::printf("%d ranks: %zu layouts passed, %zu failed, %zu skipped (each saved, another loads it)\n",
                world.size, pairs.size() - failed, failed, all - pairs.size());
}

/// How many random pairs to try (MINDPIPE_PAIRS); 0: the chosen ones.
int pairs_wished() {
  const char* wish = std::getenv("MINDPIPE_PAIRS");
  return wish == nullptr ? 0 : std::atoi(wish);
}

TEST(Checkpoint, LoadedOnAnotherGridGoesOnWithTheBitsOfARunWithoutAnInterruption) {
  try_pairs(pairs_wished() > 0 ? random_pairs(pairs_wished(), all_ranks().size) : chosen_pairs());
}

/// How often each byte of a file was written by rank 0, and by the others.
struct WriteCounts {
  std::vector<std::uint8_t> by_rank_0, by_others;
};
WriteCounts counts_of(std::int64_t file_bytes) {
  std::vector<std::uint8_t> mine(static_cast<std::size_t>(file_bytes), 0);
  for (const auto& [first, end] : seen_writes().ranges)
    for (std::int64_t i = first; i < std::min(end, file_bytes); ++i) ++mine[static_cast<std::size_t>(i)];
  WriteCounts counts{mine, std::vector<std::uint8_t>(mine.size(), 0)};
  if (all_ranks().rank == 0) std::fill(mine.begin(), mine.end(), 0);
  const int size = static_cast<int>(mine.size());
  MPI_Bcast(counts.by_rank_0.data(), size, MPI_UINT8_T, 0, MPI_COMM_WORLD);
  MPI_Allreduce(mine.data(), counts.by_others.data(), size, MPI_UINT8_T, MPI_SUM, MPI_COMM_WORLD);
  return counts;
}

/// Every byte of a tensor is written once, and every other byte by rank 0 if by any.
std::string complaint_about_writes(const Manifest& manifest) {
  const WriteCounts counts = counts_of(manifest.file_bytes);
  std::vector<char> of_tensor(counts.by_rank_0.size(), 0);
  for (const CheckpointTensor& tensor : manifest.tensors)
    std::fill_n(of_tensor.begin() + tensor.offset, tensor.bytes, 1);
  for (std::size_t i = 0; i < of_tensor.size(); ++i) {
    const int all = counts.by_rank_0[i] + counts.by_others[i];
    if (of_tensor[i] != 0 && all != 1) return fmt::format("byte {} of a tensor was written {} times", i, all);
    if (of_tensor[i] == 0 && counts.by_others[i] != 0)
      return fmt::format("byte {}, of no tensor, was written by another rank than 0", i);
  }
  return {};
}

/// Trains and saves a run on one layout; the bytes of its file and its manifest.
std::pair<std::string, Manifest> saved_file(const LayoutPair& run, bool large, const std::string& directory) {
  const FirstRanks ranks(ranks_of(run.before));
  if (ranks.takes_part()) {
    Config config = config_of(run, run.before);
    if (large) text_model(config).vocabulary = 50021;
    const auto worker = worker_of(config, ranks.world());
    Outcome outcome;
    train_steps(*worker, 0, 2, outcome);
    seen_writes().ranges.clear();
    save(*worker, directory, 2);
  } else {
    seen_writes().ranges.clear();
  }
  MPI_Barrier(MPI_COMM_WORLD);
  const std::string saved = checkpoint_of(directory, 2);
  return {bytes_of_file(saved + "/" + Manifest::file_name), read_manifest(saved)};
}

constexpr auto plain = ScheduleKind::one_forward_one_backward;

/// Runs of one arithmetic on some layouts, by both writers, beside the training and not.
void expect_one_file(LayoutPair run, bool large, const std::vector<RunLayout>& layouts) {
  const SharedFolder folder;
  std::string first_bytes;
  Manifest first;
  int number = 0;
  for (const RunLayout& layout : layouts) {
    run.before = run.after = layout;
    for (const auto& [writer, background] : {std::pair{CheckpointWriterKind::direct, Background::automatic},
                                             std::pair{CheckpointWriterKind::direct, Background::no},
                                             std::pair{CheckpointWriterKind::mpiio, Background::no}}) {
      run.writer = writer;
      run.background = background;
      const auto [bytes, manifest] = saved_file(run, large, folder / std::to_string(number++));
      ASSERT_FALSE(bytes.empty());
      if (first_bytes.empty()) {
        first_bytes = bytes;
        first = manifest;
      }
      EXPECT_TRUE(bytes == first_bytes) << describe(run);
      EXPECT_EQ(manifest.crcs, first.crcs) << describe(run);
      if (writer == CheckpointWriterKind::direct) {
        EXPECT_EQ(complaint_about_writes(manifest), "") << describe(run);
      }
    }
  }
  EXPECT_EQ(large, first.crcs.size() > 1);
}

TEST(Checkpoint, OfOneStateHasTheSameBytesWhoeverWroteItAndEachIsWrittenOnce) {
  const std::vector<RunLayout> layouts{{{1, 1, 1, 1}},
                                       {{1, 2, 2, 2}, plain, 2},
                                       {{1, 1, 4, 2}, plain, 1},
                                       {{1, 1, 2, 4}, plain, 0, true},
                                       {{1, 4, 1, 1}, ScheduleKind::interleaved}};
  expect_one_file({Style::gpt2, Precision::bf16, OptimizerKind::adamw, 4, 4, {}, {}}, false, layouts);
  expect_one_file({Style::transformer, Precision::f32, OptimizerKind::sgd, 4, 4, {}, {}}, false, layouts);
}

TEST(Checkpoint, OfTensorsThatSeveralRanksWriteHasTheSameBytes) {
  expect_one_file({Style::gpt2, Precision::f32, OptimizerKind::adamw, 4, 4, {}, {}}, true,
                  {{{1, 1, 2, 1}, plain, 1}, {{1, 1, 2, 2}, plain, 2}});
}

}  // namespace
}  // namespace mindpipe
