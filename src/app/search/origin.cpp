#include "app/search/origin.h"

#include "app/run/json_line.h"
#include "app/run/json_read.h"
#include "config/config.h"
#include "config/models/search.h"
#include "config/settings.h"
#include "core/crc32c.h"
#include "core/input_file.h"
#include "io/file.h"
#include "io/safetensors.h"

namespace mindpipe {
namespace {

/// Settings of a search that change neither which networks are scored nor how.
bool comes_after_scores(const std::string& key) {
  for (const char* after :
       {"search.dir", "search.scores", "search.best", "search.steps", "search.verify", "search.halving"})
    if (key == after) return true;
  return false;
}

/// "1234 bytes, CRC32C 0x1a2b3c4d".
std::string print_of_file(const std::string& path) {
  const SafetensorsFile whole(path);  // refuses what is none before all of it is read
  InputFile in(path);
  std::vector<char> buffer(std::size_t{1} << 22);
  std::uint32_t crc = 0;
  std::int64_t bytes = 0;
  while (const std::size_t count = in.read(buffer)) {
    crc = crc32c(reinterpret_cast<const std::byte*>(buffer.data()), count, crc);
    bytes += static_cast<std::int64_t>(count);
  }
  return fmt::format("{} bytes, CRC32C {:#010x}", bytes, crc);
}

}  // namespace

ScoreOrigin origin_of_scores(const Config& config, const std::string& weights) {
  ScoreOrigin origin;
  Config copy = config;
  for (const Setting& setting : settings_of(copy)) {
    const std::string& key = setting.key();
    const bool of_search = key.starts_with("search.") && !comes_after_scores(key);
    const bool is_read = key == "data.validation" || key == "supernet.calibrate_batches";
    if (of_search || setting.role() == Setting::Role::arithmetic || is_read) origin[key] = setting.written();
  }
  if (asks_for(config.search, Objective::latency) || !config.device.description.empty())
    origin["device.description"] = config.device.description;
  origin["the weights"] = weights.empty() ? "none" : print_of_file(weights);
  return origin;
}

void require_same_origin(const ScoreOrigin& origin, const std::string& file) {
  const std::optional<std::string> text = read_text_if_there(file, largest_status);
  if (!text) return;
  const auto members = read_json(*text);
  MP_REQUIRE(members, Exit::bad_data, "{}: is cut short or no JSON; name another search.dir to begin anew",
             file);
  for (const auto& [name, value] : origin) {
    const auto there = members->texts.find(name);
    const std::string earlier = there == members->texts.end() ? "left out" : there->second;
    MP_REQUIRE(earlier == value, Exit::bad_configuration,
               "{}: the scores beside it were made with {} = {}, which is now {}; name another search.dir to "
               "begin anew",
               file, name, earlier, value);
  }
}

void write_origin(const ScoreOrigin& origin, const std::string& file) {
  JsonLine line;
  for (const auto& [name, value] : origin) line.add(name, value);
  const std::string text = line.text() + "\n";
  NewFile whole(file);
  whole.write(text.data(), text.size());
  whole.commit();
}

}  // namespace mindpipe
