#include "comm/watchdog.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <memory>

#include "comm/mpi.h"
#include "comm/roll_call.h"
#include "core/clock.h"
#include "core/log_mark.h"
#include "core/terminate.h"

namespace mindpipe {
namespace {

// How often transports are asked for trouble, in seconds.
constexpr double ask_every = 1;
// A watchdog that wakes slept_through seconds behind its limit was stopped with its process (SIGSTOP,
// SIGCONT). Ranks that waited for it have named it by then, because their grace is longer.
constexpr double slept_through = 0.4, shortest_grace = 0.5;

void sleep_for(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

/// A rank's last words, and whom else to ask before they are said.
struct Report {
  Answer mine;
  std::string what;  ///< "step 3 has taken ..."
  RollCall roll;
  std::vector<std::string> where;  ///< where each rank is
  double grace;                    ///< how far apart the ranks may give up

  /// Writes the sentence straight to the descriptor: another thread may hold the locks of the streams.
  void say(const std::string& why) const {
    const std::string sentence =
        fmt::format("{}: {}; the job ends with exit code {}", what, why, static_cast<int>(Exit::watchdog));
    const std::string line = "mindpipe-train: " + marked(sentence) + "\n";
    [[maybe_unused]] const auto written = write(STDERR_FILENO, line.data(), line.size());
    say_last_words(static_cast<int>(Exit::watchdog), sentence);
  }

  /// The lowest rank that answers speaks and ends the job; the others speak only if nobody has.
  void call_the_roll() const {
    if (where.size() < 2 || !roll.answer(mine)) return say(mine.text);
    std::vector<Answer> answers;
    for (const std::int64_t start = now_ns(); seconds_since(start) < grace && answers.size() < where.size();
         answers = roll.answers())
      sleep_for(grace / 10);
    if (answers.empty()) return say(mine.text);
    if (answers.front().rank != mine.rank) sleep_for(2 * grace + 4);
    say(fmt::format("{} (what each rank waited for: {})", verdict_on(answers, where), roll.files()));
  }
};

}  // namespace

Watchdog::Watchdog(int rank) : rank_(rank), thread_([this] { watch(); }) {}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void Watchdog::arm(double seconds, std::string phase, std::string setting) {
  {
    const std::lock_guard lock(mutex_);
    armed_ = true;
    limit_ = seconds;
    begun_ = now_ns();
    phase_ = std::move(phase);
    setting_ = std::move(setting);
  }
  changed_.notify_one();
}

void Watchdog::disarm() {
  const std::lock_guard lock(mutex_);
  armed_ = false;
}

void Watchdog::begin_wait(std::string text, std::int64_t since_ns) {
  const std::lock_guard lock(mutex_);
  wait_ = std::move(text);
  wait_since_ = since_ns;
}

void Watchdog::call_roll_in(std::string directory, std::vector<std::string> where) {
  const std::lock_guard lock(mutex_);
  directory_ = std::move(directory);
  where_ = std::move(where);
}

void Watchdog::forget_earlier_rolls() const { RollCall(directory_, start_).forget_earlier(); }

void Watchdog::ask(std::function<std::string()> trouble) {
  {
    const std::lock_guard lock(mutex_);
    trouble_ = std::move(trouble);
  }
  changed_.notify_one();
}

void Watchdog::watch() {
  std::unique_lock lock(mutex_);
  while (!ended_) {
    if (!armed_) {
      changed_.wait(lock);
      continue;
    }
    const double left = limit_ - seconds_since(begun_);
    if (left < -slept_through)
      begun_ = now_ns();  // this process was stopped itself: its own clock begins again
    else if (left <= 0) bark(seconds_since(begun_));
    else changed_.wait_for(lock, std::chrono::duration<double>(trouble_ ? std::min(left, ask_every) : left));
    if (const std::string trouble = trouble_ && armed_ ? trouble_() : ""; !trouble.empty()) report(trouble);
  }
}

/// Reports what has gone wrong in the background. Several ranks may learn of it: the lowest speaks, and the
/// others have been ended before their turn comes.
void Watchdog::report(const std::string& trouble) const {
  sleep_for(std::min(2.0, 0.02 * rank_));
  const std::string sentence = fmt::format("rank {} on {}, in {}: {}; the job ends with exit code {}", rank_,
                                           host_name(), phase_, trouble, static_cast<int>(Exit::peer_failed));
  const std::string line = "mindpipe-train: " + marked(sentence) + "\n";
  [[maybe_unused]] const auto written = write(STDERR_FILENO, line.data(), line.size());
  say_last_words(static_cast<int>(Exit::peer_failed), sentence);
  abort_job(static_cast<int>(Exit::peer_failed));
}

void Watchdog::bark(double seconds) const {
  // Who has waited for a part of the time only has got what it needed before, and will again: it is at work
  // as far as others go.
  const double waited = wait_.empty() ? 0 : seconds_since(wait_since_);
  const std::string state = wait_.empty() ? "is in no wait: it computes, reads or writes"
                            : waited < seconds / 2
                                ? fmt::format("is in no long wait: {:.1f} s so far for {}", waited, wait_)
                                : fmt::format("has waited {:.1f} s for {}", waited, wait_);
  const Report report{
      {rank_, fmt::format("rank {} on {} {}", rank_, host_name(), state)},
      fmt::format("watchdog: {} has taken {:.1f} s (limit {:.1f} s, {})", phase_, seconds, limit_, setting_),
      RollCall(directory_, start_),
      where_,
      std::clamp(limit_ / 10, shortest_grace, 30.0)};
  // A disk that hangs may be why nothing moves, so files are a thread's of their own, which is not waited for
  // without end.
  auto told = std::make_shared<std::promise<void>>();
  const auto answer = told->get_future();
  std::thread([report, told] {
    report.call_the_roll();
    told->set_value();
  }).detach();
  if (answer.wait_for(std::chrono::duration<double>(4 * report.grace + 6)) != std::future_status::ready) {
    const std::string line =
        "mindpipe-train: " +
        marked(fmt::format("{}: {}; its files do not answer either; the job ends with exit code {}\n",
                           report.what, report.mine.text, static_cast<int>(Exit::watchdog)));
    [[maybe_unused]] const auto written = write(STDERR_FILENO, line.data(), line.size());
  }
  abort_job(static_cast<int>(Exit::watchdog));
}

}  // namespace mindpipe
