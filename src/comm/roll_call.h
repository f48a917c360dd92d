#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace mindpipe {

/// Answer of a rank to the roll call: what it says of itself when it gives the job up.
struct Answer {
  int rank = 0;
  std::string text;  ///< "rank 3 on node7 has waited 4.8 s for ...", or "rank 3 on node7 is in no wait: ..."

  bool waits() const { return text.find(" has waited ") != std::string::npos; }
  /// Whether the rank that answers waits for rank `other`, among others.
  bool waits_for(int other) const;
};

/// Ranks that give a job up call the roll: each answers with a file of its own in a directory that all of
/// them see. A rank that is stopped cannot answer, so the missing one is the one to look for. No message is
/// sent, for messages may be what does not work.
class RollCall {
 public:
  using Time = std::filesystem::file_time_type;
  /// A roll call in `directory`. Answers older than `start` are left over from an earlier job and do not
  /// count.
  explicit RollCall(std::string directory, Time start = Time::min())
      : directory_(std::move(directory)), start_(start) {}
  /// Writes this rank's answer; false if it cannot be written.
  bool answer(const Answer& mine) const;
  /// The answers so far, ordered by rank.
  std::vector<Answer> answers() const;
  /// Removes the answers that an earlier job left.
  void forget_earlier() const;
  /// Path of the answers' files, for people.
  std::string files() const { return directory_ + "/watchdog-*.txt"; }

 private:
  std::string directory_;
  Time start_;
};

/// Sentence that says which ranks to look for and why: the ranks that did not answer; or else those that wait
/// for nobody while others wait; or else that all wait, or that none does. where[r]: " on node7", or nothing.
/// There is at least one answer.
std::string verdict_on(const std::vector<Answer>& answers, const std::vector<std::string>& where);

}  // namespace mindpipe
