#include "app/run.h"

#include <algorithm>
#include <cstdlib>

#include "app/agreement.h"
#include "app/main_verb.h"
#include "core/launcher.h"
#include "core/log.h"
#include "core/log_mark.h"
#include "core/text.h"
#include "runtime/diagnose.h"

namespace mindpipe {

namespace {

Coord degrees_of(const Config& config) {
  return {config.grid.tensor, config.grid.data, config.grid.pipeline, config.grid.supernet};
}

/// The configuration with these degrees, or a refusal: what every run goes through before anything is
/// allocated.
Config on_grid(const Config& config, const Coord& shape) {
  Config known = config;
  known.grid = {shape.supernet, shape.pipeline, shape.data, shape.tensor};
  if (known.reproducible.tensor_follows) known.reproducible.tensor = 0;
  if (known.reproducible.data_follows) known.reproducible.data = 0;
  MP_REQUIRE(shape.supernet == 1, Exit::bad_configuration,
             "grid.supernet is {}, but a {} is one network (lanes train subnets of a supernet); set it to 1",
             shape.supernet, config.model.kind);
  known = resolve(known);
  require_grid(known);
  return known;
}

/// Whether a run could have this shape, by the very checks that it would meet. Memory takes a plan, so it is
/// not asked for ever.
GridFits fits(const Config& config) {
  return [config, plans_left = 12](const Coord& shape) mutable {
    try {
      const Config known = on_grid(config, shape);
      const std::int64_t limit = known.memory.device_limit;
      if (limit > 0 && plans_left-- > 0) require_fit(make_run_plan(known), limit);
      return limit == 0 || plans_left >= 0;
    } catch (const Error&) {
      return false;
    }
  };
}

/// What would do in place of a grid that was refused: others of so many ranks, or else the numbers of ranks
/// next to it that have one. Nothing where nothing would: then it is not the grid's fault.
std::string advice_instead(const Coord& wanted, int ranks, const GridFits& fits) {
  if (const std::vector<Coord> others = nearest_grids(wanted, ranks, fits); !others.empty())
    return fmt::format("; grids of {} ranks that fit: {}", ranks, to_string(others));
  constexpr int far = 64;
  std::string near;
  const auto is_one = [&](int number) {
    const std::vector<Coord> grids = nearest_grids(wanted, number, fits, 1);
    if (!grids.empty())
      near += fmt::format("{}{} ({})", near.empty() ? "" : " or ", number, to_string(grids.front()));
    return !grids.empty();
  };
  for (int fewer = ranks - 1; fewer >= std::max(1, ranks - far) && !is_one(fewer);) --fewer;
  for (int more = ranks + 1; more <= ranks + std::min(ranks, far) && !is_one(more);) ++more;
  return near.empty() ? "" : fmt::format("; no grid of {} ranks fits: start {}", ranks, near);
}

/// The same for a configuration that is refused before its grid is known.
std::string advice_instead(const std::string& file, std::vector<std::string> overrides, int ranks) {
  for (const char* degree : {"grid.supernet=1", "grid.pipeline=1", "grid.data=1", "grid.tensor=1"})
    overrides.emplace_back(degree);
  try {
    const Config any = read_config(file, overrides);
    return advice_instead(degrees_of(any), ranks, fits(any));
  } catch (const Error&) {
    return "";
  }
}

}  // namespace

Config read_for_ranks(const std::string& file, const std::vector<std::string>& overrides, int ranks) {
  try {
    return read_config(file, overrides);
  } catch (const Error& error) {
    if (ranks == 0) ranks = launch().ranks;
    if (error.code != Exit::bad_configuration || ranks < 2) throw;
    const std::string advice = advice_instead(file, overrides, ranks);
    if (advice.empty()) throw;
    fail(error.code, "{}{}", error.what(), advice);
  }
}

Config with_grid(const Config& config, int ranks) {
  const Coord shape = resolve_grid(degrees_of(config), ranks, fits(config));
  try {
    return on_grid(config, shape);
  } catch (const Error& error) {
    const std::string advice =
        error.code == Exit::bad_configuration ? advice_instead(shape, ranks, fits(config)) : "";
    if (advice.empty()) throw;
    fail(error.code, "{}{}", error.what(), advice);
  }
}

Config with_any_grid(const Config& given, int ranks) {
  Config config = given;
  ReproducibleConfig& shards = config.reproducible;
  shards = {std::max({1, shards.tensor, config.grid.tensor}), std::max({1, shards.data, config.grid.data})};
  Coord wanted = degrees_of(config);
  for (Axis axis : axes) wanted[axis] = std::max(1, wanted[axis]);
  if (num_ranks(wanted) == ranks) return with_grid(config, ranks);
  config.schedule = {};  // it divides training's work
  const std::vector<Coord> nearest = nearest_grids(wanted, ranks, fits(config), 1);
  MP_REQUIRE(!nearest.empty(), Exit::bad_configuration,
             "no grid of {} ranks fits this model, this batch and its logical shards (reproducible); start "
             "another number of ranks, one for "
             "instance",
             ranks);
  return on_grid(config, nearest.front());
}

int ranks_of_grid(const Config& config) {
  const GridConfig& g = config.grid;
  return std::max(1, g.supernet) * std::max(1, g.pipeline) * std::max(1, g.data) * std::max(1, g.tensor);
}

Run::Run(const Arguments& arguments, const Config& config, Config (*on_ranks)(const Config&, int),
         const std::string& roll)
    : argc_(arguments.argc),
      argv_(arguments.argv),
      roll_(roll),
      watchdog_(armed_watchdog(config, roll)),
      session_(argc_, argv_),
      config_(on_ranks(agreed(config), session_.size())) {
  set_log_rank(session_.rank());
  if (config_.device.kind == DeviceKind::emulated) set_log_mark("emulated: ");
  watchdog_->waits_for("all ranks to say where they run", now_ns());
  find_places(1);
  watchdog_->waits_for("");
}

Run::~Run() {
  watchdog_->arm(config_.watchdog.start, "end", "watchdog.start");
  worker_.reset();
  watchdog_->waits_for("all ranks to end (MPI_Finalize)", now_ns());
}

const Config& Run::agreed(const Config& given) {
  watchdog_->waits_for("all ranks to compare their settings", now_ns());
  require_same_settings(world(), given);
  return given;
}

std::unique_ptr<Watchdog> Run::armed_watchdog(const Config& config, const std::string& roll) const {
  auto watchdog = std::make_unique<Watchdog>(launch().rank);
  if (!roll.empty()) watchdog->call_roll_in(roll, std::vector<std::string>(launch().ranks));
  watchdog->arm(config.watchdog.start, "start", "watchdog.start");
  watchdog->waits_for("all ranks to begin (MPI_Init)", start_ns_);
  return watchdog;
}

void Run::find_places(int threads) {
  places_ = all_places(session_.world(), place_of_this_rank(threads));
  if (roll_.empty()) return;
  std::vector<std::string> where;
  for (const RankPlace& place : places_)
    where.push_back(fmt::format(" on {} (process {})", place.host, place.process));
  watchdog_->call_roll_in(roll_, where);
}

/// The ranks on this rank's machine, itself among them.
std::vector<Coord> Run::neighbours() const {
  std::vector<Coord> ranks;
  for (int rank = 0; rank < session_.size(); ++rank)
    if (std::string_view(places_[rank].host) == places_[session_.rank()].host)
      ranks.push_back(coord_at(degrees_of(config_), rank));
  return ranks;
}

double step_limit(double said, double median_seconds, double seconds_on_paper) {
  if (said > 0) return said;
  return std::max(300.0, median_seconds > 0 ? 10 * median_seconds : 30 * seconds_on_paper);
}

double Run::step_limit(double median_seconds) const {
  return mindpipe::step_limit(config_.watchdog.step, median_seconds,
                              static_cast<double>(worker_->plan().step.expected.step) * 1e-9);
}

double Run::evaluate(Corpus& corpus, double limit, const std::string& phase, const std::string& what) {
  const int batches = config_.train.evaluate_batches;
  return finite_loss(*worker_, corpus, batches, what, [&](int batch) {
    // Copies of the model have nothing to say to each other before the end, and first stages run ahead: all
    // come here, or who is missing is noticed after minutes, and by each at another time.
    std::vector<std::int64_t> here{1};
    if (batch > 0) worker_->sum_over_grid(here);
    watchdog_->arm(limit, fmt::format("batch {} of {} of {}", batch + 1, batches, phase), "watchdog.step");
  });
}

void Run::make_worker(Purpose purpose) {
  Config mine = config_;
  if (mine.device.threads == 0) mine.device.threads = fair_threads(places_, session_.rank());
  if (mine.device.kind == DeviceKind::cpu) require_sensible(mine.device.threads, places_[session_.rank()]);
  RunPlan plan = make_run_plan(mine, purpose);
  if (mine.device.kind == DeviceKind::cpu) require_fit_here(plan, neighbours(), memory_here());
  worker_ = std::make_unique<Worker>(mine, world(), std::move(plan), make_backend, make_transports,
                                     watchdog_.get());
  require_same_arithmetic(world(), worker_->backend().description(), mine.train.precision);
  find_places(worker_->threads());
  worker_->waiting().set_crowded(is_crowded(places_, session_.rank()));
  if (!is_rank_0()) return;
  const Worker& w = *worker_;
  info("{}: {} parameters on {}; {}", config_.model.kind, w.plan().parameters, to_string(w.layout().grid),
       worker_->backend().description());
  if (!w.carrier().empty()) info("messages between ranks: {}", w.carrier());
  info("logical shards: tensor {}, data {} (reproducible); schedule {}; {} blocks cut at {}",
       w.layout().tensor_shards, w.layout().data_shards, config_.schedule.kind,
       w.plan().outline.blocks.size(), joined(w.plan().first_block));
  const std::string affinity = affinity_report(places_);
  std::size_t begin = 0;
  while (begin < affinity.size()) {
    const std::size_t end = affinity.find('\n', begin);
    info("{}", affinity.substr(begin, end - begin));
    begin = end == std::string::npos ? affinity.size() : end + 1;
  }
}

Config on_paper(const Config& config, int ranks) {
  Config known = with_grid(config, ranks);
  const std::vector<RankPlace> places(std::min(ranks, 1024), place_of_this_rank(1));
  if (known.device.threads == 0) known.device.threads = fair_threads(places, 0);
  return known;
}

namespace {

std::string workspace_text(const RunPlan& plan, int threads) {
  std::string text = fmt::format(
      "\nworkspace per stage, with {} thread{} a rank "
      "(device.threads)\n{:<8}{:>13}{:>13}{:>13}{:>13}{:>13}{:>13}{:>13}\n",
      threads, threads == 1 ? "" : "s", "stage", "layers", "tensor sums", "zeros", "data sums", "products",
      "attention", "rotary");
  for (std::size_t rank = 0; rank < plan.rooms.size(); ++rank) {
    const RankFootprint& room = plan.rooms[rank];
    const Workspace& kernels = room.passes.backend;
    text += fmt::format("{:<8}", rank);
    for (std::size_t bytes :
         {room.passes.scratch, room.passes.exchange, room.passes.zeros,
          Reductions::parts_ahead * *std::max_element(room.reduction.begin(), room.reduction.end()),
          kernels.products, kernels.attention, kernels.rotary})
      text += fmt::format("{:>13}", human_bytes(static_cast<double>(bytes)));
    text += '\n';
  }
  return text;
}

}  // namespace

void dry_run(const Config& given, int ranks) {
  const Config config = on_paper(given, ranks);
  const RunPlan plan = make_run_plan(config);
  print(dry_run_text(config, plan));
  require_fit(plan, config.memory.device_limit);
}

std::string dry_run_text(const Config& config, const RunPlan& plan) {
  const int ranks = ranks_of_grid(config);
  CostModel measure(config, make_layout(config, {}));
  std::string text = fmt::format(
      "{}: {} parameters, {} blocks, {} rank{}; nothing was allocated\n\nblock                        "
      "parameters  stage  kept per "
      "micro-batch\n",
      config.model.kind, plan.parameters, plan.outline.blocks.size(), ranks, ranks == 1 ? "" : "s");
  bool shared = false;
  for (int b = 0; b < static_cast<int>(plan.outline.blocks.size()); ++b) {
    const Model::Block& block = measure.model().blocks()[b];
    std::int64_t parameters = 0;
    for (int unit : block.units) parameters += measure.model().units()[unit]->parameters();
    const bool shares = measure.stage().use_of(b, block.units[0]) > 0;
    shared = shared || shares;
    text += fmt::format("{:<28} {:>10}{} {:>5}  {:>10}\n", block.name, parameters, shares ? "*" : " ",
                        plan.outline.rank_of(plan.outline.chunk_of(b)),
                        human_bytes(static_cast<double>(plan.outline.blocks[b].saved)));
  }
  text += fmt::format("{}\nmemory per stage\n",
                      shared ? "(* with a table that an earlier block also uses)\n" : "");
  text += fmt::format("{:<8}", "stage");
  for (MemoryClass kind : memory_classes) text += fmt::format("{:>13}", name_of(kind));
  text += fmt::format("{:>13}\n", "total");
  for (std::size_t rank = 0; rank < plan.memory.size(); ++rank) {
    text += fmt::format("{:<8}", rank);
    std::int64_t total = 0;
    for (std::int64_t bytes : plan.most_memory(static_cast<int>(rank))) {
      text += fmt::format("{:>13}", human_bytes(static_cast<double>(bytes)));
      total += bytes;
    }
    text += fmt::format("{:>13}\n", human_bytes(static_cast<double>(total)));
    if (config.memory.device_limit > 0 && total > config.memory.device_limit)
      text += fmt::format("  does not fit into memory.device_limit ({})\n",
                          human_bytes(static_cast<double>(config.memory.device_limit)));
  }
  text += workspace_text(plan, config.device.threads);
  const ModelConfig& m = config.model;
  const double formula =
      6.0 * static_cast<double>(plan.parameters) + 6.0 * m.layers * m.width * config.data.sequence;
  text += fmt::format(
      "\noperations per token, forward and backward of the whole model: {:.4g} counted in its products, "
      "{:.4g} by 6N + 6Lhq\n",
      plan.operations_per_token, formula);
  return text;
}

}  // namespace mindpipe
