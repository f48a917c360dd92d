// Faults of lists, run for real: a program of its own, alone
// thorough
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "program/spoil_by_lot.h"
#include "program/unproved.h"
#include "runtime/parity.h"

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

/// The digest of losses and state that two steps of a list leave.
std::string bits_of(const Config& config, const std::vector<Action>& list) {
  Worker worker(config, {});
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

}  // namespace
}  // namespace mindpipe
