#include "energy/powercap.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>

#include "core/clock.h"
#include "core/input_file.h"
#include "core/text.h"

namespace mindpipe {
namespace {

namespace fs = std::filesystem;

constexpr int still_readings = 10;     // at one a second a counter that works has moved
constexpr double most_watts = 10'000;  // a counter that seems to count more was set back to 0

/// The first line of a file of the system, without what cannot be printed; none, with errno, where there is
/// none to be read.
std::optional<std::string> first_line(const std::string& path) {
  constexpr std::size_t longest = 4096;  // a page, and sysfs gives no more
  const OpenedFile opened = open_ordinary(path);
  errno = opened.file || opened.error != 0 ? opened.error : EINVAL;
  std::array<char, longest> text{};
  const ssize_t got = opened.file ? ::read(opened.file.get(), text.data(), text.size()) : -1;
  if (got <= 0) return std::nullopt;
  const char* const begin = text.data();
  return std::string(begin,
                     std::find_if(begin, begin + got, [](unsigned char c) { return std::iscntrl(c) != 0; }));
}

std::optional<std::uint64_t> number_in(const std::string& path) {
  const std::optional<std::string> line = first_line(path);
  std::uint64_t value = 0;
  if (!line) return std::nullopt;
  const auto [end, problem] = std::from_chars(line->data(), line->data() + line->size(), value);
  return problem == std::errc() && end != line->data() ? std::optional(value) : std::nullopt;
}

/// Directories of the zones, wherever they stand: the class has all of them side by side, a copy has them
/// nested.
std::map<std::string, std::string> zones_below(const std::string& root) {
  std::map<std::string, std::string> zones;
  const auto look = [&](const auto& self, const fs::path& directory, int depth) -> void {
    std::vector<fs::path> below;
    std::error_code problem;
    for (const fs::directory_entry& entry : fs::directory_iterator(directory, problem)) {
      const std::string name = entry.path().filename().string();
      // "intel-rapl-mmio" counts the same packages once more.
      if (name != "intel-rapl" && !name.starts_with("intel-rapl:")) continue;
      if (name != "intel-rapl") zones.emplace(name, entry.path().string());
      below.push_back(entry.path());
    }
    if (depth == 3) return;
    for (const fs::path& inner : below) self(self, inner, depth + 1);
  };
  look(look, root, 0);
  return zones;
}

std::string unreadable(const std::string& file, int problem) {
  return fmt::format(
      "{} cannot be read ({}): this user needs the right to read it, which the administrator gives (chmod "
      "a+r)",
      file, problem != 0 ? std::strerror(problem) : "no number");
}

/// "intel-rapl:0", as a package is; "intel-rapl:0:0" stands in it.
bool is_outermost(const std::string& zone) { return std::count(zone.begin(), zone.end(), ':') == 1; }

/// Why what a zone counts is left out: nobody says whether it stands in another one.
std::string without_name(const std::string& directory, const std::optional<std::string>& name, int problem) {
  if (name && !name->empty())
    return fmt::format(
        "{} has the name {}, which no counter of packages, memory or platforms has; it is left out",
        directory, *name);
  return fmt::format("{}/name {}: what is counted there is not known, and is left out", directory,
                     name           ? "is empty"
                     : problem != 0 ? fmt::format("cannot be read ({})", std::strerror(problem))
                                    : "is empty");
}

}  // namespace

std::unique_ptr<Powercap> Powercap::open(const std::string& root, std::string& why) {
  auto meter = std::make_unique<Powercap>();
  std::vector<Domain> platform;
  std::string forbidden;
  for (const auto& [zone, directory] : zones_below(root)) {
    errno = 0;
    const std::optional<std::string> said = first_line(directory + "/name");
    const std::string name = said.value_or("");
    const bool is_package = name.starts_with("package"), is_psys = name == "psys";
    // Cores and graphics are parts of a package; dram stands beside it.
    if (!is_package && !is_psys && name != "dram") {
      if (!said || name.empty() || is_outermost(zone))
        meter->troubles_.push_back(without_name(directory, said, errno));
      continue;
    }
    const std::string counter = directory + "/energy_uj";
    errno = 0;
    const std::optional<std::uint64_t> now = number_in(counter);
    if (!now) {
      forbidden = unreadable(counter, errno);
      continue;
    }
    Domain domain{name == "dram" ? fmt::format("dram of {}", zone) : name, directory,
                  number_in(directory + "/max_energy_range_uj").value_or(0), *now};
    domain.begin_ns = domain.last_ns = now_ns();
    (is_psys ? platform : meter->domains_).push_back(std::move(domain));
  }
  const bool has_package = std::any_of(meter->domains_.begin(), meter->domains_.end(),
                                       [](const Domain& d) { return d.name.starts_with("package"); });
  // The platform's counter has the packages in it.
  if (!has_package && !platform.empty()) meter->domains_ = std::move(platform);
  if (!meter->domains_.empty() && forbidden.empty()) return meter;
  why = !forbidden.empty()          ? forbidden
        : !meter->troubles_.empty() ? join(meter->troubles_, "; ")
                                    : fmt::format("{} has no counter of energy (RAPL)", root);
  return nullptr;
}

double Powercap::joules() {
  std::uint64_t microjoules = 0;
  for (Domain& domain : domains_) {
    if (!domain.gone) read(domain);
    microjoules += domain.microjoules;
  }
  return static_cast<double>(microjoules) * 1e-6;
}

void Powercap::read(Domain& domain) {
  const std::optional<std::uint64_t> now = number_in(domain.directory + "/energy_uj");
  if (!now) {
    domain.gone = true;
    troubles_.push_back(
        fmt::format("{} ({}/energy_uj) can no longer be read; what it used from then on is missing",
                    domain.name, domain.directory));
    return;
  }
  const std::int64_t time = now_ns();
  const double seconds = std::max(1.0, static_cast<double>(time - domain.last_ns) * 1e-9);
  const bool went_back = *now < domain.last, has_range = domain.range >= domain.last;
  std::uint64_t more = !went_back ? *now - domain.last : has_range ? *now + domain.range - domain.last : 0;
  if (went_back && !has_range)
    troubles_.push_back(fmt::format("{} ({}) went back without a known range; that interval is missing",
                                    domain.name, domain.directory));
  if (went_back && static_cast<double>(more) * 1e-6 > most_watts * seconds) {
    troubles_.push_back(
        fmt::format("{} ({}) was set back to 0; what it used before, since it was last read, "
                    "is missing",
                    domain.name, domain.directory));
    more = *now;
  }
  if (time > domain.last_ns)
    domain.watts = static_cast<double>(more) * 1e3 / static_cast<double>(time - domain.last_ns);
  domain.still = more == 0 ? domain.still + 1 : 0;
  if (domain.still == still_readings)
    troubles_.push_back(
        fmt::format("{} ({}) stands still; what it stands for is missing", domain.name, domain.directory));
  domain.microjoules += more;
  domain.last = *now;
  domain.last_ns = time;
}

std::vector<std::string> Powercap::troubles() const {
  constexpr std::int64_t time_to_move = 1'000'000'000;
  std::vector<std::string> all = troubles_;
  for (const Domain& domain : domains_)
    if (domain.microjoules == 0 && !domain.gone && domain.still < still_readings &&
        domain.last_ns - domain.begin_ns >= time_to_move)
      all.push_back(fmt::format("{} ({}) has not moved", domain.name, domain.directory));
  return all;
}

double Powercap::seconds_to_next() const {
  constexpr double near = 2, often = 0.1;
  for (const Domain& domain : domains_)
    if (!domain.gone && domain.range > domain.last &&
        static_cast<double>(domain.range - domain.last) * 1e-6 < near * domain.watts)
      return often;
  return 1;
}

std::string Powercap::describe() const {
  std::vector<std::string> names;
  for (const Domain& domain : domains_) names.push_back(domain.name);
  return join(names, ", ");
}

std::vector<std::string> powercap_caps(const std::string& root) {
  std::vector<std::string> caps;
  for (const auto& [zone, directory] : zones_below(root)) {
    errno = 0;
    const std::optional<std::string> said = first_line(directory + "/name");
    const std::string name = said.value_or("");
    if (!said || name.empty()) caps.push_back(without_name(directory, said, errno));
    const bool is_memory = name == "dram";
    if (!is_memory && !name.starts_with("package") && name != "psys") continue;
    const std::string word = is_memory ? fmt::format("dram of {}", zone) : name,
                      off = number_in(directory + "/enabled") == 0u ? ", switched off" : "";
    const std::size_t before = caps.size();
    for (int constraint = 0; constraint < 4; ++constraint) {
      const std::string of = fmt::format("{}/constraint_{}_", directory, constraint),
                        limit = of + "power_limit_uw";
      if (std::error_code none; !fs::exists(limit, none)) continue;
      errno = 0;
      const std::optional<std::uint64_t> microwatts = number_in(limit);
      caps.push_back(microwatts
                         ? fmt::format("{}: {:.0f} W ({}{})", word, static_cast<double>(*microwatts) * 1e-6,
                                       first_line(of + "name").value_or("limit"), off)
                         : fmt::format("{}: not known: {}", word, unreadable(limit, errno)));
    }
    if (caps.size() == before) caps.push_back(fmt::format("{}: no limit is said", word));
  }
  if (caps.empty()) caps.push_back(fmt::format("processors: not known: {} has no zone of RAPL", root));
  return caps;
}

}  // namespace mindpipe
