#include "runtime/trace_writer.h"

#include <algorithm>
#include <optional>
#include <set>
#include <sstream>

#include "comm/gather_bytes.h"
#include "comm/text_of_rank_0.h"
#include "core/check.h"
#include "io/checked_writer.h"
#include "runtime/trace_form.h"

namespace mindpipe {
namespace {

/// How many tensor sums, and pings, a rank has.
struct RankCounts {
  std::int64_t sums = 0, pings = 0;
};

/// Gives tensor sums the numbers that all ranks give them, and says how much each rank has.
std::vector<RankCounts> agree_on_operations(const World& world, StepTrace& trace) {
  RankTimes& own = trace.ranks[world.rank];
  std::int64_t count = 0;
  for (const auto& step : own.sums) count += std::ssize(step);
  std::string told = fmt::format("{} {}\n", count, own.pings.size());
  for (const std::string& operation : trace.operations) told += operation + "\n";
  std::vector<RankCounts> counts;
  std::set<std::string> names;
  for (const std::string& of_rank : exchange_texts(world, told)) {
    std::istringstream lines(of_rank);
    std::string line;
    RankCounts& rank = counts.emplace_back();
    lines >> rank.sums >> rank.pings;
    std::getline(lines, line);
    while (std::getline(lines, line)) names.insert(line);
  }
  const std::vector<std::string> all(names.begin(), names.end());
  for (auto& step : own.sums)
    for (TracedSum& sum : step)
      sum.operation = static_cast<int>(
          std::lower_bound(all.begin(), all.end(), trace.operations[sum.operation]) - all.begin());
  trace.operations = all;
  return counts;
}

/// The CRCs of all tensors of the file, each rank's own from itself.
std::map<std::string, std::uint32_t> all_crcs(const World& world, const std::vector<TraceTensor>& mine) {
  std::string told;
  for (const TraceTensor& tensor : mine) told += fmt::format("{} {}\n", tensor.name, tensor.crc());
  std::map<std::string, std::uint32_t> crcs;
  for (const std::string& of_rank : exchange_texts(world, told)) {
    std::istringstream words(of_rank);
    std::string name;
    for (std::uint32_t crc = 0; words >> name >> crc;) crcs[name] = crc;
  }
  return crcs;
}

/// Descriptions of all tensors, in the order of the file.
std::vector<StoredTensor> describe(const StepTrace& trace, const std::vector<RankCounts>& counts) {
  std::vector<StoredTensor> described;
  const auto add = [&](const TraceTensor& tensor) {
    described.push_back({tensor.name, StoredType::i64, tensor.shape});
  };
  for (const TraceTensor& tensor : trace_form::program_tensors(trace)) add(tensor);
  for (int rank = 0; rank < static_cast<int>(counts.size()); ++rank) {
    add({fmt::format("times.{}", rank), {std::ssize(trace.steps), std::ssize(trace.list(rank)), 2}, {}});
    add({fmt::format("sums.{}", rank), {counts[rank].sums, 5}, {}});
    add({fmt::format("host.{}", rank), {std::ssize(trace.steps), trace_form::host_counts}, {}});
    add({fmt::format("pings.{}", rank), {counts[rank].pings, trace_form::ping_times}, {}});
  }
  return described;
}

}  // namespace

void exchange_lists(const World& world, StepTrace& trace) {
  const Coord own = coord_at(trace.grid, world.rank);
  std::string told;
  if (own.data == 0 && own.tensor == 0) {
    const int list = program_rank_at(trace.grid, own);
    StepTrace mine;
    mine.program.ranks = {trace.program.ranks[list]};
    mine.paper = {trace.paper[list]};
    for (const TraceTensor& tensor : trace_form::program_tensors(mine)) {
      told += std::to_string(tensor.numbers.size());
      for (const std::int64_t number : tensor.numbers) told += fmt::format(" {}", number);
      told += '\n';
    }
  }
  const std::vector<std::string> all = exchange_texts(world, told);
  for (int place = 0; place < program_ranks(trace.grid); ++place) {
    std::istringstream numbers(all[rank_that_runs(trace.grid, place)]);
    const auto next = [&] {
      std::size_t count = 0;
      numbers >> count;
      std::vector<std::int64_t> read(count);
      for (std::int64_t& number : read) numbers >> number;
      return read;
    };
    const std::vector<std::int64_t> lines = next(), after = next();
    const int fields = trace_form::field_count();
    std::vector<Action>& list = trace.program.ranks[place];
    list.assign(lines.size() / fields, {});
    for (std::size_t index = 0; index < list.size(); ++index)
      MP_CHECK(trace_form::read_action(&lines[index * fields], list[index]), "action {} of list {} cannot be",
               index, place);
    for (std::size_t pair = 0; pair + 1 < after.size(); pair += 2)
      list[after[pair]].after.push_back(static_cast<int>(after[pair + 1]));
    trace.paper[place] = next();
  }
}

std::string write_step_trace(const World& world, StepTrace trace, const std::string& path) {
  const std::vector<RankCounts> counts = agree_on_operations(world, trace);
  trace.hosts = exchange_texts(world, trace.hosts[world.rank]);
  std::vector<TraceTensor> mine = trace_form::rank_tensors(trace.ranks[world.rank], world.rank);
  if (world.rank == 0)
    for (TraceTensor& tensor : trace_form::program_tensors(trace)) mine.push_back(std::move(tensor));
  const auto crcs = all_crcs(world, mine);
  std::vector<StoredTensor> described = describe(trace, counts);
  // Ranks of two instruction sets have two configurations: rank 0's says where tensors begin.
  const std::string header =
      text_of_rank_0(world, safetensors_header(path, trace_form::metadata(trace, crcs), described));
  std::optional<NewFile> file;
  if (world.rank == 0) {
    file.emplace(path);
    file->write(header.data(), header.size());
    file->extend(static_cast<std::int64_t>(header.size() + described.back().end));
  }
  CheckedWriter writer(text_of_rank_0(world, file ? file->unfinished() : ""));
  for (const TraceTensor& tensor : mine) {
    const auto place = std::find_if(described.begin(), described.end(),
                                    [&](const StoredTensor& each) { return each.name == tensor.name; });
    writer.write(static_cast<std::int64_t>(header.size() + place->begin), tensor.numbers.data(),
                 static_cast<std::int64_t>(tensor.numbers.size() * sizeof(std::int64_t)));
  }
  for (const std::string& problem : exchange_texts(world, writer.problem()))
    if (!problem.empty()) return problem;
  if (file) file->commit();
  return "";
}

}  // namespace mindpipe
