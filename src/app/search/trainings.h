#pragma once
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "app/verbs/arguments.h"
#include "comm/mpi.h"
#include "config/config.h"

namespace mindpipe {

/// A network of a supernet that is to be trained by itself, from scratch.
struct TrainingWish {
  std::string name;  ///< name of the run, below the directory
  std::vector<std::uint8_t> choice;
  int steps = 0;       ///< steps of the whole run; the learning rate follows them
  int stop_after = 0;  ///< how many of them are taken now
};

/// Trainings of networks by themselves, each an ordinary run of this job's ranks, in a directory of its own.
/// What is done is not done again, and what has stopped goes on.
class Trainings {
 public:
  /// `supernet`: on this job's grid. Evaluations lie `evaluate_every` steps apart.
  Trainings(const Arguments& arguments, const Config& supernet, std::string directory, int evaluate_every);

  /// The validation loss that a network comes to; none where another job trains it at this moment, or where
  /// this job was asked to stop. Collective.
  std::optional<double> train(const TrainingWish& wish, const World& world);

  /// The validation losses that several networks come to, in their order; none as for one. Collective.
  std::vector<std::optional<double>> train(const std::vector<TrainingWish>& wishes, const World& world);

  /// What to do about networks that are left; empty: none is.
  std::string words_on_left(int left) const {
    if (left == 0) return "";
    return stops_ ? "; the same command goes on from there"
                  : "; other jobs train them: the same command prints the table when they are done";
  }

  int done_now() const { return done_now_; }        ///< trainings
  int done_before() const { return done_before_; }  ///< trainings found done already
  std::int64_t steps_now() const { return steps_now_; }
  /// Whether this job was asked to stop.
  bool stops() const { return stops_; }

 private:
  std::string run_of(const TrainingWish& wish) const { return directory_ + "/" + wish.name; }
  Config config_of(const TrainingWish& wish) const;
  std::string found_at_rest(const TrainingWish& wish) const;

  const Arguments& arguments_;
  Config supernet_;
  std::string directory_;
  int done_now_ = 0, done_before_ = 0;
  std::int64_t steps_now_ = 0;
  bool stops_ = false;
  std::set<std::string> told_;  ///< runs that are told to be another job's
};

}  // namespace mindpipe
