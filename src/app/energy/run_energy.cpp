#include "app/energy/run_energy.h"

#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "app/energy/energy_text.h"
#include "app/run/json_read.h"
#include "app/verbs/main_verb.h"
#include "comm/gather_bytes.h"
#include "core/input_file.h"
#include "core/log.h"
#include "core/log_mark.h"
#include "core/text.h"
#include "energy/nvml.h"
#include "energy/powercap.h"
#include "plan/cost_model.h"

namespace mindpipe {
namespace {

constexpr std::int64_t shortest_window_ns = 2'000'000'000;
/// Counters move in steps: nothing is claimed for less.
constexpr std::int64_t shortest_claim_ns = 1'000'000'000;

Script& script_of(Worker& worker) {
  return worker.subnets() != nullptr ? worker.subnets()->script() : worker.training();
}

/// What energy.json says of earlier starts.
JsonMembers said_before(const std::string& path) {
  return read_json(read_text_if_there(path, largest_status).value_or("")).value_or(JsonMembers{});
}

/// Meters of a node, and why others are not among them.
struct Opened {
  std::vector<std::unique_ptr<Meter>> meters;
  std::string left_out;
};

Opened open_all(const Config& config, int ranks_here) {
  const EnergyMeter wanted = config.energy.meter;
  const bool automatic = wanted == EnergyMeter::automatic, on_gpu = config.device.kind == DeviceKind::cuda;
  Opened opened;
  if (wanted == EnergyMeter::estimate || (automatic && !row_of(config.device.kind).computes)) return opened;
  const auto take = [&](std::unique_ptr<Meter> meter, const std::string& why, bool refuses) {
    MP_REQUIRE(meter || !refuses, Exit::bad_configuration,
               "energy.meter is {}: {} (energy.meter=estimate goes by busy and waiting time)", wanted, why);
    if (meter) opened.meters.push_back(std::move(meter));
    else opened.left_out += (opened.left_out.empty() ? "" : "; ") + why;
  };
  std::string why;
  if (wanted == EnergyMeter::nvml || (automatic && on_gpu)) {
    const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
    auto gpus = Nvml::open("libnvidia-ml.so.1", {visible == nullptr ? "" : visible, ranks_here}, why);
    take(std::move(gpus), why, !automatic);
    if (automatic && opened.meters.empty()) return opened;  // processors alone are a small part of it
  }
  if (wanted == EnergyMeter::rapl || automatic) {
    auto processors = Powercap::open(config.energy.powercap, why);
    take(std::move(processors), why, !automatic);
  }
  return opened;
}

}  // namespace

std::unique_ptr<RunEnergy> make_run_energy(Worker& worker, const std::vector<RankPlace>& places,
                                           RunDirectory* directory, bool goes_on) {
  if (worker.config().energy.meter == EnergyMeter::none) return nullptr;
  return std::make_unique<RunEnergy>(worker, places, directory, goes_on);
}

RunEnergy::RunEnergy(Worker& worker, const std::vector<RankPlace>& places, RunDirectory* directory,
                     bool goes_on)
    : worker_(worker), directory_(directory) {
  const auto here = [&](int rank) {
    return std::strcmp(places[rank].host, places[worker_.world().rank].host) == 0;
  };
  leader_ = -1;
  for (int rank = 0; rank < static_cast<int>(places.size()); ++rank)
    if (here(rank)) {
      if (leader_ < 0) leader_ = rank;
      ++ranks_here_;
    }
  if (directory != nullptr && goes_on) {
    JsonMembers before = said_before(directory->path_of("energy.json"));
    earlier_joules_ = before.numbers["run_joules"];
    earlier_was_estimated_ = before.integers["run_is_estimated"] != 0;
  }
  if (reads()) open_meters(places);
  work_.add({begin_ns_, 0});
}

void RunEnergy::open_meters(const std::vector<RankPlace>& places) {
  const Config& config = worker_.config();
  Opened opened = open_all(config, ranks_here_);
  std::vector<std::string> names;
  for (const auto& meter : opened.meters) {
    names.push_back(meter->describe());
    if (!config.energy.cap) continue;
    const std::vector<std::string> caps = meter->caps();
    info("power that is allowed here: {}", caps.empty() ? "no limit is said" : join(caps, "; "));
  }
  if (config.energy.cap && opened.meters.empty())
    info("power that is allowed here is not known: no meter is open (energy.meter)");
  if (!names.empty()) words_ = "metered: " + join(names, ", ") + "\n";
  if (!opened.left_out.empty()) {
    if (worker_.world().rank == 0)
      info("energy: {}: {}", names.empty() ? "estimated from busy and waiting time" : "not all is metered",
           opened.left_out);
    words_ += "not metered: " + opened.left_out + "\n";
  }
  if (opened.meters.empty()) {
    words_ += "estimated from busy and waiting seconds\n";
    return;
  }
  NodeReader::Sharing sharing;
  cpu_set_t processors{};
  for (const RankPlace& place : places)
    if (std::strcmp(place.host, places[leader_].host) == 0) {
      sharing.processes.push_back(place.process);
      CPU_OR(&processors, &processors, &place.processors);
    }
  sharing.job_processors = CPU_COUNT(&processors);
  sharing.node_processors = places[leader_].processors_there;
  sharing.idle_watts = estimated_powers("core", sharing.node_processors).idle;
  reader_ = std::make_unique<NodeReader>(std::move(opened.meters), std::move(sharing));
}

void RunEnergy::look() {
  const std::int64_t now = now_ns(),
                     busy = script_of(worker_).spent.work() + worker_.forwards().script().spent.work();
  const bool is_kept = work_.add({now, static_cast<double>(busy) * 1e-9});
  if (!reader_ || !is_kept || now - window_ns_ < shortest_window_ns) return;
  reader_->begin_window();
  window_ns_ = now;
}

void RunEnergy::add_to(JsonLine& line, std::int64_t done) {
  if (!reader_ || ranks_here_ != worker_.world().size || reader_->shared()) return;
  const EnergyPoint newest = reader_->newest();
  const std::int64_t now = now_ns();
  if (told_done_ >= 0 && newest.ns - told_.ns < shortest_claim_ns) return;
  if (told_done_ >= 0 && done > told_done_) {
    // The newest reading is not of this moment: its watts hold for the time that the steps took.
    const double share = static_cast<double>(now - told_at_ns_) / static_cast<double>(newest.ns - told_.ns);
    line.add("joules", share * (newest.joules - told_.joules) / static_cast<double>(done - told_done_));
  }
  told_ = newest;
  told_at_ns_ = now;
  told_done_ = done;
}

RankEnergy RunEnergy::mine() {
  RankEnergy mine;
  mine.leader = leader_;
  mine.begin_ns = begin_ns_;
  mine.spent = worker_.executor().spent(script_of(worker_));
  mine.evaluated = worker_.executor().spent(worker_.forwards().script());
  if (reader_) {
    reader_->stop();
    mine.metered = reader_->newest().ns - begin_ns_ >= shortest_claim_ns;
    if (!mine.metered)
      words_ = "meters were read for less than a second: estimated from busy and waiting seconds\n";
    mine.shared = reader_->shared();
    mine.joules = reader_->newest().joules;
    mine.reader_seconds = reader_->own_seconds();
    mine.energy = reader_->points();
    for (const std::string& trouble : reader_->troubles()) mine.troubles += trouble + "\n";
  }
  mine.end_ns = now_ns();
  mine.work = work_.points();
  mine.work.push_back({mine.end_ns, mine.busy_seconds()});
  mine.words = words_;
  return mine;
}

void RunEnergy::report(std::int64_t trained) {
  std::vector<RankEnergy> ranks;
  for (const std::vector<std::byte>& bytes : gather_bytes(worker_.world(), packed(mine())))
    ranks.push_back(unpacked(bytes));
  if (worker_.world().rank != 0 || trained == 0) return;
  const RunPlan& plan = worker_.plan();
  const Config& config = worker_.config();
  const Powers estimate = estimated_powers(device_on_paper(config), worker_.threads());
  const EnergyAccount account = account_of(ranks, worker_.layout().grid, estimate);
  for (const std::string& trouble : account.troubles) warning("energy: {}", trouble);
  const EnergyCounts counts{trained,
                            config.train.batch * trained,
                            config.train.batch * plan.counted.of_sample * trained,
                            std::string(plan.counted.what),
                            account.joules + earlier_joules_,
                            account.estimated || earlier_was_estimated_};
  print(marked(energy_text(config, account, counts) +
               slack_text(plan, account, ranks, worker_.layout().grid, estimate)));
  if (directory_ != nullptr)
    replace_file(directory_->path_of("energy.json"), energy_json(config, account, counts));
}

}  // namespace mindpipe
