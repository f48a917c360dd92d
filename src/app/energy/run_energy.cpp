#include "app/energy/run_energy.h"

#include "app/run/json_read.h"
#include "app/verbs/main_verb.h"
#include "comm/gather_bytes.h"
#include "config/config.h"
#include "config/models/trained_word.h"
#include "core/input_file.h"
#include "core/log.h"
#include "core/log_mark.h"
#include "core/text.h"
#include "plan/cost_model.h"

namespace mindpipe {
namespace {

constexpr std::int64_t shortest_window_ns = 2'000'000'000;
/// Counters move in steps: nothing is claimed for less.
constexpr std::int64_t shortest_claim_ns = 1'000'000'000;

constexpr std::string_view unfinished = "\"run_unfinished_starts\": ";

/// The text of energy.json with another number of starts that did not come to their end.
std::string with_unfinished(const std::string& text, std::int64_t starts) {
  const std::size_t at = text.find(unfinished), first = text.find('{');
  const std::string said = std::string(unfinished) + std::to_string(starts);
  if (first == std::string::npos) return "{" + said + "}\n";
  if (at == std::string::npos) return text.substr(0, first + 1) + said + ", " + text.substr(first + 1);
  const std::size_t end = text.find_first_not_of("0123456789", at + unfinished.size());
  return text.substr(0, at) + said + text.substr(end);
}

}  // namespace

std::unique_ptr<RunEnergy> make_run_energy(Worker& worker, const std::vector<RankPlace>& places,
                                           RunDirectory* directory, std::int64_t begun) {
  const EnergyConfig& energy = worker.config().energy;
  if (energy.meter == EnergyMeter::none && !energy.cap) return nullptr;
  const World& world = worker.world();
  const JobNode node = node_of_rank(world, places, gpu_of_rank(worker.config().device, places, world.rank));
  if (energy.cap) say_caps(world, energy, places, node);
  if (energy.meter == EnergyMeter::none) return nullptr;
  return std::make_unique<RunEnergy>(worker, places, node, directory, begun);
}

RunEnergy::RunEnergy(Worker& worker, const std::vector<RankPlace>& places, const JobNode& node,
                     RunDirectory* directory, std::int64_t begun)
    : worker_(worker),
      directory_(directory),
      leader_(node.leader),
      ranks_here_(static_cast<int>(node.ranks.size())),
      begun_(begun) {
  if (reads()) open_meters(places, node);
  work_.add({begin_ns_, 0});
}

/// Takes over what energy.json says of earlier starts.
void RunEnergy::begin() {
  if (directory_ == nullptr) return;
  const std::string path = directory_->path_of("energy.json");
  said_before_ = read_text_if_there(path, largest_status).value_or("");
  const std::optional<JsonMembers> said = read_json(said_before_);
  if (!said) said_before_.clear();
  JsonMembers before = said.value_or(JsonMembers{});
  earlier_.joules = before.numbers["run_joules"];
  earlier_.is_estimated = before.integers["run_is_estimated"] != 0;
  earlier_.unfinished_starts = before.integers["run_unfinished_starts"];
  earlier_.missing_steps = before.integers["run_missing_steps"] +
                           std::max<std::int64_t>(0, begun_ - before.integers["run_through"]);
  replace_file(path, with_unfinished(said_before_, earlier_.unfinished_starts + 1));
}

void RunEnergy::open_meters(const std::vector<RankPlace>& places, const JobNode& node) {
  OpenedMeters opened = mindpipe::open_meters(worker_.config().energy, worker_.config().device, node);
  std::vector<std::string> names;
  for (const auto& meter : opened.meters) names.push_back(meter->describe());
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
  reader_ = reader_of(std::move(opened.meters), node, places);
}

void RunEnergy::look() {
  const std::int64_t now = now_ns(),
                     busy = worker_.training().spent.work() + worker_.forwards().script().spent.work();
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
  mine.spent = worker_.executor().spent(worker_.training());
  mine.evaluated = worker_.executor().spent(worker_.forwards().script());
  if (reader_) {
    reader_->stop();
    mine.metered = reader_->newest().ns - begin_ns_ >= shortest_claim_ns;
    if (!mine.metered)
      words_ = "meters were read for less than a second: estimated from busy and waiting seconds\n";
    mine.shared = reader_->shared();
    mine.divided = reader_->divided();
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
  if (worker_.world().rank != 0) return;
  if (trained == 0) {
    if (directory_ != nullptr)
      replace_file(directory_->path_of("energy.json"),
                   with_unfinished(said_before_, earlier_.unfinished_starts));
    return;
  }
  const RunPlan& plan = worker_.plan();
  const Config& config = worker_.config();
  const Powers estimate = estimated_powers(device_on_paper(config), worker_.threads());
  const EnergyAccount account = account_of(ranks, worker_.layout().grid, estimate);
  for (const std::string& trouble : account.troubles) warning("energy: {}", trouble);
  EnergyCounts counts{trained, config.train.batch * trained,
                      config.train.batch * plan.counted.of_sample * trained, std::string(plan.counted.what),
                      earlier_};
  counts.trained = trained_word(config.model);
  counts.run.joules += account.joules;
  counts.run.is_estimated = account.estimated || earlier_.is_estimated;
  counts.run.through = begun_ + trained;
  const SlackAdvice advice = slack_advice(plan, account, ranks, worker_.layout().grid, estimate);
  print(marked(energy_text(config.energy, account, counts) + slack_text(advice)));
  if (directory_ != nullptr)
    replace_file(directory_->path_of("energy.json"), energy_json(config.energy, account, counts, advice));
}

}  // namespace mindpipe
