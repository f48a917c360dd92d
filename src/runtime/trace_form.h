#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "io/safetensors.h"
#include "trace/step_trace.h"

namespace mindpipe {

/// A tensor of whole numbers in a trace's file.
struct TraceTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> numbers;
  std::uint32_t crc() const;
  TensorToStore stored() const { return {name, StoredType::i64, shape, numbers.data()}; }
};

/// What stands in the file `replay/trace.safetensors` of a run directory:
/// - `program.P` [actions, fields] and `after.P` [pairs, 2]: list P, a line for each action with the fields
///   that the metadata names, and which actions come after which;
/// - `paper.P` [actions]: what the actions of list P take on paper, in nanoseconds;
/// - `times.R` [steps, actions, 2]: when rank R began or posted each action, and when that ended;
/// - `sums.R` [sums, 5]: step (by its place), action, operation, start, end of rank R's tensor sums;
/// - `host.R` [steps, 5]: what the system counted of rank R in each step (HostCounts);
/// - `pings.R` [pings, 4]: when rank 0 asked rank R, which is the first on another host, when that heard and
///   answered, and when the answer was back.
/// All times are by the clock of their rank's host. The metadata says the rest, and the CRC of every tensor
/// and of itself.
namespace trace_form {

inline constexpr const char* version = "3";
/// Numbers of a line.
inline constexpr std::int64_t host_counts = 5, ping_times = 4;
/// Where prices on paper come from: from this machine, or from a description.
inline constexpr std::string_view priced = "measured", described = "described";

/// What a trace has: steps, or subnets as one step. A file that does not say it has steps.
inline constexpr std::string_view of_steps = "steps", of_subnets = "subnets";

/// "kind queue subnet ...": the fields of an action in their order.
std::string fields();
std::vector<TraceTensor> program_tensors(const StepTrace& trace);
/// The rows of one rank.
std::vector<TraceTensor> rank_tensors(const RankTimes& times, int rank);

/// The metadata of a trace. `crcs`: of every tensor, by name.
std::map<std::string, std::string> metadata(const StepTrace& trace,
                                            const std::map<std::string, std::uint32_t>& crcs);
/// The CRC of a file's metadata, without itself.
std::string checksum(const std::map<std::string, std::string>& metadata);

/// An action from a line of `program.P`; false where a field is out of its range.
bool read_action(const std::int64_t* line, Action& action);
int field_count();

}  // namespace trace_form

}  // namespace mindpipe
