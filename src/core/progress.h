#pragma once
#include <cstdint>
#include <string>

namespace mindpipe {

/// How far a run has come, the time that it has used and the time that it will take still (ETA): on a
/// terminal one line with a bar that changes in place, else a plain line now and then. It measures its own
/// pace; the first step it is told of only starts the clock, since it carries what happens once.
class Progress {
 public:
  /// Begins where `done` of `total` steps lie behind us. `every`: steps between plain lines; 0: after 1, 2,
  /// 5, 10, 20, 50 ... steps, and then one a minute.
  Progress(std::int64_t done, std::int64_t total, std::int64_t every = 0);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Steps behind this one are to be done again.
  void go_back_to(std::int64_t done);
  /// Shows that `done` steps are done; `text` is what to say of the last one: "loss 2.31 | 12.3k tokens/s".
  void update(std::int64_t done, const std::string& text);

 private:
  bool is_due(std::int64_t done) const;

  std::int64_t begin_, paced_from_, total_, every_;  ///< steps
  std::int64_t begun_, clock_start_ = 0, last_shown_ = 0;
};

/// Whether a log that no setting rules gets a plain line: `steps` have been taken since the run began or was
/// taken up, the last of them just now, and the last line is `seconds_since_line` old.
bool is_plain_line_due(std::int64_t steps, double seconds_since_line);

}  // namespace mindpipe
