#include "app/energy/run_energy.h"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "app/energy/energy_text.h"
#include "app/run/json_read.h"
#include "app/verbs/main_verb.h"
#include "comm/gather_bytes.h"
#include "core/log.h"
#include "core/log_mark.h"
#include "core/text.h"
#include "energy/nvml.h"
#include "energy/powercap.h"
#include "plan/cost_model.h"

namespace mindpipe {
namespace {

constexpr std::int64_t window_ns = 2'000'000'000;

Script& script_of(Run& run) {
  return run.trains_subnets() ? run.worker().subnets()->script() : run.worker().training();
}

/// Joules of earlier starts, which energy.json says.
double joules_before(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  const std::optional<JsonMembers> members = read_json(text.str());
  if (!members) return 0;
  const auto found = members->integers.find("run_joules");
  return found == members->integers.end() ? 0 : static_cast<double>(found->second);
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

std::unique_ptr<RunEnergy> make_run_energy(Run& run, RunDirectory* directory, bool goes_on) {
  if (run.config().energy.meter == EnergyMeter::none) return nullptr;
  return std::make_unique<RunEnergy>(run, directory, goes_on);
}

RunEnergy::RunEnergy(Run& run, RunDirectory* directory, bool goes_on)
    : run_(run), directory_(directory), work_(window_ns) {
  const std::vector<RankPlace>& places = run.places();
  const auto here = [&](int rank) {
    return std::strcmp(places[rank].host, places[run_.world().rank].host) == 0;
  };
  leader_ = -1;
  for (int rank = 0; rank < static_cast<int>(places.size()); ++rank)
    if (here(rank)) {
      if (leader_ < 0) leader_ = rank;
      ++ranks_here_;
    }
  if (directory != nullptr && goes_on) earlier_joules_ = joules_before(directory->path_of("energy.json"));
  if (reads()) open_meters();
  work_.add({begin_ns_, 0});
}

void RunEnergy::open_meters() {
  const Config& config = run_.config();
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
    if (run_.is_rank_0())
      info("energy: {}: {}", names.empty() ? "estimated from busy and waiting time" : "not all is metered",
           opened.left_out);
    words_ += "not metered: " + opened.left_out + "\n";
  }
  if (opened.meters.empty()) return;
  NodeReader::Sharing sharing;
  cpu_set_t processors{};
  const std::vector<RankPlace>& places = run_.places();
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
  const TimeSpent& spent = script_of(run_).spent;
  work_.add({now_ns(), static_cast<double>(spent.work()) * 1e-9});
}

void RunEnergy::add_to(JsonLine& line, std::int64_t done) {
  if (!reader_ || ranks_here_ != run_.world().size) return;
  const EnergyPoint newest = reader_->newest();
  constexpr std::int64_t shortest_ns = 1'000'000'000;
  if (told_done_ >= 0 && newest.ns - told_.ns < shortest_ns) return;
  if (told_done_ >= 0 && done > told_done_)
    line.add("joules", (newest.joules - told_.joules) / static_cast<double>(done - told_done_));
  told_ = newest;
  told_done_ = done;
}

RankEnergy RunEnergy::mine() {
  RankEnergy mine;
  mine.leader = leader_;
  mine.begin_ns = begin_ns_;
  mine.spent = run_.worker().executor().spent(script_of(run_));
  if (reader_) {
    reader_->stop();
    mine.metered = true;
    mine.shared = reader_->shared();
    mine.joules = reader_->newest().joules;
    mine.reader_seconds = reader_->own_seconds();
    mine.energy = reader_->points();
    for (const std::string& trouble : reader_->troubles()) words_ += trouble + "\n";
  }
  mine.end_ns = now_ns();
  mine.work = work_.points();
  mine.words = words_;
  return mine;
}

void RunEnergy::report(std::int64_t trained) {
  std::vector<RankEnergy> ranks;
  for (const std::vector<std::byte>& bytes : gather_bytes(run_.world(), packed(mine())))
    ranks.push_back(unpacked(bytes));
  if (!run_.is_rank_0() || trained == 0) return;
  const RunPlan& plan = run_.worker().plan();
  const Config& config = run_.config();
  const Powers estimate = estimated_powers(device_on_paper(config), run_.worker().threads());
  const EnergyAccount account = account_of(ranks, run_.worker().layout().grid, estimate);
  for (const std::string& word : account.words)
    if (!word.starts_with("metered: ") && !word.starts_with("not metered: ")) warning("energy: {}", word);
  const EnergyCounts counts{trained, config.train.batch * trained,
                            config.train.batch * plan.counted.of_sample * trained,
                            std::string(plan.counted.what), account.joules + earlier_joules_};
  print(marked(energy_text(config, account, counts) +
               slack_text(plan, account, ranks, run_.worker().layout().grid, estimate)));
  if (directory_ != nullptr)
    replace_file(directory_->path_of("energy.json"), energy_json(config, account, counts));
}

}  // namespace mindpipe
