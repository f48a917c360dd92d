#include "app/search/score_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/check.h"
#include "core/line_reader.h"

namespace mindpipe {

std::vector<Score> ScoreFile::read() const {
  if (access(path_.c_str(), F_OK) != 0) return {};
  LineReader in(path_, longest_own_line);
  std::vector<Score> scores;
  for (std::string line; in.next(line) && in.was_ended();) {
    std::optional<Score> score = score_of(line);
    MP_REQUIRE(
        score && score->id == static_cast<std::int64_t>(scores.size()), Exit::bad_data,
        "{}: line {} is not the score of network {}; mend that line, or cut the file before it to score from "
        "there on anew (nothing was changed)",
        path_, in.number(), scores.size());
    scores.push_back(std::move(*score));
  }
  return scores;
}

void ScoreFile::begin(const std::vector<Score>& scores) {
  std::string text;
  for (const Score& score : scores) text += line_of(score) + "\n";
  NewFile whole(path_);
  whole.write(text.data(), text.size());
  whole.commit();
  file_ = File(open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  MP_REQUIRE(file_, Exit::cannot_create, "{}: cannot be opened ({})", path_, std::strerror(errno));
}

void ScoreFile::append(const Score& score) {
  const std::string text = line_of(score) + "\n";
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t written = write(file_.get(), text.data() + done, text.size() - done);
    if (written < 0 && errno == EINTR) continue;
    MP_REQUIRE(written >= 0, Exit::io_error,
               "{}: writing failed ({}; make room and start again, the search goes on from its last line)",
               path_, std::strerror(errno));
    done += static_cast<std::size_t>(written);
  }
}

}  // namespace mindpipe
