#include "runtime/trace_form.h"

#include <fmt/ranges.h>

#include <type_traits>
#include <utility>

#include "core/crc32c.h"

namespace mindpipe {
namespace trace_form {
namespace {

/// Calls visit(name, field) for each number of an action, in the order of the file.
template <class AnAction, class Visit>
void each_field(AnAction& action, Visit visit) {
  visit("kind", action.kind);
  visit("queue", action.queue);
  visit("group", action.group);
  visit("payload", action.payload);
  visit("waits", action.waits);
  visit("clears", action.clears);
  visit("fold", action.fold);
  visit("owner", action.owner.of);
  visit("number", action.owner.number);
  visit("shard", action.shard);
  visit("micro_batch", action.micro_batch);
  visit("chunk", action.chunk);
  visit("first", action.first);
  visit("last", action.last);
  visit("unit", action.unit);
  visit("peer", action.peer);
  visit("part", action.part);
  visit("parts", action.parts);
  visit("tape", action.tape);
  visit("waiting", action.waiting);
  visit("from_buffer", action.from_buffer);
  visit("to_buffer", action.to_buffer);
  visit("slab", action.slab);
  visit("apart", action.apart);
  visit("sums", action.sums);
  visit("bytes", action.bytes);
  visit("ticket", action.ticket);
}

template <class Field>
constexpr std::int64_t kinds_of() {
  if constexpr (ListedKind<Field>) return std::ssize(rows_of(Field{}));
  else if constexpr (std::is_same_v<Field, Owner::Of>) return Owner::kinds;
  else return wait_reasons;
}

std::vector<std::string> field_names() {
  std::vector<std::string> names;
  const Action action;
  each_field(action, [&](const char* name, const auto&) { names.emplace_back(name); });
  return names;
}

}  // namespace

std::string fields() { return fmt::format("{}", fmt::join(field_names(), " ")); }

int field_count() {
  static const int count = static_cast<int>(field_names().size());
  return count;
}

std::vector<TraceTensor> program_tensors(const StepTrace& trace) {
  const Program& program = trace.program;
  std::vector<TraceTensor> tensors;
  for (std::size_t list = 0; list < program.ranks.size(); ++list) {
    TraceTensor lines{.name = fmt::format("program.{}", list)}, after{.name = fmt::format("after.{}", list)};
    for (std::size_t index = 0; index < program.ranks[list].size(); ++index) {
      const Action& action = program.ranks[list][index];
      each_field(action, [&](const char*, const auto& field) {
        lines.numbers.push_back(static_cast<std::int64_t>(field));
      });
      for (const int earlier : action.after) {
        after.numbers.push_back(static_cast<std::int64_t>(index));
        after.numbers.push_back(earlier);
      }
    }
    lines.shape = {std::ssize(program.ranks[list]), field_count()};
    after.shape = {std::ssize(after.numbers) / 2, 2};
    tensors.push_back(std::move(lines));
    tensors.push_back(std::move(after));
    tensors.push_back({fmt::format("paper.{}", list), {std::ssize(trace.paper[list])}, trace.paper[list]});
  }
  return tensors;
}

std::vector<TraceTensor> rank_tensors(const RankTimes& times, int rank) {
  const auto named = [&](const char* name) { return TraceTensor{.name = fmt::format("{}.{}", name, rank)}; };
  TraceTensor rows = named("times"), sums = named("sums"), host = named("host"), pings = named("pings");
  for (std::size_t step = 0; step < times.steps.size(); ++step) {
    for (const Recorder::Times& action : times.steps[step])
      rows.numbers.insert(rows.numbers.end(), {action.start, action.end});
    for (const TracedSum& sum : times.sums[step])
      sums.numbers.insert(sums.numbers.end(),
                          {static_cast<std::int64_t>(step), sum.action, sum.operation, sum.start, sum.end});
  }
  for (const HostCounts& step : times.host)
    host.numbers.insert(host.numbers.end(),
                        {step.run_delay, step.switches, step.faults, step.migrations, step.outside});
  for (const Ping& ping : times.pings)
    pings.numbers.insert(pings.numbers.end(), {ping.asked, ping.heard, ping.answered, ping.back});
  const std::int64_t steps = std::ssize(times.steps);
  rows.shape = {steps, steps == 0 ? 0 : std::ssize(times.steps.front()), 2};
  sums.shape = {std::ssize(sums.numbers) / 5, 5};
  host.shape = {std::ssize(times.host), host_counts};
  pings.shape = {std::ssize(times.pings), ping_times};
  return {std::move(rows), std::move(sums), std::move(host), std::move(pings)};
}

std::string checksum(const std::map<std::string, std::string>& metadata) {
  std::string all;
  for (const auto& [key, text] : metadata)
    if (key != "checksum") all += fmt::format("{} {} {}\n", key, text.size(), text);
  return fmt::format("{:08x}", crc32c(all.data(), all.size()));
}

std::map<std::string, std::string> metadata(const StepTrace& trace,
                                            const std::map<std::string, std::uint32_t>& crcs) {
  std::string sums;
  for (const auto& [name, crc] : crcs) sums += fmt::format("{}:{:08x} ", name, crc);
  std::map<std::string, std::string> metadata{
      {"format", "mindpipe step trace"},
      {"version", version},
      {"maker", trace.maker},
      {"device", trace.device},
      {"prices", std::string(trace.is_priced ? priced : described)},
      {"injected", trace.injected},
      {"of", std::string(trace.of_subnets ? of_subnets : of_steps)},
      {"configuration", trace.configuration},
      {"grid", fmt::format("{} {} {} {}", trace.grid.supernet, trace.grid.pipeline, trace.grid.data,
                           trace.grid.tensor)},
      {"steps", fmt::format("{}", fmt::join(trace.steps, " "))},
      {"hosts", fmt::format("{}", fmt::join(trace.hosts, " "))},
      {"ranks_per_node", std::to_string(trace.ranks_per_node)},
      {"operations", fmt::format("{}", fmt::join(trace.operations, "\n"))},
      {"part_bytes", std::to_string(trace.calls.part_bytes)},
      {"messages_of_parts",
       fmt::format("{} {} {}", trace.calls.of_sum, trace.calls.of_gather, trace.calls.of_move)},
      {"clock_bound", std::to_string(trace.clock_bound)},
      {"fields", fields()},
      {"crcs", sums}};
  metadata["checksum"] = checksum(metadata);
  return metadata;
}

bool read_action(const std::int64_t* line, Action& action) {
  bool sound = true;
  each_field(action, [&](const char*, auto& field) {
    using Field = std::remove_reference_t<decltype(field)>;
    const std::int64_t number = *line++;
    if constexpr (std::is_enum_v<Field>) sound = sound && number >= 0 && number < kinds_of<Field>();
    else if constexpr (std::is_same_v<Field, bool>) sound = sound && (number == 0 || number == 1);
    else sound = sound && std::in_range<Field>(number);
    if (sound) field = static_cast<Field>(number);
  });
  return sound;
}

}  // namespace trace_form

std::uint32_t TraceTensor::crc() const {
  return crc32c(numbers.data(), numbers.size() * sizeof numbers.front());
}

}  // namespace mindpipe
