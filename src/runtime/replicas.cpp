#include "runtime/replicas.h"

#include <algorithm>
#include <bit>
#include <set>
#include <sstream>
#include <tuple>
#include <utility>

#include "comm/text_of_rank_0.h"
#include "operations/element_hash.h"
#include "runtime/gather_texts.h"

namespace mindpipe {
namespace {

/// Whether a rank of a group comes with another number than this one. Two that differ always see it.
bool differs_over(Communicator& group, std::uint64_t mine) {
  std::int64_t sum = std::bit_cast<std::int64_t>(mine);
  group.sum_integers({&sum, 1}, TrafficClass::files);
  return std::bit_cast<std::uint64_t>(sum) != mine * static_cast<std::uint64_t>(group.size());
}

std::string text_of(const Replicas::Copy& copy) { return fmt::format("{} ({})", copy.rank, copy.host); }

}  // namespace

Replicas::Replicas(Worker& worker) : worker_(worker), states_(worker.residency().state_names()) {
  const int units = static_cast<int>(worker.stage().model().units().size());
  are_held_ = worker.group(Axis::data).size() > 1 || worker.group(Axis::tensor).size() > 1;
  for (int unit = 0; unit < units && !are_held_; ++unit) are_held_ = has_other_homes(unit);
}

void Replicas::add_parts(std::string_view state, int index) {
  const Unit& unit = worker_.stage().unit(index);
  const UnitOptimizer& share = worker_.residency().shares().of(index);
  const bool is_value = state == "value";
  if (!worker_.residency().newest(index, state)) return;
  const std::int64_t begin = is_value ? 0 : share.begin(), end = is_value ? unit.flat_count() : share.end();
  for (int p = 0; p < static_cast<int>(unit.params().size()); ++p)
    for (int shard = 0; shard < unit.local_shards(p); ++shard) {
      const std::int64_t offset = unit.flat_offset(p, shard), first = std::max(begin, offset),
                         last = std::min(end, offset + unit.shard_shape(p).count());
      if (first < last) parts_.push_back({state, index, p, shard, first, last - first});
    }
}

bool Replicas::is_alike_over_data(const Part& part) const {
  return worker_.group(Axis::data).size() > 1 &&
         (part.state == "value" || !worker_.residency().shares().is_sharded());
}

bool Replicas::is_alike_over_tensor(const Part& part) const {
  return worker_.group(Axis::tensor).size() > 1 &&
         worker_.stage().unit(part.unit).params()[part.param].split == Split::none;
}

/// A part that no other rank has is not read.
std::uint64_t Replicas::hash_of(const Part& part) const {
  if (!is_alike_over_data(part) && !is_alike_over_tensor(part) && !has_other_homes(part.unit)) return 0;
  const std::int64_t begin = part.state == "value" ? 0 : worker_.residency().shares().of(part.unit).begin();
  return worker_.backend().hash(
      worker_.residency().newest(part.unit, part.state).range(part.first - begin, part.count));
}

/// Compares the homes of units along one axis: ranks that are none add nothing.
bool Replicas::homes_differ(Communicator& group, const std::vector<std::uint64_t>& hashes) {
  if (group.size() == 1) return false;
  const std::size_t units = worker_.stage().model().units().size();
  std::vector<std::int64_t> numbers(2 * units, 0);
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (!has_other_homes(parts_[i].unit)) continue;
    const auto unit = static_cast<std::size_t>(parts_[i].unit);
    numbers[2 * unit] = 1;
    const std::uint64_t so_far = std::bit_cast<std::uint64_t>(numbers[2 * unit + 1]);
    numbers[2 * unit + 1] = std::bit_cast<std::int64_t>(element_hash(so_far, hashes[i]));
  }
  std::vector<std::int64_t> sums = numbers;
  group.sum_integers(sums, TrafficClass::files);
  bool differ = false;
  for (std::size_t unit = 0; unit < units; ++unit)
    differ = differ || (numbers[2 * unit] == 1 && std::bit_cast<std::uint64_t>(sums[2 * unit + 1]) !=
                                                      std::bit_cast<std::uint64_t>(numbers[2 * unit + 1]) *
                                                          static_cast<std::uint64_t>(sums[2 * unit]));
  return differ;
}

bool Replicas::differ(const std::vector<std::uint64_t>& hashes) {
  std::uint64_t over_data = 0, over_tensor = 0;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (is_alike_over_data(parts_[i])) over_data += element_hash(i, hashes[i]);
    if (is_alike_over_tensor(parts_[i])) over_tensor += element_hash(i, hashes[i]);
  }
  bool differ = differs_over(worker_.group(Axis::data), over_data);
  differ = differs_over(worker_.group(Axis::tensor), over_tensor) || differ;
  for (const Axis axis : {Axis::pipeline, Axis::supernet})
    differ = homes_differ(worker_.group(axis), hashes) || differ;
  return any_rank(worker_.world(), differ);
}

std::string Replicas::difference() {
  if (!are_held_) return "";
  worker_.settle();
  parts_.clear();  // blocks may have moved
  for (const std::string_view state : states_)
    for (const int unit : worker_.stage().local_units()) add_parts(state, unit);
  std::vector<std::uint64_t> hashes;
  for (const Part& part : parts_) hashes.push_back(hash_of(part));
  return differ(hashes) ? name_odd_ones(hashes) : "";
}

/// All ranks' hashes to all, which happens once in the life of a job.
std::string Replicas::name_odd_ones(const std::vector<std::uint64_t>& hashes) {
  const World& world = worker_.world();
  const Layout& layout = worker_.layout();
  std::string own = fmt::format("{} {}\n", world.rank, host_name());
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const Part& part = parts_[i];
    const Unit& unit = worker_.stage().unit(part.unit);
    const bool whole = unit.params()[part.param].split == Split::none;
    const auto state = std::find(states_.begin(), states_.end(), part.state) - states_.begin();
    own += fmt::format("{} {} {} {} {} {} {}\n", part.unit, part.param, state,
                       whole ? -1 : unit.shards().first + part.shard, part.first,
                       has_other_homes(part.unit) ? -1 : layout.program_rank(), hashes[i]);
  }
  // Tensor, state, shard, first element, and where a unit has one home that home.
  std::map<std::tuple<int, int, int, int, std::int64_t, int>, std::vector<Copy>> copies;
  std::string all;
  gather_texts(
      own + "\n", world.rank, world.size,
      [&](std::vector<std::int64_t>& numbers) {
        worker_.wiring().sum_over_grid(numbers, TrafficClass::files);
      },
      [&](const std::string& piece) { all += piece; });
  std::istringstream lines(all);
  Copy copy;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) {
      copy = {};
      continue;
    }
    std::istringstream words(line);
    if (copy.host.empty()) {
      words >> copy.rank >> copy.host;
      continue;
    }
    int unit = 0, param = 0, state = 0, shard = 0, home = 0;
    std::int64_t first = 0;
    words >> unit >> param >> state >> shard >> first >> home >> copy.hash;
    copies[{unit, param, state, shard, first, home}].push_back(copy);
  }
  // What goes wrong in a tensor reaches others with the next step.
  std::string found;
  std::set<std::pair<int, int>> tensors;
  for (const auto& [key, of_tensor] : copies) {
    const auto& [unit, param, state, shard, first, home] = key;
    const std::string tensor =
        fmt::format("{} ({})", tensor_name(*worker_.stage().model().units()[unit], param), states_[state]);
    const std::string differ = odd_ones(tensor, of_tensor);
    if (!differ.empty() && tensors.insert({unit, param}).second) found = differ;
  }
  MP_CHECK(!found.empty(), "ranks have found that copies differ, and no copy does");
  if (tensors.size() == 1) return found;
  return fmt::format(
      "{}; {} other tensors differ, too: a step has carried it on, and nobody knows which was first (a "
      "smaller guard.replicas_every names it better)",
      found, tensors.size() - 1);
}

std::string Replicas::odd_ones(const std::string& tensor, const std::vector<Copy>& copies) {
  std::map<std::uint64_t, std::vector<Copy>> alike;
  for (const Copy& copy : copies) alike[copy.hash].push_back(copy);
  if (alike.size() < 2) return "";
  std::size_t most = 0, with_most = 0;
  for (const auto& [hash, group] : alike) most = std::max(most, group.size());
  for (const auto& [hash, group] : alike) with_most += group.size() == most ? 1 : 0;
  std::string named;
  int count = 0;
  for (const Copy& copy : copies) {
    if (with_most == 1 && alike.at(copy.hash).size() == most) continue;
    named += (named.empty() ? "" : ", ") + text_of(copy);
    ++count;
  }
  if (with_most > 1)
    return fmt::format("ranks {} hold different copies of {}, and none is that of most", named, tensor);
  return fmt::format("{} {} {} another copy of {} than the other {}", count == 1 ? "rank" : "ranks", named,
                     count == 1 ? "holds" : "hold", tensor, copies.size() - static_cast<std::size_t>(count));
}

}  // namespace mindpipe
