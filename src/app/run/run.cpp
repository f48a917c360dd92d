#include "app/run/run.h"

#include <algorithm>

#include "app/plan/open_choice.h"
#include "app/run/agreement.h"
#include "app/run/run_directory.h"
#include "comm/text_of_rank_0.h"
#include "config/config.h"
#include "core/input_file.h"
#include "core/launcher.h"
#include "core/log.h"
#include "core/log_mark.h"
#include "core/text.h"
#include "plan/memory_limits.h"

namespace mindpipe {
namespace {

/// Most bytes of an order of passes in a file: of more passes than can be planned.
constexpr std::int64_t largest_order = std::int64_t{16} << 20;

/// A watchdog that is there before MPI, of a rank that began at `start_ns`.
std::unique_ptr<Watchdog> armed_watchdog(const Config& config, const std::string& roll,
                                         std::int64_t start_ns) {
  auto watchdog = std::make_unique<Watchdog>(launch().rank);
  if (!roll.empty()) watchdog->call_roll_in(roll, std::vector<std::string>(launch().ranks));
  watchdog->arm(config.watchdog.start, "start", "watchdog.start");
  watchdog->begin_wait("all ranks to begin (MPI_Init)", start_ns);
  return watchdog;
}

/// The ranks on the machine of a rank, itself among them.
std::vector<Coord> neighbours(const std::vector<RankPlace>& places, int own, const GridConfig& grid) {
  std::vector<Coord> ranks;
  for (int rank = 0; rank < static_cast<int>(places.size()); ++rank)
    if (std::string_view(places[rank].host) == places[own].host)
      ranks.push_back(coord_at(degrees_of(grid), rank));
  return ranks;
}

/// The order of passes that an earlier start in the run's directory has searched. Collective.
KnownOrder known_order(const Run& run) {
  const std::string path = run.config().run.dir + "/" + passes_file;
  return {path, text_of_rank_0(run.world(),
                               run.is_rank_0() ? read_text_if_there(path, largest_order).value_or("") : "")};
}

}  // namespace

Run::Run(const Arguments& arguments, const Config& config, const OnRanks& on_ranks, const std::string& roll)
    : argc_(arguments.argc),
      argv_(arguments.argv),
      roll_(roll),
      injections_(arguments.injections),
      open_(arguments.open),
      was_searched_(is_searched(config, arguments.open)),
      watchdog_(armed_watchdog(config, roll, start_ns_)),
      session_(argc_, argv_),
      config_(on_ranks(agreed(config), world())) {
  set_log_rank(session_.rank());
  set_log_mark((row_of(config_.device.kind).computes ? "" : "emulated: ") +
               (injections_.empty() ? "" : "injected " + text_of(injections_) + ": "));
  watchdog_->begin_wait("all ranks to say where they run", now_ns());
  find_places(1);
  watchdog_->end_wait();
}

Run::~Run() {
  watchdog_->arm(config_.watchdog.start, "end", "watchdog.start");
  worker_.reset();
  watchdog_->begin_wait("all ranks to end (MPI_Finalize)", now_ns());
}

const Config& Run::agreed(const Config& given) {
  watchdog_->begin_wait("all ranks to compare their settings", now_ns());
  require_same_settings(world(), given, text_of(injections_), open_);
  return given;
}

void Run::find_places(int threads) {
  places_ = all_places(session_.world(), place_of_this_rank(threads));
  if (roll_.empty()) return;
  std::vector<std::string> where;
  for (const RankPlace& place : places_)
    where.push_back(fmt::format(" on {} (process {})", place.host, place.process));
  watchdog_->call_roll_in(roll_, where);
}

double step_limit(double said, double median_seconds, double seconds_on_paper) {
  if (said > 0) return said;
  return std::max(300.0, median_seconds > 0 ? 10 * median_seconds : 30 * seconds_on_paper);
}

double Run::step_limit(double median_seconds) const {
  return mindpipe::step_limit(config_.watchdog.step, median_seconds,
                              static_cast<double>(worker_->plan().expected().step) * 1e-9);
}

int Run::threads() const {
  return config_.device.threads > 0 ? config_.device.threads : fair_threads(places_, session_.rank());
}

void Run::make_worker(Purpose purpose, std::int64_t batches, const MakeBackend& make) {
  Config mine = config_;
  mine.device.threads = threads();
  const bool on_host = row_of(mine.device.kind).memory == Memory::Kind::host;
  if (on_host) require_sensible(mine.device.threads, places_[session_.rank()]);
  const bool searches = purpose == Purpose::training && mine.schedule.kind == ScheduleKind::searched;
  RunPlan plan = make_run_plan(mine, purpose, {}, batches, {}, searches ? known_order(*this) : KnownOrder{});
  require_stashes(plan, mine.train.swap);
  if (on_host) {
    const bool crowded = plan.copies_state &&
                         !fits_here(plan, neighbours(places_, session_.rank(), config_.grid), memory_here());
    if (any_rank(world(), crowded)) plan.save_without_copy();
    require_fit_here(plan, neighbours(places_, session_.rank(), config_.grid), memory_here());
  }
  worker_ = std::make_unique<Worker>(mine, world(), std::move(plan), make, make_transports, watchdog_.get());
  // Each rank looks at its own files: nodes may have others at one path.
  arithmetic_.emplace(mine, worker_->backend().description(), inputs_of(mine, beginning_));
  require_same_arithmetic(world(), *arithmetic_);
  find_places(worker_->threads());
  worker_->waiting().set_crowded(is_crowded(places_, session_.rank()));
  if (!is_rank_0()) return;
  const Worker& w = *worker_;
  info("{}: {} parameters on {}; {}", config_.model.kind, w.plan().parameters, to_string(w.layout().grid),
       worker_->backend().description());
  info("arithmetic: {} (equal names and courses, equal bits)", arithmetic_->name());
  if (const std::string& carrier = worker_->wiring().carrier.why; !carrier.empty())
    info("messages between ranks: {}", carrier);
  info("logical shards: tensor {}, data {} (reproducible); schedule {}; {} blocks cut at {}",
       w.layout().tensor_shards, w.layout().data_shards, config_.schedule.kind,
       w.plan().outline.blocks.size(), joined(w.plan().outline.first_block));
  if (searches)
    info("order of passes: {}", w.plan().training.found_order.empty()
                                    ? "that of " + config_.run.dir + "/" + passes_file
                                    : std::string("searched"));
  if (w.plan().copy_left_out > 0)
    info("training waits for each checkpoint: a copy of the state would take {} more memory of a rank",
         human_bytes(static_cast<double>(w.plan().copy_left_out)));
  const std::string affinity = affinity_report(places_);
  std::size_t begin = 0;
  while (begin < affinity.size()) {
    const std::size_t end = affinity.find('\n', begin);
    info("{}", affinity.substr(begin, end - begin));
    begin = end == std::string::npos ? affinity.size() : end + 1;
  }
}

}  // namespace mindpipe
