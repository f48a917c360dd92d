#include "app/search/trainings.h"

#include <algorithm>
#include <filesystem>

#include "app/report/loss_curve.h"
#include "app/run/run_lock.h"
#include "app/run/subnet_config.h"
#include "app/train/stop_request.h"
#include "app/verbs/verbs.h"
#include "comm/text_of_rank_0.h"
#include "config/config.h"
#include "config/settings.h"
#include "core/input_file.h"
#include "core/log.h"
#include "core/text.h"
#include "io/file.h"

namespace mindpipe {
namespace {

bool has_metrics(const std::string& run) {
  std::error_code none;
  const auto bytes = std::filesystem::file_size(run + "/metrics.jsonl", none);
  return !none && bytes > 0;
}

/// The validation loss of a run after `steps` steps, in words; empty: the run has not come so far.
std::string loss_after(const std::string& run, int steps) {
  if (!has_metrics(run)) return "";
  for (const LossCurve::Point& point : read_losses(run).validation)
    if (point.step == steps) return shortest(point.loss);
  return "";
}

int steps_in(const std::string& run) {
  if (!has_metrics(run)) return 0;
  const LossCurve curve = read_losses(run);
  return curve.training.empty() ? 0 : static_cast<int>(curve.training.back().step);
}

/// What a training's losses follow from. Shards may follow the grid of the job that began it.
bool counts_for_losses(const Setting& setting) {
  const std::string& key = setting.key();
  return (setting.role() == Setting::Role::arithmetic && !key.starts_with("reproducible.")) ||
         key == "train.steps" || key == "data.validation" || key == "train.evaluate_every" ||
         key == "train.evaluate_batches";
}

/// Refuses a run that was begun with other settings than these.
void require_same_training(const std::string& run, Config wished) {
  if (!file_is_there(run + "/config.yaml")) return;
  Config earlier = read_config(run + "/config.yaml", {});
  const std::vector<Setting> there = settings_of(earlier), here = settings_of(wished);
  for (const Setting& setting : here) {
    const auto other = std::find_if(there.begin(), there.end(),
                                    [&](const Setting& one) { return one.key() == setting.key(); });
    const std::string value = other == there.end() ? "left out" : other->written();
    MP_REQUIRE(!counts_for_losses(setting) || value == setting.written(), Exit::bad_configuration,
               "{}: was trained with {} = {}, and now it is {} (its losses are those of another training: "
               "remove that directory, or name another search.dir)",
               run, setting.key(), value, setting.written());
  }
}

/// Keeps other jobs from beginning a training, as long as it lives.
class Claim {
 public:
  explicit Claim(std::string file) : file_(std::move(file)), holder_(try_lock(file_)) {}
  ~Claim() {
    if (is_ours()) release_lock(file_);
  }
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;
  bool is_ours() const { return holder_.empty(); }
  /// Who has it, in words.
  const std::string& holder() const { return holder_; }

 private:
  std::string file_, holder_;
};

}  // namespace

Trainings::Trainings(const Arguments& arguments, const Config& supernet, std::string directory,
                     int evaluate_every)
    : arguments_(arguments), supernet_(supernet), directory_(std::move(directory)) {
  supernet_.train.evaluate_every = evaluate_every;
  supernet_.train.evaluate_batches = supernet_.search.batches;
  supernet_.trace.steps = 0;
}

Config Trainings::config_of(const TrainingWish& wish) const {
  const Config supernet = with_steps(supernet_, wish.steps);
  Config config = subnet_config(supernet, wish.choice, run_of(wish));
  config.grid = supernet_.grid;
  config.run.stop_after = wish.stop_after < wish.steps ? wish.stop_after : 0;
  return resolve(config);
}

/// What a run that no job is writing to has come to, in words; empty: not so far.
std::string Trainings::found_at_rest(const TrainingWish& wish) const {
  const std::string run = run_of(wish);
  if (is_held(run + "/lock")) return "";
  require_same_training(run, config_of(wish));
  return loss_after(run, wish.stop_after);
}

std::optional<double> Trainings::train(const TrainingWish& wish, const World& world) {
  const std::string run = run_of(wish);
  std::optional<Claim> claim;
  std::string found;
  bool is_free = true;
  if (world.rank == 0) {
    std::filesystem::create_directories(directory_);
    found = found_at_rest(wish);
    if (found.empty()) {
      claim.emplace(run + ".claim");
      is_free = claim->is_ours() && !is_held(run + "/lock");
      if (!claim->is_ours() && told_.insert(run).second) info("another job trains it: {}", claim->holder());
      found = found_at_rest(wish);  // another job may have come to its end meanwhile
    }
  }
  if (const std::string known = text_of_rank_0(world, found); !known.empty()) {
    ++done_before_;
    return std::stod(known);
  }
  if (any_rank(world, !is_free)) return std::nullopt;
  const int before = world.rank == 0 ? steps_in(run) : 0;
  const int code = mindpipe::train(arguments_, config_of(wish));
  stops_ = any_rank(world, stop_asked());
  const std::string loss = text_of_rank_0(world, world.rank == 0 ? loss_after(run, wish.stop_after) : "");
  if (loss.empty() && (stops_ || code != 0)) return std::nullopt;
  MP_REQUIRE(!loss.empty(), Exit::internal, "{}: has no validation loss after step {}", run, wish.stop_after);
  ++done_now_;
  steps_now_ += wish.stop_after - before;
  return std::stod(loss);
}

/// What another job trains when its turn comes is asked for once more behind the others.
std::vector<std::optional<double>> Trainings::train(const std::vector<TrainingWish>& wishes,
                                                    const World& world) {
  std::vector<std::optional<double>> losses(wishes.size());
  for (int turn = 0; turn < 2; ++turn)
    for (std::size_t i = 0; i < wishes.size() && !stops_; ++i)
      if (!losses[i]) losses[i] = train(wishes[i], world);
  return losses;
}

}  // namespace mindpipe
