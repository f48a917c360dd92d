#include "app/run/run_directory.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "app/run/json_read.h"
#include "app/run/run_lock.h"
#include "app/train/stop_request.h"
#include "config/config.h"
#include "core/check.h"
#include "core/line_reader.h"
#include "core/log.h"
#include "core/terminate.h"
#include "io/checkpoint_directory.h"

namespace mindpipe {
namespace {

File open_metrics(const std::string& path) {
  File file(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  MP_REQUIRE(file, Exit::cannot_create, "{}: cannot be created ({}; run.dir must be writable)", path,
             std::strerror(errno));
  return file;
}

std::string text_of(const Status& status, bool emulated) {
  JsonLine line;
  line.add("state", status.state)
      .add("step", status.step)
      .add("reason", status.reason)
      .add("checkpoint", status.checkpoint);
  if (emulated) line.add("emulated", true);
  return line.text() + "\n";
}

/// Replaces a file by last words: where a full disk has no room for a new file, the old one's is used, though
/// a reader might see it half written.
void replace_file_at_last(const std::string& path, const std::string& text) noexcept {
  try {
    replace_file(path, text);
  } catch (...) {
    const File file(open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
    if (file && pwrite(file.get(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()))
        [[maybe_unused]]
      const int cut = ftruncate(file.get(), static_cast<off_t>(text.size()));
  }
}

/// Says of a run that an earlier start or another rank has left running that it failed. What has ended
/// otherwise stays: a start that is refused changes nothing of it.
void say_that_it_failed(const std::string& path, const std::string& sentence, bool emulated) {
  auto members = read_json(read_text_if_there(path, largest_status).value_or(""));
  if (!members || members->texts["state"] != "running") return;
  replace_file_at_last(
      path, text_of({"failed", members->integers["step"], sentence, members->texts["checkpoint"]}, emulated));
}

/// status.json.4711.partial: what a process that was killed has left of a file that it wrote.
bool is_leftover(const std::string& name) {
  constexpr std::string_view ending = ".partial";
  if (!name.ends_with(ending)) return false;
  const std::string whole = name.substr(0, name.size() - ending.size());
  const std::string writer = whole.substr(whole.rfind('.') + 1);
  return writer == "stopped" ||
         (!writer.empty() && writer.find_first_not_of("0123456789") == std::string::npos);
}

/// Removes files that runs left unfinished; for who holds the directory, in which nobody else writes.
void remove_leftovers(const std::string& directory) {
  std::error_code ignored;
  for (std::filesystem::directory_iterator entry(directory, ignored), end; !ignored && entry != end;
       entry.increment(ignored))
    if (is_leftover(entry->path().filename())) std::filesystem::remove(entry->path(), ignored);
}

}  // namespace

RunDirectory::RunDirectory(const std::string& directory, bool emulated)
    : path_(directory), emulated_(emulated) {
  MP_REQUIRE(!directory.empty(), Exit::bad_configuration,
             "run.dir is empty (name the directory that the run writes to)");
  std::error_code problem;
  std::filesystem::create_directories(directory, problem);
  MP_REQUIRE(!problem && std::filesystem::is_directory(directory), Exit::cannot_create,
             "{}: the run directory cannot be created ({}; choose another run.dir)", directory,
             problem ? problem.message() : "a file has this name");
  MP_REQUIRE(access(directory.c_str(), W_OK | X_OK) == 0, Exit::cannot_create,
             "{}: the run directory is not writable ({}; choose another run.dir)", directory,
             std::strerror(errno));
  const std::filesystem::path checkpoints = checkpoints_of(directory);
  const bool are_none =
      std::filesystem::symlink_status(checkpoints, problem).type() == std::filesystem::file_type::not_found;
  MP_REQUIRE(are_none || std::filesystem::is_directory(checkpoints, problem), Exit::cannot_create,
             "{}: checkpoints go there, and it is no directory (move it away, or choose another run.dir)",
             checkpoints.string());
  take_lock(path_of("lock"));
  remove_leftovers(directory);
  remove_leftovers(path_of("replay"));
  remove_unfinished_checkpoints(directory);
  leave_at_stop("", "", "", path_of("lock"));
  set_last_words([this](int, const std::string& sentence) {
    leave_at_stop("", "", "", path_of("lock"));
    if (status_) {
      status_->state = "failed";
      status_->reason = sentence;
      if (!checkpoint_.empty()) status_->checkpoint = checkpoint_;  // made since
      replace_file_at_last(path_of("status.json"), text_of(*status_, emulated_));
    } else {
      say_that_it_failed(path_of("status.json"), sentence, emulated_);
    }
    release_lock(path_of("lock"));
  });
}

RunDirectory::~RunDirectory() {
  set_last_words({});
  leave_at_stop("", "", "", "");
  release_lock(path_of("lock"));
}

void RunDirectory::replace(const std::string& name, const std::string& text) const {
  replace_file(path_of(name), text);
}

void RunDirectory::write_passes(const std::string& text) { replace(passes_file, text); }
void RunDirectory::write_config(const Config& config) { replace("config.yaml", to_yaml(config)); }

void RunDirectory::write_status(const Status& given) {
  Status status = given;
  if (status.checkpoint.empty()) status.checkpoint = checkpoint_;
  status_ = status;
  if (status.state != "running") {
    leave_at_stop("", "", "", path_of("lock"));
    return replace("status.json", text_of(status, emulated_));
  }
  const auto cut_short = [&](std::string_view reason) {
    return text_of({"stopped", status.step, std::string(reason), status.checkpoint}, emulated_);
  };
  const std::string by_launcher = cut_short(ended_by_launcher);
  leave_at_stop(path_of("status.json"), cut_short(ended_by_signal), by_launcher, path_of("lock"));
  NewFile file(path_of("status.json"));
  const std::string text = text_of(status, emulated_);
  file.write(text.data(), text.size());
  if (launcher_ends_it()) return;  // what it leaves is written already
  // Another rank may say at any moment that the job failed, or the launcher that it ends, also while this
  // rank is stopped between two of these lines: that stays.
  file.trade_places();
  const char* const earlier = file.earlier().c_str();
  if (says_running_ && (says(earlier, "failed") || says(earlier, "stopped"))) return file.appear();
  says_running_ = true;
  if (launcher_ends_it() && !says(path_of("status.json").c_str(), "failed"))
    replace("status.json", by_launcher);
}

void RunDirectory::append_metrics(const JsonLine& line) {
  if (!metrics_) metrics_ = open_metrics(path_of("metrics.jsonl"));
  const std::string text = line.text() + "\n";
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t written = write(metrics_.get(), text.data() + done, text.size() - done);
    if (written < 0 && errno == EINTR) continue;
    MP_REQUIRE(written >= 0, Exit::io_error,
               "{}: writing failed ({}; make room and start again, the run goes on from its last checkpoint)",
               path_of("metrics.jsonl"), std::strerror(errno));
    done += static_cast<std::size_t>(written);
  }
}

bool read_metrics(const std::string& run_directory, const std::function<void(const JsonMembers&)>& hear) {
  const std::string path = run_directory + "/metrics.jsonl";
  if (access(path.c_str(), F_OK) != 0) return false;
  LineReader in(path, longest_own_line);
  for (std::string line; in.next(line);)
    if (const auto members = read_json(line)) hear(*members);
  return true;
}

void RunDirectory::keep_metrics_through(std::int64_t step, bool has_lines, LeftOut left_out) {
  std::optional<LineReader> in;
  if (access(path_of("metrics.jsonl").c_str(), F_OK) == 0)
    in.emplace(path_of("metrics.jsonl"), longest_own_line);
  std::string kept, line;
  std::int64_t last = 0, missing = 0;
  const auto go_on_to = [&](std::int64_t next) {
    missing += next - last - 1;
    last = next;
  };
  while (in && in->next(line)) {
    if (!in->was_ended()) break;  // cut short by a crash
    const auto members = read_json(line);
    if (!members || members->integers.count("step") == 0) continue;
    const std::int64_t found = members->integers.at("step");
    if (members->integers.count("left_out_from") > 0) {  // said behind a step that was gone back to
      const bool is_known = found < step || (found == step && left_out == LeftOut::stays);
      if (found == last && is_known && !kept.empty()) kept += line + "\n";
      continue;
    }
    if (members->texts.count("source") > 0) {  // behind the line of its step
      if (found == last && !kept.empty()) kept += line + "\n";
      continue;
    }
    if (found <= last || found > step) continue;
    if (kept.empty()) last = found - 1;  // a run may begin at another's checkpoint
    go_on_to(found);
    kept += line + "\n";
  }
  if (!kept.empty() || has_lines) go_on_to(step + 1);
  if (missing > 0)
    warning("{}: the lines of {} steps up to {} are missing; the run goes on without them",
            path_of("metrics.jsonl"), missing, step);
  replace("metrics.jsonl", kept);
  metrics_ = open_metrics(path_of("metrics.jsonl"));
}

void RunDirectory::flush_metrics() {
  if (!metrics_ || reaches_device(metrics_)) return;
  warning("{}: writing it out (fsync) failed ({})", path_of("metrics.jsonl"), std::strerror(errno));
}

bool RunDirectory::stop_asked() const { return access(path_of("STOP").c_str(), F_OK) == 0; }

void RunDirectory::forget_stop() { unlink(path_of("STOP").c_str()); }

PeerStatus::PeerStatus(const std::string& directory, bool emulated) {
  set_last_words([path = directory + "/status.json", emulated](int, const std::string& sentence) {
    say_that_it_failed(path, sentence, emulated);
  });
}

PeerStatus::~PeerStatus() { set_last_words({}); }

}  // namespace mindpipe
