// Faults of lists, run for real: a program of its own, alone
// thorough
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "comm/mpi.h"
#include "program/spoil_by_lot.h"
#include "program/unproved.h"
#include "runtime/parity.h"
#include "runtime/ranks.h"

// Whenever a run of a list with a fault leaves other bits, the checker had found the fault.
namespace mindpipe {
namespace {

Config config_of(unsigned seed) {
  constexpr ScheduleKind schedules[] = {ScheduleKind::one_forward_one_backward, ScheduleKind::gpipe,
                                        ScheduleKind::zero_bubble};
  constexpr Style styles[] = {Style::gpt2, Style::transformer, Style::llama};
  Config config = tiny(styles[seed % 3], 1, seed % 2 == 0 ? 4 : 3, 2, 4);
  config.schedule.kind = schedules[seed / 3 % 3];
  config.device.threads = 1;
  return resolve(config);
}

/// Puts a list in the place of a step's, whatever the checker says to it.
void put_in_place(Worker& worker, const std::vector<Action>& list) {
  Script& script = worker.steps().script();
  script.list.clear();
  script.cursors = {};
  script.order = std::remove_cvref_t<decltype(script.order)>(true);
  script.recorder = Recorder(list.size(), 1);
  Executor::extend(script, Unproved::taken({list, {}}));
}

/// The digest of losses and state that two steps of a list leave, on this rank.
std::string bits_of(const Config& config, const std::vector<Action>& list, const World& world = {}) {
  Worker worker(config, world);
  put_in_place(worker, list);
  Outcome outcome;
  train_some(worker, 2, outcome);
  outcome.state = worker.state().digest();
  const std::vector<std::uint64_t> words = outcome.words();
  Sha256 digest;
  digest.add(words.data(), words.size() * sizeof(std::uint64_t));
  return to_string(digest.end());
}

/// The digest by a process of its own, which a fault may end, or keep; then it is empty.
std::string bits_beside(const Config& config, const std::vector<Action>& list) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    constexpr unsigned patience = 30;
    alarm(patience);
    std::string bits;
    try {
      bits = bits_of(config, list);
    } catch (const Error&) {
    }
    const bool is_told = write(ends[1], bits.data(), bits.size()) == static_cast<ssize_t>(bits.size());
    _exit(is_told ? 0 : 1);
  }
  close(ends[1]);
  std::string bits(64, ' ');
  const ssize_t got = read(ends[0], bits.data(), bits.size());
  bits.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return bits;
}

TEST(RealFaults, ThatLeaveOtherBitsWereFoundByTheProof) {
  int other_bits = 0, failed = 0, equal = 0, found = 0;
  for (unsigned seed = 1; seed <= 60; ++seed) {
    std::mt19937 random(seed);
    const Config config = config_of(seed);
    const RunPlan plan = make_run_plan(config);
    const std::string sound = bits_beside(config, plan.training.program.ranks[0]);
    ASSERT_EQ(sound.size(), 64U) << seed;
    Lists lists{.outline = plan.outline, .program = plan.training.program};
    ASSERT_TRUE(lists.errors().empty()) << seed;
    const std::string fault = spoil_by_lot(lists, random);
    const bool is_found = !lists.errors().empty();
    const std::string bits = bits_beside(config, lists.list());
    EXPECT_TRUE(is_found || bits == sound) << seed << ": " << fault;
    found += is_found ? 1 : 0;
    (bits.empty() ? failed : bits == sound ? equal : other_bits) += 1;
  }
  std::cout << other_bits << " with other bits, " << failed << " failed, " << equal << " had the same bits; "
            << found << " were found\n";
  EXPECT_GE(other_bits, 10);
}

/// What a process that is started once more is to do.
constexpr const char* fault_on_ranks = "MINDPIPE_FAULT";

/// Steps on several ranks: stages, replicas, shards of tensors, ZeRO.
Config config_on_ranks(unsigned seed, int ranks) {
  constexpr ScheduleKind schedules[] = {ScheduleKind::one_forward_one_backward, ScheduleKind::gpipe,
                                        ScheduleKind::zero_bubble};
  constexpr Style styles[] = {Style::gpt2, Style::transformer, Style::llama};
  const GridConfig grids[][2] = {
      {{1, 2, 1, 1}, {1, 1, 2, 1}}, {{1, 2, 2, 1}, {1, 4, 1, 1}}, {{1, 4, 2, 1}, {1, 2, 2, 2}}};
  Config config = tiny(styles[seed % 3], 2, 2, 2);
  config.grid = grids[ranks == 2 ? 0 : ranks == 4 ? 1 : 2][seed % 2];
  config.schedule.kind = schedules[seed / 2 % 3];
  config.train.zero = config.grid.data > 1 ? static_cast<int>(seed / 3 % 3) : 0;
  config.device.threads = 1;
  return resolve(config);
}

/// A process of mpirun's: says "sound" with the bits of a step of all ranks, and then those with the fault.
void play_on_this_rank(unsigned seed) {
  int argc = 0;
  char** argv = nullptr;
  const MpiSession session(argc, argv);
  const World world = all_ranks();
  const Config config = config_on_ranks(seed, world.size);
  const RunPlan plan = make_run_plan(config);
  Lists lists{.outline = plan.outline, .program = plan.training.program};
  const auto say = [&](const char* what) {
    const int stage = coord_at(degrees_of(config.grid), world.rank).pipeline;
    const std::string here = bits_of(config, lists.program.ranks[stage], world);
    std::string all(here.size() * static_cast<std::size_t>(world.size), ' ');
    const int size = static_cast<int>(here.size());
    MPI_Gather(here.data(), size, MPI_CHAR, all.data(), size, MPI_CHAR, 0, world.comm);
    Sha256 digest;
    digest.add(all.data(), all.size());
    if (world.rank == 0) std::cout << what << ' ' << to_string(digest.end()) << std::endl;
  };
  const std::int64_t start = now_ns();
  say("sound");
  const double patience = 2 + 20 * seconds_since(start);
  std::mt19937 random(seed);
  spoil_by_lot(lists, random);
  // Rank 0 waits for all others, which mpirun ends behind it. Where all end at once, mpirun may wait forever.
  if (world.rank == 0) alarm(static_cast<unsigned>(patience));
  try {
    say("spoiled");
  } catch (const Error&) {
    _exit(1);  // the others wait for this rank, and are ended
  }
}

/// What the ranks say behind a word.
std::string said_behind(const std::string& text, const std::string& word) {
  const std::size_t at = text.find(word + " ");
  return at == std::string::npos ? "" : text.substr(at + word.size() + 1, 64);
}

TEST(RealFaults, OverRanksThatLeaveOtherBitsWereFoundByTheProof) {
  if (const char* seed = std::getenv(fault_on_ranks))
    return play_on_this_rank(static_cast<unsigned>(std::atoi(seed)));
  const std::string program = std::filesystem::read_symlink("/proc/self/exe");
  int other_bits = 0, failed = 0, equal = 0, found = 0;
  for (const int ranks : {2, 4, 8})
    for (unsigned seed = 1; seed <= 12; ++seed) {
      const RunPlan plan = make_run_plan(config_on_ranks(seed, ranks));
      Lists lists{.outline = plan.outline, .program = plan.training.program};
      ASSERT_TRUE(lists.errors().empty()) << ranks << ' ' << seed;
      std::mt19937 random(seed);
      const std::string fault = spoil_by_lot(lists, random);
      const bool is_found = !lists.errors().empty();
      const std::string command = fmt::format(
          "{}={} timeout --kill-after=5 40 {}/tests/run_mpi.sh {} {} --gtest_brief=1 "
          "--gtest_filter=RealFaults.OverRanks* 2>/dev/null",
          fault_on_ranks, seed, MINDPIPE_SOURCE_DIR, ranks, program);
      FILE* const ends = popen(command.c_str(), "r");
      ASSERT_NE(ends, nullptr);
      std::string text(1 << 16, ' ');
      text.resize(fread(text.data(), 1, text.size(), ends));
      pclose(ends);
      const std::string sound = said_behind(text, "sound"), bits = said_behind(text, "spoiled");
      ASSERT_EQ(sound.size(), 64U) << text;
      EXPECT_TRUE(is_found || bits == sound) << ranks << " ranks, " << seed << ": " << fault;
      found += is_found ? 1 : 0;
      (bits.empty() ? failed : bits == sound ? equal : other_bits) += 1;
    }
  std::cout << "over ranks: " << other_bits << " with other bits, " << failed << " failed, " << equal
            << " had the same bits; " << found << " were found\n";
  EXPECT_GE(other_bits, 5);
}

}  // namespace
}  // namespace mindpipe
