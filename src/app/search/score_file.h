#pragma once
#include <string>
#include <vector>

#include "app/search/score.h"
#include "io/file.h"

namespace mindpipe {

/// search.jsonl: a line for each score, in the order of ids. It is all that a search that was cut off needs
/// to go on.
class ScoreFile {
 public:
  explicit ScoreFile(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  /// The scores that are there. A last line that a crash cut short does not count; any other that is no score
  /// is refused with its number.
  std::vector<Score> read() const;
  /// Makes the file hold these and no more, for who is going to append.
  void begin(const std::vector<Score>& scores);
  void append(const Score& score);

 private:
  std::string path_;
  File file_;
};

}  // namespace mindpipe
