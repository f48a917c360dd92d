#include <cmath>
#include <span>

#include "app/run/run.h"
#include "app/run/run_directory.h"
#include "app/run/weights.h"
#include "app/search/halving.h"
#include "app/search/network_search.h"
#include "app/search/origin.h"
#include "app/search/results.h"
#include "app/search/score_file.h"
#include "app/search/trust.h"
#include "app/train/evaluation.h"
#include "app/train/stop_request.h"
#include "app/verbs/checkpoint_tools.h"
#include "app/verbs/extract.h"
#include "app/verbs/main_verb.h"
#include "app/verbs/verbs.h"
#include "comm/text_of_rank_0.h"
#include "config/config.h"
#include "config/models/search.h"
#include "core/input_file.h"
#include "core/log.h"
#include "core/progress.h"
#include "core/text.h"

namespace mindpipe {
namespace {

std::string directory_of_search(const Config& config) {
  return config.search.dir.empty() ? config.run.dir + "/search" : config.search.dir;
}

/// The file of the weights to score with: those that a supernet's run has ended or stopped with; where it was
/// cut off, those of its newest checkpoint, which rank 0 writes into the directory. Empty: nothing is
/// computed. Collective.
std::string weights_to_score(const Config& config, const std::string& directory, const World& world) {
  if (!row_of(config.device.kind).computes) return "";
  std::string file;
  if (world.rank == 0) {
    const std::string& run = config.run.dir;
    MP_REQUIRE(file_is_there(run + "/config.yaml"), Exit::input_missing,
               "{}: there is no run of a supernet to search (train it first, or name another run.dir)", run);
    require_space(run, config);
    file = run + "/model.safetensors";
    if (!has_newest_weights(run)) {
      file = directory + "/weights.safetensors";
      // Weights are scored as they were trained, however the run leaves them for others.
      info("{}",
           export_weights(checkpoint_at(run), file, {"export.precision=f32", "export.names=transformers"}));
    }
  }
  return text_of_rank_0(world, file);
}

std::string joined_lines(const std::vector<Score>& scores) {
  std::string text;
  for (const Score& score : scores) text += line_of(score) + "\n";
  return text;
}

std::vector<Score> scores_in(const std::string& lines) {
  std::vector<Score> scores;
  for (std::size_t begin = 0; begin < lines.size();) {
    const std::size_t end = lines.find('\n', begin);
    scores.push_back(*score_of(lines.substr(begin, end - begin)));
    begin = end + 1;
  }
  return scores;
}

/// The scoring of a search, on one job's ranks.
class Scoring {
 public:
  Scoring(Run& run, const std::string& directory)
      : run_(run),
        config_(run.config()),
        directory_(directory),
        file_(directory + "/search.jsonl"),
        measures_(config_),
        search_(config_.search, config_.model.supernet.space, config_.seed, measures_) {}

  /// Scores what is missing, as far as nobody asks for a stop. Collective.
  void run();
  const std::vector<Score>& scores() const { return search_.scores(); }
  bool is_over() const { return search_.is_over(); }

 private:
  void take_up(const std::string& weights);
  void require_lag();
  bool is_out_of_time() const;
  void score(const std::string& weights);
  void hear(const std::vector<Evaluation>& of_batches);

  Run& run_;
  const Config& config_;
  std::string directory_;
  ScoreFile file_;
  NetworkMeasures measures_;
  NetworkSearch search_;
  std::unique_ptr<RunDirectory> held_;  ///< by the rank that writes
  std::optional<Progress> progress_;
  double best_ = std::numeric_limits<double>::infinity();
  std::int64_t begun_ = 0, start_ns_ = 0;
};

/// What earlier starts have scored, which must have come about as now.
void Scoring::take_up(const std::string& weights) {
  std::vector<Score> known;
  const std::string origin_file = directory_ + "/origin.json";
  if (run_.is_rank_0()) {
    known = file_.read();
    const ScoreOrigin origin = origin_of_scores(config_, weights);
    if (!known.empty()) require_same_origin(origin, origin_file);
    else write_origin(origin, origin_file);
    if (std::ssize(known) > config_.search.scores) known.resize(config_.search.scores);
  }
  search_.take_up(scores_in(text_of_rank_0(run_.world(), joined_lines(known))), file_.path());
  for (const Score& score : search_.scores()) best_ = std::min(best_, score.rank_loss());
  begun_ = std::ssize(search_.scores());
  if (begun_ > 0) info("{}: {} scores are there", file_.path(), begun_);
}

void Scoring::hear(const std::vector<Evaluation>& of_batches) {
  const std::span<const Evaluation> all(of_batches);
  const std::size_t half = all.size() / 2;
  const Evaluation first = sum_of(all.first(half)), second = sum_of(all.subspan(half));
  const double none = std::numeric_limits<double>::quiet_NaN();
  const Score& score =
      search_.hear(sum_of(all).loss(), {half > 0 ? first.loss() : none, half > 0 ? second.loss() : none});
  best_ = std::min(best_, score.rank_loss());
  if (!run_.is_rank_0()) return;
  file_.append(score);
  const std::int64_t done = score.id + 1;
  const double each = seconds_since(start_ns_) / static_cast<double>(done - begun_);
  progress_->update(done, fmt::format("loss {:.4f}, the best {:.4f} | {:.1f} scores/s", score.rank_loss(),
                                      best_, 1 / each));
  held_->write_status({"running", done, "", ""});
}

/// Whether what is under way could not end within run.max_walltime.
bool Scoring::is_out_of_time() const {
  const double limit = config_.run.max_walltime;
  if (limit == 0 || !run_.is_rank_0()) return false;
  const auto done = std::max<std::int64_t>(1, std::ssize(search_.scores()) - begun_);
  const double each = seconds_since(start_ns_) / static_cast<double>(done);
  return run_.seconds() + 2 * each > limit;
}

/// Refuses a lag with which stages would have nothing to do.
void Scoring::require_lag() {
  const std::int64_t least = run_.worker().evaluator().least_lag(config_.search.batches);
  MP_REQUIRE(!row_of(config_.search.searcher).learns || config_.search.lag >= least, Exit::bad_configuration,
             "search.lag is {}, and {} stages have {} networks under way (take {} or more, or fewer stages: "
             "grid.pipeline)",
             config_.search.lag, config_.grid.pipeline, least, least);
}

void Scoring::score(const std::string& weights) {
  Config sampled = config_;
  sampled.train.evaluate_batches = config_.search.batches;
  Corpus corpus = validation_corpus(sampled, fields_of(config_));
  for (const std::string& line : corpus.describe()) info("held out: {}", line);
  run_.make_worker(Purpose::reading, config_.search.batches);
  if (!weights.empty()) read_weights(run_.worker(), weights);
  require_lag();
  stop_after_step();
  start_ns_ = now_ns();
  progress_.emplace(begun_, config_.search.scores, 0);
  const double limit = run_.step_limit();
  run_.worker().evaluator().score(
      corpus, config_.search.batches,
      {.next = [this] { return search_.next(); },
       .hear = [this](const std::vector<Evaluation>& of_batches) { hear(of_batches); },
       .wish = [this] { return stop_asked() || is_out_of_time() || (held_ && held_->stop_asked()); },
       .lag = row_of(config_.search.searcher).learns ? config_.search.lag : 0},
      [&](std::int64_t batch) {
        run_.watchdog().arm(limit, fmt::format("batch {} of a score", batch + 1), "watchdog.step");
      });
  progress_.reset();
}

/// A search that is over is read alone; any other holds its directory before it writes there.
void Scoring::run() {
  if (run_.is_rank_0() && std::ssize(file_.read()) < config_.search.scores)
    held_ = std::make_unique<RunDirectory>(directory_, !row_of(config_.device.kind).computes);
  const std::string weights = weights_to_score(config_, directory_, run_.world());
  take_up(weights);
  if (search_.is_over()) return held_.reset();
  if (run_.is_rank_0()) {
    run_.watchdog().forget_earlier_rolls();
    held_->write_status({"running", begun_, "", ""});
    file_.begin(search_.scores());
  }
  score(weights);
  if (!held_) return;
  held_->write_status(
      {is_over() ? "done" : "stopped", std::ssize(scores()), is_over() ? "" : "as asked", ""});
  held_->forget_stop();
}

/// Keeps MPI open between the parts of a search, and closes it under the eyes of a watchdog.
class OpenMpi {
 public:
  OpenMpi(const Arguments& arguments, double limit)
      : argc_(arguments.argc), argv_(arguments.argv), limit_(limit) {}
  ~OpenMpi() {
    if (!session_) return;
    Watchdog watchdog(session_->rank());
    watchdog.arm(limit_, "end", "watchdog.start");
    watchdog.begin_wait("all ranks to end (MPI_Finalize)", now_ns());
    session_.reset();
  }
  OpenMpi(const OpenMpi&) = delete;
  OpenMpi& operator=(const OpenMpi&) = delete;

  /// Joins a run that has opened it.
  void join() { session_.emplace(argc_, argv_); }
  World world() const { return {session_->world(), session_->rank(), session_->size()}; }

 private:
  int argc_;
  char** argv_;
  double limit_;
  std::optional<MpiSession> session_;
};

/// The networks of a search's best, by the names of their runs, and as many drawn ones that meet its limits.
std::pair<std::vector<NamedChoice>, std::vector<NamedChoice>> groups_of(
    const Config& config, const std::vector<Score>& scores, const std::vector<std::size_t>& best) {
  std::vector<NamedChoice> chosen, drawn;
  for (const std::size_t place : best)
    chosen.push_back({std::to_string(scores[place].id), scores[place].choice});
  const NetworkMeasures measures(config);
  // Another seed than those of the training's stream and of its evaluations.
  const auto sampler = draw_subnets(config.model.supernet.space, {.seed = config.seed ^ 0x68616c76696e67});
  constexpr int most_draws = 10'000;
  for (int i = 0; i < most_draws && drawn.size() < chosen.size(); ++i) {
    const Subnet subnet = sampler->next();
    const auto is_same = [&](const NamedChoice& other) { return other.choice == subnet.choice; };
    if (excess_of(config.search, measures, subnet.choice) == 0 &&
        std::none_of(chosen.begin(), chosen.end(), is_same) &&
        std::none_of(drawn.begin(), drawn.end(), is_same))
      drawn.push_back({fmt::format("drawn-{}", drawn.size() + 1), subnet.choice});
  }
  return {chosen, drawn};
}

}  // namespace

/// Scores networks of a trained supernet, says which are the best, and how far that can be trusted.
int search(const Arguments& arguments, const Config& given) {
  MP_REQUIRE(row_of(given.model.kind).trains_subnets, Exit::bad_configuration,
             "search needs a supernet, and model.kind is {}", given.model.kind);
  MP_REQUIRE(!given.data.validation.empty(), Exit::bad_configuration,
             "search needs data.validation, on which networks are scored: name a source there, or on the "
             "command line");
  const std::string directory = directory_of_search(given);
  OpenMpi open(arguments, given.watchdog.start);
  Config config;
  std::vector<Score> scores;
  {
    Run run(arguments, given, Run::on_job(with_any_grid), directory + "/log");
    open.join();
    config = run.config();
    Scoring scoring(run, directory);
    scoring.run();
    scores = scoring.scores();
    if (!scoring.is_over()) {
      info("stopped after {} of {} scores as asked; the same command goes on from there", scores.size(),
           config.search.scores);
      return static_cast<int>(Exit::stopped);
    }
  }
  const World world = open.world();
  const std::vector<std::size_t> best = best_of(config, scores);
  if (world.rank == 0) {
    print(table_of(config, scores, best));
    write_results(config, scores, best, directory);
  }
  bool stops = false;
  if (config.search.verify > 0) {
    const int steps = steps_of_networks(config);
    Trainings trainings(arguments, config, directory + "/verify", steps);
    verify_scores(config, scores, trainings, world);
    stops = trainings.stops();
  }
  if (!config.search.halving.empty() && !stops) {
    const auto [chosen, drawn] = groups_of(config, scores, best);
    Trainings trainings(arguments, config, directory + "/halving", config.search.halving[0]);
    halve(config, chosen, drawn, trainings, world);
    stops = trainings.stops();
  }
  return stops ? static_cast<int>(Exit::stopped) : 0;
}

}  // namespace mindpipe
