#include "app/train/saves.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "app/run/agreement.h"
#include "app/run/resume.h"
#include "app/run/version.h"
#include "config/config.h"
#include "core/log.h"
#include "core/text.h"
#include "supernet/sampler.h"

namespace mindpipe {
namespace {

// A save may take as long as this rate needs, beyond what a step may take, before the watchdog ends the job.
constexpr double slowest_bytes_per_second = 10e6;
// How fast a checkpoint is taken to be written, before one has been.
constexpr double usual_bytes_per_second = 100e6;

std::map<std::string, std::int64_t> named(const Coord& grid) {
  std::map<std::string, std::int64_t> degrees;
  for (const Axis axis : axes) degrees[name_of(axis)] = grid[axis];
  return degrees;
}

}  // namespace

Saves::Saves(Run& run, RunDirectory* directory, const RunProgress& begun, const std::optional<Resumed>& from)
    : run_(run),
      directory_(directory),
      progress_(begun),
      history_(from ? &from->manifest : nullptr, run.arithmetic(), lasting_settings(run.config())),
      restarts_(from ? from->manifest.restarts + 1 : 0),
      longest_(from ? 1e-3 * static_cast<double>(from->manifest.longest_save_ms) : 0) {
  pass_over_newer();
  find_in_a_row();
  const NewCheckpoint own(run.config().run.dir, begun.step);
  std::error_code other;
  if (from && std::filesystem::equivalent(from->directory, own.final_path(), other) && !other) {
    saved_ = made_ = begun.step;
    if (directory_) directory_->note_checkpoint("checkpoints/" + checkpoint_name(saved_));
  }
  if (!row_of(run.config().device.kind).computes) return;
  writer_ = std::make_unique<CheckpointWriter>(run.worker(), run.config().run.dir,
                                               [this](const Manifest& newest) { retire(newest); });
}

/// Checkpoints behind where the run goes on were passed over.
void Saves::pass_over_newer() {
  damaged_.clear();
  if (!run_.is_rank_0()) return;
  for (const CheckpointPlace& place : checkpoints_in(run_.config().run.dir))
    if (place.step > progress_.step) damaged_.push_back(place.step);
}

/// Finds what stops among steps that changed nothing have left of earlier starts.
void Saves::find_in_a_row() {
  if (!run_.is_rank_0()) return;
  std::int64_t others = 0;
  for (const CheckpointPlace& place : checkpoints_in(run_.config().run.dir)) {
    if (others == run_.config().checkpoint.keep) return;
    try {
      if (read_manifest(place.path).progress.skipped_in_a_row > 0) in_a_row_.push_back(place.step);
      else ++others;
    } catch (const Error&) {  // who loads it says so
    }
  }
}

void Saves::go_back_to(const Manifest& from, const RunProgress& progress) {
  progress_ = progress;
  history_ = RunHistory(&from, run_.arithmetic(), lasting_settings(run_.config()));
  saved_ = made_ = progress.step;
  pass_over_newer();
  if (directory_) directory_->note_checkpoint("checkpoints/" + checkpoint_name(made_));
}

bool Saves::is_damaged(std::int64_t step) const {
  return std::find(damaged_.begin(), damaged_.end(), step) != damaged_.end();
}

/// Whether a run that goes wrong may go back to the checkpoint of this step.
bool Saves::is_gone_back_to(std::int64_t step) const {
  return std::find(in_a_row_.begin(), in_a_row_.end(), step) == in_a_row_.end();
}

bool Saves::due(std::int64_t steps) const {
  const int every = run_.config().checkpoint.every;
  return writer_ && every > 0 && steps % every == 0;
}

bool Saves::due_by_time() const {
  const double every = run_.config().checkpoint.every_time;
  return writer_ && run_.is_rank_0() && every > 0 && seconds_since(began_ns_) >= every;
}

double Saves::seconds_to_save(std::int64_t steps, std::int64_t ahead) const {
  if (!writer_) return 0;
  const int every = run_.config().checkpoint.every;
  const double so_far = under_way_ ? seconds_since(began_ns_) : 0,
               known =
                   longest_ > 0 ? longest_ : static_cast<double>(writer_->bytes()) / usual_bytes_per_second,
               one = std::max(known, so_far);
  const bool is_due = due_by_time() || (every > 0 && steps / every != (steps + ahead) / every);
  return 1.5 * one + (under_way_ ? one - so_far : 0) + (is_due ? one : 0);
}

void Saves::evaluated(std::int64_t steps, double loss) {
  if (progress_.best_loss && *progress_.best_loss <= loss) return;
  progress_.best_loss = loss;
  progress_.best_step = steps;
}

Manifest Saves::manifest_after(std::int64_t steps) const {
  const Config& config = run_.config();
  Manifest manifest;
  manifest.progress = progress_;
  manifest.progress.step = steps;
  manifest.progress.samples = steps * config.train.batch;
  manifest.progress.tokens = manifest.progress.samples * run_.worker().plan().counted.of_sample;
  manifest.restarts = restarts_;
  manifest.longest_save_ms = std::llround(1e3 * longest_);
  manifest.created_by = version();
  manifest.arithmetic = run_.arithmetic().text();
  manifest.settings = lasting_settings(config);
  manifest.earlier = history_.earlier();
  manifest.choices = hash_of_choices(config, steps);
  manifest.grid = named(run_.worker().layout().grid);
  return manifest;
}

void Saves::save(std::int64_t steps) {
  if (!writer_ || steps == saved_) return;
  saved_ = steps;
  began_ns_ = now_ns();
  const double bytes = static_cast<double>(writer_->bytes());
  run_.watchdog().arm(run_.step_limit() + bytes / slowest_bytes_per_second,
                      fmt::format("the checkpoint after step {}", steps), "watchdog.step");
  finish();  // a save that has come to nothing may end the run, before another begins
  if (directory_) directory_->flush_metrics();
  writer_->begin(manifest_after(steps), to_yaml(run_.config()));
  under_way_ = true;
  tell();
}

void Saves::attend(bool all_written) {
  if (!writer_) return;
  if (all_written && writer_->to_be_collected()) writer_->collect();
  tell();
}

void Saves::finish() {
  if (!writer_) return;
  writer_->finish();
  tell();
}

std::string Saves::next_start(std::int64_t steps) const {
  const std::string& wish = run_.config().run.resume;
  if (made_ < 0 && (wish == "auto" || wish == "never")) return "begins anew: there is no checkpoint";
  if (made_ < 0) return "begins again at " + wish;
  return fmt::format("{}goes on from {}", wish == "auto" ? "" : "with run.resume=auto ",
                     made_ == steps ? "there" : checkpoint_name(made_));
}

/// Says on rank 0 what has become of saves.
void Saves::tell() {
  const std::string problem = writer_->problem();
  if (!problem.empty()) {
    under_way_ = false;
    MP_REQUIRE(run_.config().checkpoint.on_error != SaveFailure::stop, Exit::io_error,
               "{}; the checkpoint was not made, older ones stand (checkpoint.on_error: warn would train on)",
               problem);
    warning("{}; the checkpoint was not made, older ones stand", problem);
  }
  const std::optional<CheckpointWriter::Saved> made = writer_->made();
  if (!made) return;
  under_way_ = false;
  made_ = made->step;
  longest_ = std::max(longest_, made->seconds);
  const std::string place = "checkpoints/" + checkpoint_name(made->step);
  info("checkpoint: {}/{} ({} in {}; training has stood still for saves for {})", run_.config().run.dir,
       place, human_bytes(static_cast<double>(writer_->bytes())), human_seconds(made->seconds),
       human_seconds(writer_->stood_still()));
  if (directory_) directory_->note_checkpoint(place);
}

/// Takes away what need not stay once a newer checkpoint has been read back. Those that were passed over when
/// the run came back are damaged, and count for nothing. One that was made among steps that changed nothing
/// takes no place of one that the run may have to go back to.
void Saves::retire(const Manifest& newest) {
  std::erase(damaged_, newest.progress.step);  // made anew
  std::erase(in_a_row_, newest.progress.step);
  if (newest.progress.skipped_in_a_row > 0) in_a_row_.push_back(newest.progress.step);
  const CheckpointConfig& rules = run_.config().checkpoint;
  const std::vector<CheckpointPlace> places = checkpoints_in(run_.config().run.dir);
  std::int64_t kept = 0, best = -1;
  for (const CheckpointPlace& place : places)  // the first behind the best evaluation; the newest come first
    if (newest.progress.best_loss && place.step >= newest.progress.best_step && !is_damaged(place.step))
      best = place.step;
  for (const CheckpointPlace& place : places) {
    const std::int64_t step = place.step;
    if (is_damaged(step)) continue;
    const bool stays =
        kept < rules.keep || step == best || (rules.keep_every > 0 && step % rules.keep_every == 0);
    kept += is_gone_back_to(step) ? 1 : 0;
    if (!stays) remove_checkpoint(place.path);
  }
}

}  // namespace mindpipe
