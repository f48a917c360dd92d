#include "energy/node_reader.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <sstream>

#include "core/clock.h"
#include "energy/powers.h"

namespace mindpipe {
namespace {

constexpr std::int64_t second = 1'000'000'000;
/// How often it is asked whose the work on a node is, at most; at first more often.
constexpr std::int64_t between_parts = 10 * second;
/// Seconds of a few ticks of the system's clock.
constexpr double few_ticks = 0.03;

double thread_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

/// Ticks in user and system mode of one process; 0 for one that is gone.
double ticks_of(const std::string& path) {
  std::ifstream file(path);
  std::string text;
  std::getline(file, text);
  // The name, in brackets, may hold blanks.
  const std::size_t behind = text.rfind(')');
  if (behind == std::string::npos) return 0;
  std::istringstream fields(text.substr(behind + 1));
  std::string skipped;
  for (int field = 0; field < 11; ++field) fields >> skipped;
  double user = 0, system = 0;
  fields >> user >> system;
  return user + system;
}

}  // namespace

ProcessorTime processor_time(const std::vector<int>& processes, const cpu_set_t& processors,
                             const std::string& proc) {
  const double ticks_a_second = static_cast<double>(sysconf(_SC_CLK_TCK));
  ProcessorTime times;
  for (const int process : processes)
    times.job += ticks_of(proc + "/" + std::to_string(process) + "/stat") / ticks_a_second;
  std::ifstream file(proc + "/stat");
  // "cpu" has all of them, and "cpu3" one.
  for (std::string line; std::getline(file, line) && line.starts_with("cpu");) {
    std::istringstream fields(line.substr(3));
    std::size_t processor = 0;
    const bool is_one = line[3] != ' ';
    if (is_one) fields >> processor;
    double user = 0, nice = 0, system = 0, idle = 0, disk = 0, interrupts = 0, soft = 0;
    fields >> user >> nice >> system >> idle >> disk >> interrupts >> soft;
    const double busy = (user + nice + system + interrupts + soft) / ticks_a_second;
    if (!is_one) times.node = busy;
    else if (processor < CPU_SETSIZE && CPU_ISSET(processor, &processors)) times.there += busy;
  }
  return times;
}

NodeReader::NodeReader(std::vector<std::unique_ptr<Meter>> meters, Sharing sharing)
    : meters_(std::move(meters)), sharing_(std::move(sharing)) {
  if (!sharing_.times)
    sharing_.times = [this] { return processor_time(sharing_.processes, sharing_.processors); };
  times_ = sharing_.times();
  if (times_.node <= 0)
    troubles_.emplace_back(
        "/proc/stat does not say who uses the processors: the node is taken for the job's own");
  begun_ns_ = part_ns_ = now_ns();
  newest_ = {part_ns_, 0};
  points_.push_back(newest_);
  thread_ = std::thread([this] { watch(); });
}

NodeReader::~NodeReader() { stop(); }

void NodeReader::stop() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

EnergyPoint NodeReader::newest() const {
  const std::lock_guard lock(mutex_);
  return newest_;
}

bool NodeReader::shared() const {
  const std::lock_guard lock(mutex_);
  return shared_;
}

void NodeReader::begin_window() {
  {
    const std::lock_guard lock(mutex_);
    asked_ = true;
  }
  changed_.notify_all();
}

std::vector<std::string> NodeReader::troubles() const {
  std::vector<std::string> all = troubles_;
  for (const auto& meter : meters_)
    for (const std::string& trouble : meter->troubles()) all.push_back(trouble);
  return all;
}

void NodeReader::watch() {
  std::unique_lock lock(mutex_);
  for (bool last = false; !last;) {
    double wait = 1;
    for (const auto& meter : meters_) wait = std::min(wait, meter->seconds_to_next());
    changed_.wait_for(lock, std::chrono::duration<double>(wait), [this] { return ended_ || asked_; });
    const bool is_point = ended_ || asked_;
    last = ended_;
    asked_ = false;
    lock.unlock();
    read(is_point, last);
    lock.lock();
  }
  own_seconds_ = thread_seconds();
}

/// What is measured goes by the last known part until the next is known; then it is divided once more.
void NodeReader::read(bool is_point, bool last) {
  double own = 0, node = 0;
  for (const auto& meter : meters_) (meter->is_own() ? own : node) += meter->joules();
  const std::int64_t now = now_ns();
  const bool is_due = last || now - part_ns_ >= std::min(between_parts, (part_ns_ - begun_ns_) / 2);
  if (is_due && node > part_joules_) {
    const ProcessorTime times = sharing_.times();
    const NodeInterval interval{node - part_joules_,
                                static_cast<double>(now - part_ns_) * 1e-9,
                                sharing_.idle_watts,
                                times.job - times_.job,
                                times.node - times_.node,
                                times.there - times_.there,
                                CPU_COUNT(&sharing_.processors),
                                sharing_.node_processors};
    // Time is counted in ticks: where a few have passed, they tell nothing.
    if (interval.node_cpu > few_ticks) part_ = part_of_job(interval) / interval.joules;
    counted_ += part_ * interval.joules;
    times_ = times;
    part_joules_ = node;
    part_ns_ = now;
  }
  const std::lock_guard lock(mutex_);
  const bool is_guess =
      std::any_of(meters_.begin(), meters_.end(), [](const auto& meter) { return meter->is_divided(); });
  divided_ = divided_ || is_guess;
  shared_ = shared_ || part_ < 1 || is_guess;
  newest_ = {now, own + counted_ + (node - part_joules_) * part_};
  if (is_point) points_.push_back(newest_);
}

}  // namespace mindpipe
