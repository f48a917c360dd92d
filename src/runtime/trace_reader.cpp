#include "runtime/trace_reader.h"

#include <algorithm>
#include <cstring>
#include <sstream>
#include <utility>

#include "core/check.h"
#include "runtime/trace_form.h"
#include "trace/clocks.h"
#include "trace/pauses.h"

namespace mindpipe {
namespace {

constexpr const char* remedy = "the run has to be traced again";

/// Numbers of a text that holds nothing else.
std::vector<std::int64_t> numbers_of(const std::string& text) {
  std::istringstream words(text);
  std::vector<std::int64_t> numbers;
  for (std::int64_t number = 0; words >> number;) numbers.push_back(number);
  return numbers;
}

std::vector<std::string> parts_of(const std::string& text, char between) {
  std::istringstream lines(text);
  std::vector<std::string> parts;
  for (std::string part; std::getline(lines, part, between);)
    if (!part.empty()) parts.push_back(part);
  return parts;
}

/// Reads one trace; every number is checked before it is used.
class TraceReading {
 public:
  /// `may_lack`: whether ranks may be missing.
  TraceReading(const std::string& path, bool may_lack) : file_(path), may_lack_(may_lack) {}

  StepTrace read() {
    check_metadata();
    read_head();
    const int lists = program_ranks(trace_.grid);
    for (int list = 0; list < lists; ++list) {
      read_list(list);
      read_paper(list);
    }
    const int ranks = num_ranks(trace_.grid);
    std::int64_t of_ranks = 0, missing = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      for (const char* name : {"times", "sums", "host", "pings"})
        of_ranks += file_.find(fmt::format("{}.{}", name, rank)) != nullptr ? 1 : 0;
      trace_.ranks.emplace_back();
      if (is_missing(rank)) {
        ++missing;
        continue;
      }
      read_rank(rank);
      read_host(rank);
    }
    require(std::ssize(file_.tensors()) == 3 * lists + of_ranks, "it has tensors of no rank");
    require(missing < ranks, "the times of all ranks are missing");
    return std::move(trace_);
  }

 private:
  void require(bool holds, const std::string& what) const {
    MP_REQUIRE(holds, Exit::bad_data, "{}: is no whole trace: {}; {}", file_.path(), what, remedy);
  }
  const std::string& text(const char* key) const {
    const auto found = file_.metadata().find(key);
    require(found != file_.metadata().end(), fmt::format("its metadata has no '{}'", key));
    return found->second;
  }

  void check_metadata() {
    const auto format = file_.metadata().find("format");
    MP_REQUIRE(format != file_.metadata().end() && format->second == "mindpipe step trace", Exit::bad_data,
               "{}: is not the trace of a training (replay/trace.safetensors of a run directory is one)",
               file_.path());
    MP_REQUIRE(text("version") == trace_form::version, Exit::bad_data,
               "{}: is a trace of version {}, and this program reads version {}; {} by this program",
               file_.path(), text("version"), trace_form::version, remedy);
    require(text("checksum") == trace_form::checksum(file_.metadata()),
            "the checksum of its metadata does not fit");
    require(text("fields") == trace_form::fields(), "its actions have other fields");
    for (const std::string& word : parts_of(text("crcs"), ' ')) {
      const std::size_t colon = word.rfind(':');
      if (colon != std::string::npos) crcs_[word.substr(0, colon)] = word.substr(colon + 1);
    }
  }

  void read_head() {
    const std::vector<std::int64_t> degrees = numbers_of(text("grid"));
    constexpr std::int64_t most = 1 << 20;
    require(degrees.size() == 4, "its grid has not four degrees");
    std::int64_t product = 1;
    for (const std::int64_t degree : degrees) {
      require(degree >= 1 && degree <= most && (product *= degree) <= most, "its grid cannot be");
    }
    trace_.grid = {static_cast<int>(degrees[3]), static_cast<int>(degrees[2]), static_cast<int>(degrees[1]),
                   static_cast<int>(degrees[0])};
    trace_.steps = numbers_of(text("steps"));
    require(!trace_.steps.empty(), "it has no steps");
    trace_.hosts = parts_of(text("hosts"), ' ');
    require(std::ssize(trace_.hosts) == product, "it does not name the host of each rank");
    read_nodes();
    trace_.operations = parts_of(text("operations"), '\n');
    read_calls();
    const std::vector<std::int64_t> bound = numbers_of(text("clock_bound"));
    require(bound.size() == 1 && bound.front() >= 0, "its clocks have no bound");
    trace_.clock_bound = bound.front();
    trace_.configuration = text("configuration");
    trace_.maker = text("maker");
    trace_.device = text("device");
    trace_.is_priced = text("prices") == trace_form::priced;
    trace_.injected = text("injected");
    const auto of = file_.metadata().find("of");
    trace_.of_subnets = of != file_.metadata().end() && of->second == trace_form::of_subnets;
    require(!trace_.of_subnets || trace_.steps.size() == 1, "its subnets are not one step");
    require(trace_.of_subnets || trace_.grid.supernet == 1, "its grid has lanes");
  }

  /// Older traces do not say which ranks of an imitated device share a node.
  void read_nodes() {
    const auto said = file_.metadata().find("ranks_per_node");
    if (said == file_.metadata().end()) return;
    const std::vector<std::int64_t> number = numbers_of(said->second);
    require(number.size() == 1 && number.front() >= 0 && std::in_range<int>(number.front()),
            "its nodes have no number of ranks");
    trace_.ranks_per_node = static_cast<int>(number.front());
  }

  /// Older traces do not say of how many messages transfers were made.
  void read_calls() {
    if (const auto part = file_.metadata().find("part_bytes"); part != file_.metadata().end()) {
      const std::vector<std::int64_t> bytes = numbers_of(part->second);
      require(bytes.size() == 1 && bytes.front() > 0, "parts of its messages have no length");
      trace_.calls.part_bytes = bytes.front();
    }
    if (const auto parts = file_.metadata().find("messages_of_parts"); parts != file_.metadata().end()) {
      const std::vector<std::int64_t> calls = numbers_of(parts->second);
      const auto can_be = [](std::int64_t count) { return count >= 1 && std::in_range<int>(count); };
      require(calls.size() == 3 && std::ranges::all_of(calls, can_be),
              "parts of its sums are of no messages");
      trace_.calls.of_sum = static_cast<int>(calls[0]);
      trace_.calls.of_gather = static_cast<int>(calls[1]);
      trace_.calls.of_move = static_cast<int>(calls[2]);
    }
  }

  /// The numbers of a tensor, whose last extents are as expected and whose CRC fits.
  std::vector<std::int64_t> numbers(const std::string& name, const std::vector<std::int64_t>& behind) const {
    const StoredTensor* tensor = file_.find(name);
    require(tensor != nullptr, fmt::format("'{}' is missing", name));
    require(tensor->type == StoredType::i64 && tensor->shape.size() >= behind.size() &&
                std::equal(behind.rbegin(), behind.rend(), tensor->shape.rbegin()),
            fmt::format("'{}' has another shape", name));
    TraceTensor read{.name = name, .shape = tensor->shape};
    read.numbers.resize(static_cast<std::size_t>(tensor->count()));
    if (!read.numbers.empty())
      std::memcpy(read.numbers.data(), file_.data(*tensor), read.numbers.size() * sizeof(std::int64_t));
    const auto crc = crcs_.find(name);
    require(crc != crcs_.end() && crc->second == fmt::format("{:08x}", read.crc()),
            fmt::format("the checksum of '{}' does not fit", name));
    file_.forget(*tensor);
    return std::move(read.numbers);
  }

  void read_list(int number) {
    const int fields = trace_form::field_count();
    const std::vector<std::int64_t> lines = numbers(fmt::format("program.{}", number), {fields});
    std::vector<Action>& list = trace_.program.ranks.emplace_back(lines.size() / fields);
    require(!list.empty(), fmt::format("list {} has no actions", number));
    for (std::size_t index = 0; index < list.size(); ++index) {
      Action& action = list[index];
      require(trace_form::read_action(&lines[index * fields], action) &&
                  (!is_message(action) || (action.peer >= 0 && action.peer < program_ranks(trace_.grid))),
              fmt::format("action {} of list {} cannot be", index, number));
    }
    const std::vector<std::int64_t> after = numbers(fmt::format("after.{}", number), {2});
    for (std::size_t pair = 0; pair + 1 < after.size(); pair += 2) {
      require(after[pair] >= 0 && after[pair] < std::ssize(list) && after[pair + 1] >= 0 &&
                  after[pair + 1] < after[pair],
              fmt::format("list {} has an action that comes after one behind it", number));
      list[after[pair]].after.push_back(static_cast<int>(after[pair + 1]));
    }
  }

  void read_paper(int number) {
    const std::int64_t actions = std::ssize(trace_.program.ranks[number]);
    trace_.paper.push_back(numbers(fmt::format("paper.{}", number), {actions}));
    require(std::all_of(trace_.paper.back().begin(), trace_.paper.back().end(),
                        [](std::int64_t time) { return time >= 0; }),
            fmt::format("list {} has an action that takes less than no time on paper", number));
  }

  /// Whether a rank's times are not in the file, or nothing but the zeros that it begins as.
  bool is_missing(int rank) const {
    const StoredTensor* times = file_.find(fmt::format("times.{}", rank));
    const auto is_zero = [](std::byte byte) { return byte == std::byte{0}; };
    const bool missing =
        times == nullptr ||
        (times->begin < times->end &&
         std::all_of(file_.data(*times), file_.data(*times) + (times->end - times->begin), is_zero));
    MP_REQUIRE(
        !missing || may_lack_, Exit::bad_data,
        "{}: is no whole trace: the times of rank {} are missing, so nothing can be said of who waited "
        "for whom; {}",
        file_.path(), rank, remedy);
    return missing;
  }

  void read_rank(int rank) {
    const std::int64_t actions = std::ssize(trace_.list(rank)), steps = std::ssize(trace_.steps);
    const std::vector<std::int64_t> rows = numbers(fmt::format("times.{}", rank), {steps, actions, 2});
    require(std::ssize(rows) == steps * actions * 2, fmt::format("'times.{}' has another shape", rank));
    RankTimes& times = trace_.ranks[rank];
    times.steps.assign(steps, std::vector<Recorder::Times>(actions));
    times.sums.resize(steps);
    std::size_t next = 0;
    for (auto& step : times.steps)
      for (Recorder::Times& action : step) {
        action = {rows[next], rows[next + 1]};
        next += 2;
        require(action.start > 0 && action.end >= action.start,
                fmt::format("rank {} has an action that ends before it begins", rank));
      }
    const std::vector<std::int64_t> sums = numbers(fmt::format("sums.{}", rank), {5});
    for (std::size_t at = 0; at + 4 < sums.size(); at += 5) {
      require(sums[at] >= 0 && sums[at] < steps && sums[at + 1] >= 0 && sums[at + 1] < actions &&
                  sums[at + 2] >= 0 && sums[at + 2] < std::ssize(trace_.operations) &&
                  sums[at + 4] >= sums[at + 3],
              fmt::format("rank {} has a tensor sum that cannot be", rank));
      times.sums[sums[at]].push_back(
          {static_cast<int>(sums[at + 1]), static_cast<int>(sums[at + 2]), sums[at + 3], sums[at + 4]});
    }
  }

  void read_host(int rank) {
    RankTimes& times = trace_.ranks[rank];
    const std::vector<std::int64_t> counts =
        numbers(fmt::format("host.{}", rank), {std::ssize(trace_.steps), trace_form::host_counts});
    for (std::size_t at = 0; at < counts.size(); at += trace_form::host_counts)
      times.host.push_back({counts[at], counts[at + 1], counts[at + 2], counts[at + 3], counts[at + 4]});
    require(std::ssize(times.host) == std::ssize(trace_.steps),
            fmt::format("'host.{}' has another shape", rank));
    const std::vector<std::int64_t> pings = numbers(fmt::format("pings.{}", rank), {trace_form::ping_times});
    for (std::size_t at = 0; at < pings.size(); at += trace_form::ping_times)
      times.pings.push_back({pings[at], pings[at + 1], pings[at + 2], pings[at + 3]});
  }

  SafetensorsFile file_;
  bool may_lack_;
  StepTrace trace_;
  std::map<std::string, std::string> crcs_;
};

}  // namespace

StepTrace read_step_trace(const std::string& path) { return TraceReading(path, false).read(); }

StepTrace read_partial_trace(const std::string& path) { return TraceReading(path, true).read(); }

StepTrace read_aligned_trace(const std::string& path) {
  StepTrace trace = read_step_trace(path);
  align_clocks(trace);
  leave_out_pauses(trace);
  return trace;
}

}  // namespace mindpipe
