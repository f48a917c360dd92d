#include "comm/roll_call.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <regex>

#include "core/line_reader.h"

namespace mindpipe {
namespace {

namespace fs = std::filesystem;

constexpr const char* prefix = "watchdog-";

/// Number of the rank whose answer has this file name, or -1.
int rank_of(const std::string& name) {
  const std::string stem = prefix;
  if (!name.starts_with(stem) || !name.ends_with(".txt") || name.size() <= stem.size() + 4) return -1;
  return std::atoi(name.c_str() + stem.size());
}

std::vector<fs::path> files_in(const std::string& directory) {
  std::vector<fs::path> files;
  std::error_code problem;
  for (fs::directory_iterator at(directory, problem), end; !problem && at != end; at.increment(problem))
    if (rank_of(at->path().filename().string()) >= 0) files.push_back(at->path());
  return files;
}

bool is_earlier(const fs::path& path, RollCall::Time start) {
  std::error_code problem;
  const RollCall::Time written = fs::last_write_time(path, problem);
  return !problem && written < start;
}

/// Text of a list of ranks: "rank 2 on node7", "rank 2 on node7, rank 3 on node7 and 5 more".
std::string names_of(const std::vector<int>& ranks, const std::vector<std::string>& where) {
  constexpr std::size_t most = 4;
  std::string text;
  for (std::size_t i = 0; i < std::min(most, ranks.size()); ++i)
    text += fmt::format("{}rank {}{}",
                        i == 0                  ? ""
                        : i + 1 == ranks.size() ? " and "
                                                : ", ",
                        ranks[i], where[static_cast<std::size_t>(ranks[i])]);
  return ranks.size() > most ? fmt::format("{} and {} more", text, ranks.size() - most) : text;
}

/// Text of the first answer that waits for this rank; else of the first answer.
std::string witness_of(int rank, const std::vector<Answer>& answers) {
  const auto found = std::find_if(answers.begin(), answers.end(),
                                  [&](const Answer& answer) { return answer.waits_for(rank); });
  return found == answers.end() ? answers.front().text : found->text;
}

}  // namespace

bool Answer::waits_for(int other) const {
  return waits() && std::regex_search(text.substr(text.find(" has waited ")),
                                      std::regex(fmt::format("\\branks? ([0-9]+,? )*(and )?{}\\b", other)));
}

bool RollCall::answer(const Answer& mine) const {
  std::error_code problem;
  fs::create_directories(directory_, problem);
  const int file = open(fmt::format("{}/{}{}.txt", directory_, prefix, mine.rank).c_str(),
                        O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK, 0666);
  if (file < 0) return false;
  const std::string line = mine.text + "\n";
  const bool written = write(file, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  return close(file) == 0 && written;
}

std::vector<Answer> RollCall::answers() const {
  std::vector<Answer> all;
  for (const fs::path& path : files_in(directory_)) {
    if (is_earlier(path, start_)) continue;
    Answer answer{rank_of(path.filename().string()), ""};
    try {
      LineReader file(path.string(), longest_own_line);
      if (file.next(answer.text)) all.push_back(answer);
    } catch (const Error&) {  // a rank that has not written its answer
    }
  }
  std::sort(all.begin(), all.end(), [](const Answer& a, const Answer& b) { return a.rank < b.rank; });
  return all;
}

void RollCall::forget_earlier() const {
  std::error_code ignored;
  for (const fs::path& path : files_in(directory_))
    if (is_earlier(path, start_)) fs::remove(path, ignored);
}

std::string verdict_on(const std::vector<Answer>& answers, const std::vector<std::string>& where) {
  std::vector<int> silent, busy;
  for (int rank = 0; rank < static_cast<int>(where.size()); ++rank) {
    const auto answer =
        std::find_if(answers.begin(), answers.end(), [&](const Answer& a) { return a.rank == rank; });
    if (answer == answers.end()) silent.push_back(rank);
    else if (!answer->waits()) busy.push_back(rank);
  }
  if (!silent.empty())
    return fmt::format("{} {} not answer (stopped, or the machine hangs: look there first); {}",
                       names_of(silent, where), silent.size() == 1 ? "does" : "do",
                       witness_of(silent.front(), answers));
  if (busy.size() == where.size())
    return fmt::format(
        "all {} ranks are at work and none waits for long, so the step is too long for this limit, or the "
        "machine does other work; {}",
        where.size(), answers.front().text);
  if (!busy.empty())
    return fmt::format(
        "{} {} in no wait while others wait (too slow, or held up by a disk: look there first); {}",
        names_of(busy, where), busy.size() == 1 ? "is" : "are", witness_of(busy.front(), answers));
  return fmt::format(
      "all {} ranks wait for one another, so a message is lost or the step is too long for this limit; {}",
      where.size(), answers.front().text);
}

}  // namespace mindpipe
