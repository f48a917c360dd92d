#include "app/run/run_arithmetic.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "app/run/agreement.h"
#include "app/run/flags_CXX.h"
#include "app/run/run_inputs.h"
#include "config/config.h"
#include "config/settings.h"
#include "core/portable_math.h"
#include "core/sha256.h"

namespace mindpipe {
namespace {

/// What the code fixes. A test ties these numbers to the golden hashes: whoever moves a bit counts on.
constexpr std::pair<const char*, const char*> fixed_by_code[] = {
    {"rounding points", "1"}, {"random streams", "1"}, {"order of samples", "1"}, {"kernels by shape", "1"}};

/// Parts for what the compiler was told, one for all floors, or instruction sets, that were told the same.
std::vector<RunArithmetic::Part> parts_of_flags(bool on_gpu) {
  std::vector<RunArithmetic::Part> parts;
  for (const auto& [of, flags] : build::flags) {
    if (of == std::string_view("cuda_device") && !on_gpu) continue;
    const auto same = std::find_if(parts.begin(), parts.end(), [text = std::string(flags)](const auto& part) {
      return part.second == text;
    });
    if (same == parts.end()) parts.emplace_back(fmt::format("flags of {}", of), flags);
    else same->first += fmt::format(", {}", of);
  }
  return parts;
}

/// Whether bits follow the layout: a supernet's schedule that keeps no causal order.
bool follows_layout(const Config& config) {
  return row_of(config.schedule.kind).of_subnets && config.schedule.kind != ScheduleKind::causal;
}

/// Whether a setting of the layout chooses among a GPU's algorithms, of which others give other bits.
bool chooses_on_gpu(const std::string& key) {
  return key == "device.attention_workspace" || key == "device.attention_beyond" ||
         key == "device.reserved_multiprocessors";
}

/// Whether a setting of the layout says which subnet reads which version, where nothing else does.
bool moves_versions(const std::string& key) {
  return key.starts_with("grid.") || key.starts_with("schedule.") || key.starts_with("supernet.");
}

}  // namespace

RunArithmetic::RunArithmetic(const Config& given, const std::string& kernels, const std::string& inputs) {
  const bool on_gpu = row_of(given.device.kind).memory == Memory::Kind::device;
  parts_.emplace_back("kernels", arithmetic_of(kernels, given.train.precision));
  parts_.emplace_back("compiler", fmt::format("g++ {}", __VERSION__));
  for (Part& part : parts_of_flags(on_gpu)) parts_.push_back(std::move(part));
  parts_.emplace_back("functions of real numbers", fmt::format("{}", portable::version));
  for (const auto& [name, value] : fixed_by_code) parts_.emplace_back(name, value);
  if (on_gpu) parts_.emplace_back("orders of sums of the GPU's kernels", "3");
  std::istringstream lines(inputs);
  for (std::string line; std::getline(lines, line);)
    parts_.emplace_back(line.substr(0, line.find(": ")), line.substr(line.find(": ") + 2));
  Config config = given;
  for (const Setting& setting : settings_of(config)) {
    const bool counts = setting.role() == Setting::Role::arithmetic ||
                        (on_gpu && chooses_on_gpu(setting.key())) ||
                        (follows_layout(config) && moves_versions(setting.key()));
    if (!counts) continue;
    if (!counts_by_contents(setting.key())) parts_.emplace_back(setting.key(), setting.written());
  }
}

RunArithmetic::RunArithmetic(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t end = line.find(": ");
    const bool is_part = end != std::string::npos && text.find('\n') != std::string::npos;
    if (is_part) parts_.emplace_back(line.substr(0, end), line.substr(end + 2));
    else parts_.emplace_back("kernels", arithmetic_of(line, Precision::bf16));
  }
}

bool RunArithmetic::has(const std::string& part) const {
  return std::any_of(parts_.begin(), parts_.end(), [&](const Part& one) { return one.first == part; });
}

std::string RunArithmetic::text() const {
  std::string text;
  for (const auto& [name, value] : parts_) text += fmt::format("{}: {}\n", name, value);
  return text;
}

std::string RunArithmetic::name() const {
  const std::string all = text();
  Sha256 digest;
  digest.add(all.data(), all.size());
  return to_string(digest.end()).substr(0, 16);
}

std::string first_difference(const RunArithmetic& one, const RunArithmetic& other, const std::string& of_one,
                             const std::string& of_other, const RunArithmetic::Counts& counts) {
  const bool has_names = one.has_name() && other.has_name();
  // Parts of one name, sources of data for instance, are told apart by their turn.
  const auto value_of = [](const RunArithmetic& arithmetic, const std::string& name, std::size_t nth) {
    for (const auto& [part, value] : arithmetic.parts())
      if (part == name && nth-- == 0) return value;
    return std::string("not set");
  };
  for (const RunArithmetic* all : {&one, &other}) {
    std::map<std::string, std::size_t> turns;
    for (const auto& [name, value] : all->parts()) {
      if ((!has_names && name != "kernels") || (counts && !counts(name))) continue;
      const std::size_t nth = turns[name]++;
      const std::string a = value_of(one, name, nth), b = value_of(other, name, nth);
      if (a != b) return fmt::format("{} is {} {} and {} {}", name, a, of_one, b, of_other);
    }
  }
  return "";
}

}  // namespace mindpipe
