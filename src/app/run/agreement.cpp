#include "app/run/agreement.h"

#include <sstream>

#include "app/run/version.h"
#include "comm/text_of_rank_0.h"
#include "config/config.h"
#include "config/settings.h"
#include "core/check.h"
#include "core/input_file.h"

namespace mindpipe {
namespace {

/// What a file holds that is an input of the arithmetic; nothing where none is named.
std::string contents_of(const std::string& file) {
  constexpr std::int64_t most = std::int64_t{16} << 20;
  return file.empty() ? "" : read_text_if_there(file, most).value_or("");
}

/// A line for each setting, "grid.tensor is 2". Ranks may differ in threads, and in instructions of one
/// class, which require_same_arithmetic sees.
std::string text_of(Config config, const std::set<std::string>& open) {
  config.device.threads = 0;
  config.device.instructions = "auto";
  std::string text;
  for (const Setting& setting : settings_of(config))
    text +=
        fmt::format("{} is {}\n", setting.key(), open.count(setting.key()) > 0 ? "auto" : setting.written());
  return text;
}

/// "grid.data is 1 here and 2 on rank 0, ...": the first that differ, of texts with the same keys.
std::string difference(const std::string& here, const std::string& there) {
  constexpr int most = 3;
  std::istringstream mine(here), other(there);
  std::string text, a, b;
  int found = 0;
  while (std::getline(mine, a) && std::getline(other, b)) {
    if (a == b) continue;
    if (found > 0 && a.substr(0, a.find(" is ")) != b.substr(0, b.find(" is "))) break;  // of another kind
    if (++found <= most)
      text +=
          fmt::format("{}{} here and {} on rank 0", found == 1 ? "" : ", ", a, b.substr(b.find(" is ") + 4));
  }
  return found > most ? fmt::format("{}, and {} more", text, found - most) : text;
}

/// Fails where there is a difference; of several ranks that differ the first one speaks.
void require_none(const World& world, const std::string& difference) {
  if (is_first_with(world, !difference.empty()))
    fail(Exit::bad_configuration, "this rank, on {}, does not run what rank 0 runs: {}", host_name(),
         difference);
}

}  // namespace

void require_same_settings(const World& world, const Config& config, const std::string& injections,
                           const std::set<std::string>& open) {
  const std::string program = version(),
                    settings = text_of(config, open) +
                               fmt::format("--inject is {}\n", injections.empty() ? "none" : injections);
  const std::string their_program = text_of_rank_0(world, program),
                    their_settings = text_of_rank_0(world, settings);
  std::string differs;
  if (program != their_program)
    differs = fmt::format("the program is {} here and {} on rank 0; start the same binary everywhere",
                          program, their_program);
  else if (settings != their_settings)
    differs = difference(settings, their_settings) + "; start with the same settings everywhere";
  const DeviceConfig& device = config.device;
  for (const auto& [key, file] : {std::pair("device.kernels", &device.kernels),
                                  {"device.profile", &device.profile},
                                  {"device.description", &device.description}}) {
    const std::string table = contents_of(*file), theirs = text_of_rank_0(world, table);
    if (differs.empty() && table != theirs)
      differs =
          fmt::format("the table of {} ({}) has other contents; give every machine the same", key, *file);
  }
  require_none(world, differs);
}

std::string arithmetic_of(const std::string& description, Precision precision) {
  const std::string set =
      description.substr(0, description.find_first_of(precision == Precision::bf16 ? "," : ",+"));
  return set == "cpu: avx2" || set == "cpu: avx512" ? "cpu: avx2 or avx512" : set;
}

void require_same_arithmetic(const World& world, const RunArithmetic& here) {
  const std::string differs =
      first_difference(here, RunArithmetic(text_of_rank_0(world, here.text())), "here", "on rank 0");
  const char* const advice = differs.starts_with("kernels is cuda: ")
                                 ? "take GPUs of one kind, with one driver and one version of each library"
                             : differs.starts_with("kernels ")
                                 ? "set device.instructions to one that all have"
                                 : "start the same program with the same files everywhere";
  require_none(world, differs.empty() ? "" : fmt::format("{}; {}", differs, advice));
}

}  // namespace mindpipe
