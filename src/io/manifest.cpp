#include "io/manifest.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/crc32c.h"
#include "core/tensor.h"
#include "io/file.h"

namespace mindpipe {
namespace {

using Written = nlohmann::ordered_json;
using Json = nlohmann::json;  // an ordered object copies its members as it grows, however deep they are

constexpr std::int64_t version_of_most = 1, version = 2,
                       largest_manifest = std::int64_t{16} << 20;  // of 15 TB
constexpr std::string_view before_crc = ",\n\"crc32c\": \"", after_crc = "\"\n}\n";
constexpr std::size_t ending = before_crc.size() + 8 + after_crc.size();

template <class... Parts>
[[noreturn]] void refuse(const std::string& path, fmt::format_string<Parts...> what, Parts&&... parts) {
  fail(Exit::checkpoint_corrupt, "{}: {}", path, fmt::format(what, std::forward<Parts>(parts)...));
}

Written json_of(const CheckpointTensor& tensor) {
  return {{"path", tensor.path},
          {"shape", tensor.shape},
          {"dtype", "f32"},
          {"offset", tensor.offset},
          {"bytes", tensor.bytes}};
}

/// Adds what only a run has that went back, or is guarded against jumps of its loss. A program that knows of
/// no samples left out would train on them: a manifest that has some is of a newer version.
void add_guarded(const RunProgress& p, Written& written) {
  if (!p.left_out.empty()) {
    written["version"] = version;
    Written ranges = Written::array();
    for (const SampleRange& range : p.left_out) ranges.push_back({range.first, range.end});
    written["left_out"] = ranges;
  }
  if (p.rollbacks > 0) written["rollbacks"] = p.rollbacks;
  if (p.skipped_in_a_row > 0) written["skipped_in_a_row"] = p.skipped_in_a_row;
  if (!p.accepted_losses.empty()) written["accepted_losses"] = p.accepted_losses;
}

Written json_of(const Manifest& m) {
  Written crcs = Written::array(), tensors = Written::array(), units = Written::array();
  for (const std::uint32_t crc : m.crcs) crcs.push_back(fmt::format("{:08x}", crc));
  for (const CheckpointTensor& tensor : m.tensors) tensors.push_back(json_of(tensor));
  for (const CheckpointUnit& unit : m.units)
    units.push_back(
        {{"name", unit.name}, {"version", unit.version}, {"uses", unit.uses}, {"applied", unit.applied}});
  const RunProgress& p = m.progress;
  Written written = {{"format", "mindpipe checkpoint"},
                     {"version", version_of_most},
                     {"step", p.step},
                     {"applied_steps", p.applied},
                     {"samples", p.samples},
                     {"planned_samples", p.planned_samples},
                     {"tokens", p.tokens},
                     {"best_loss", p.best_loss ? Written(*p.best_loss) : Written(nullptr)},
                     {"best_step", p.best_step},
                     {"restarts", m.restarts},
                     {"created_by", m.created_by},
                     {"arithmetic", m.arithmetic},
                     {"choices", m.choices},
                     {"grid", m.grid},
                     {"settings", m.settings},
                     {"file",
                      {{"name", Manifest::file_name},
                       {"bytes", m.file_bytes},
                       {"block_bytes", Manifest::block},
                       {"crc32c", crcs}}},
                     {"tensors", tensors},
                     {"units", units}};
  if (m.longest_save_ms > 0) written["longest_save_ms"] = m.longest_save_ms;
  add_guarded(p, written);
  for (const EarlierSteps& steps : m.earlier)
    written["earlier"].push_back(
        {{"end", steps.end}, {"arithmetic", steps.arithmetic}, {"settings", steps.settings}});
  return written;
}

/// A whole number: no fraction, which the library would round, and none that does not fit, which turns
/// negative.
std::int64_t integer_of(const Json& json) {
  constexpr std::uint64_t most = std::numeric_limits<std::int64_t>::max();
  if (!json.is_number_integer() || (json.is_number_unsigned() && json.get<std::uint64_t>() > most))
    throw std::out_of_range(fmt::format("{} where a whole number was", json.type_name()));
  return json.get<std::int64_t>();
}

std::int64_t count_at(const Json& json, const char* key) {
  const std::int64_t value = integer_of(json.at(key));
  if (value < 0) throw std::out_of_range(fmt::format("{} is {}", key, value));
  return value;
}

/// How deep brackets stand within brackets, outside of texts.
int depth_of(const std::string& json) {
  int depth = 0, most = 0;
  bool in_text = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char letter = json[i];
    if (in_text && letter == '\\') ++i;
    else if (letter == '"') in_text = !in_text;
    else if (!in_text && (letter == '[' || letter == '{')) most = std::max(most, ++depth);
    else if (!in_text && (letter == ']' || letter == '}')) --depth;
  }
  return most;
}

/// Reads JSON no deeper than a manifest's: the library goes through values by recursion.
Json parsed(const std::string& text) {
  constexpr int deepest = 8;
  if (depth_of(text) > deepest) throw std::out_of_range("values within values within values");
  return Json::parse(text, nullptr, false);
}

/// What stands there is an array: the library walks over anything else, too.
const Json& array_at(const Json& json, const char* key) {
  const Json& array = json.at(key);
  if (!array.is_array()) throw std::out_of_range(fmt::format("{} is no list", key));
  return array;
}

std::vector<std::int64_t> integers_of(const Json& array) {
  std::vector<std::int64_t> integers;
  for (const Json& json : array) integers.push_back(integer_of(json));
  return integers;
}

std::map<std::string, std::int64_t> degrees_of(const Json& grid) {
  if (!grid.is_object()) throw std::out_of_range("a grid that names no degrees");
  std::map<std::string, std::int64_t> degrees;
  for (const auto& [axis, degree] : grid.items()) degrees[axis] = integer_of(degree);
  return degrees;
}

CheckpointTensor tensor_of(const Json& json) {
  if (json.at("dtype") != name_of(DType::f32)) throw std::out_of_range("a dtype that is not f32");
  return {json.at("path").get<std::string>(), integers_of(array_at(json, "shape")), count_at(json, "offset"),
          count_at(json, "bytes")};
}

/// Numbers of a run that went back or is guarded; none of them need be there.
void read_guarded(const Json& json, RunProgress& p) {
  if (json.contains("left_out"))
    for (const Json& range : array_at(json, "left_out")) {
      const std::vector<std::int64_t> ends =
          range.is_array() ? integers_of(range) : std::vector<std::int64_t>{};
      if (ends.size() != 2) throw std::out_of_range("samples left out that have no beginning and end");
      p.left_out.push_back({ends[0], ends[1]});
    }
  if (json.contains("rollbacks")) p.rollbacks = count_at(json, "rollbacks");
  if (json.contains("skipped_in_a_row")) p.skipped_in_a_row = count_at(json, "skipped_in_a_row");
  if (json.contains("accepted_losses"))
    for (const Json& loss : array_at(json, "accepted_losses"))
      p.accepted_losses.push_back(loss.get<double>());
}

Manifest manifest_of(const Json& json) {
  Manifest m;
  RunProgress& p = m.progress;
  p = {count_at(json, "step"),     count_at(json, "applied_steps"),
       count_at(json, "samples"),  count_at(json, "planned_samples"),
       count_at(json, "tokens"),   {},
       count_at(json, "best_step")};
  if (!json.at("best_loss").is_null()) p.best_loss = json.at("best_loss").get<double>();
  read_guarded(json, p);
  m.restarts = count_at(json, "restarts");
  if (json.contains("longest_save_ms")) m.longest_save_ms = count_at(json, "longest_save_ms");
  m.created_by = json.at("created_by").get<std::string>();
  m.arithmetic = json.at("arithmetic").get<std::string>();
  m.choices = json.at("choices").get<std::string>();
  m.grid = degrees_of(json.at("grid"));
  m.settings = json.at("settings").get<std::map<std::string, std::string>>();
  if (json.contains("earlier"))
    for (const Json& steps : array_at(json, "earlier"))
      m.earlier.push_back({count_at(steps, "end"), steps.at("arithmetic").get<std::string>(),
                           steps.at("settings").get<std::map<std::string, std::string>>()});
  const Json& file = json.at("file");
  m.file_bytes = count_at(file, "bytes");
  if (file.at("name") != Manifest::file_name || count_at(file, "block_bytes") != Manifest::block)
    throw std::out_of_range("a file of another name or of other blocks");
  for (const Json& crc : array_at(file, "crc32c")) {
    const std::string& digits = crc.get_ref<const std::string&>();
    if (digits.size() != 8 || digits.find_first_not_of("0123456789abcdef") != std::string::npos)
      throw std::out_of_range("a CRC that is no number of eight hexadecimal digits");
    m.crcs.push_back(static_cast<std::uint32_t>(std::stoul(digits, nullptr, 16)));
  }
  for (const Json& tensor : array_at(json, "tensors")) m.tensors.push_back(tensor_of(tensor));
  for (const Json& unit : array_at(json, "units"))
    m.units.push_back({unit.at("name").get<std::string>(), count_at(unit, "version"), count_at(unit, "uses"),
                       count_at(unit, "applied")});
  return m;
}

void check_tensor(const CheckpointTensor& tensor, std::int64_t file_bytes, const std::string& path) {
  std::int64_t bytes = sizeof(float);
  bool counted = tensor.shape.size() == 1 || tensor.shape.size() == 2;
  for (const std::int64_t extent : tensor.shape)
    counted = counted && extent > 0 && !__builtin_mul_overflow(bytes, extent, &bytes);
  if (!counted || bytes != tensor.bytes)
    refuse(path, "tensor {} has {} bytes, which do not follow from its shape", tensor.path, tensor.bytes);
  if (tensor.bytes > file_bytes || tensor.offset > file_bytes - tensor.bytes)
    refuse(path, "tensor {} would lie at {} with {} bytes, beyond the file's end at {}", tensor.path,
           tensor.offset, tensor.bytes, file_bytes);
}

/// Refuses progress that no run has reached: sums of such numbers would overflow, and an order of that many
/// samples would fit into no memory.
void check_progress(const Manifest& m, const std::string& path) {
  const RunProgress& p = m.progress;
  constexpr std::int64_t many = std::int64_t{1} << 30, most_samples = std::int64_t{1} << 34;
  const auto at_most = [&](const char* what, std::int64_t value, std::int64_t most) {
    if (value > most) refuse(path, "its {} is {} (at most {})", what, value, most);
  };
  at_most("step", p.step, many);
  at_most("applied_steps", p.applied, p.step);
  at_most("best_step", p.best_step, p.step);
  at_most("planned_samples", p.planned_samples, most_samples);
  at_most("restarts", m.restarts, many);
  at_most("longest_save_ms", m.longest_save_ms, many);
  at_most("rollbacks", p.rollbacks, many);
  at_most("skipped_in_a_row", p.skipped_in_a_row, p.step);
  std::int64_t begin = 0;
  for (const EarlierSteps& steps : m.earlier) {
    if (steps.end <= begin || steps.end > p.step)
      refuse(path, "earlier steps end at {}, behind {} and within its {}", steps.end, begin, p.step);
    begin = steps.end;
  }
  std::int64_t end = -1;
  for (const SampleRange& range : p.left_out) {
    if (range.first <= end || range.end <= range.first || range.end > most_samples)
      refuse(path, "samples {} to {} are left out behind those up to {}", range.first, range.end, end);
    end = range.end;
  }
  if (p.accepted_losses.size() > RunProgress::most_losses)
    refuse(path, "it has {} losses to compare with (at most {})", p.accepted_losses.size(),
           RunProgress::most_losses);
}

void check(const Manifest& m, const std::string& path) {
  check_progress(m, path);
  if (m.file_bytes > (std::int64_t{1} << 60) ||
      static_cast<std::int64_t>(m.crcs.size()) != (m.file_bytes + Manifest::block - 1) / Manifest::block)
    refuse(path, "{} CRCs for a file of {} bytes (one for every 16 MiB)", m.crcs.size(), m.file_bytes);
  std::vector<const CheckpointTensor*> by_offset;
  for (const CheckpointTensor& tensor : m.tensors) {
    check_tensor(tensor, m.file_bytes, path);
    by_offset.push_back(&tensor);
  }
  std::sort(by_offset.begin(), by_offset.end(),
            [](const CheckpointTensor* a, const CheckpointTensor* b) { return a->offset < b->offset; });
  for (std::size_t i = 1; i < by_offset.size(); ++i)
    if (by_offset[i - 1]->offset + by_offset[i - 1]->bytes > by_offset[i]->offset)
      refuse(path, "tensors {} and {} lie over each other", by_offset[i - 1]->path, by_offset[i]->path);
}

}  // namespace

std::int64_t RunProgress::first_sample(std::int64_t step, std::int64_t batch) const {
  std::int64_t sample = step * batch;
  for (const SampleRange& range : left_out)
    if (sample >= range.first) sample += range.end - range.first;
  return sample;
}

void RunProgress::leave_out(SampleRange range) {
  for (; !left_out.empty() && left_out.back().end >= range.first; left_out.pop_back())
    range = {std::min(range.first, left_out.back().first), std::max(range.end, left_out.back().end)};
  left_out.push_back(range);
}

std::string text_of(const Manifest& manifest) {
  std::string text = json_of(manifest).dump(1);
  text.resize(text.size() - 2);  // "\n}", behind which the CRC follows
  return fmt::format("{}{}{:08x}{}", text, before_crc, crc32c(text.data(), text.size()), after_crc);
}

Manifest parse_manifest(const std::string& text, const std::string& path) {
  if (text.size() <= ending) refuse(path, "it is cut short at {} bytes", text.size());
  const std::string body = text.substr(0, text.size() - ending);
  const std::string expected =
      fmt::format("{}{:08x}{}", before_crc, crc32c(body.data(), body.size()), after_crc);
  if (text.substr(body.size()) != expected)
    refuse(path, "its bytes are not those that were written (its CRC does not hold)");
  Manifest manifest;
  try {
    const Json json = parsed(text);
    if (json.at("format") != "mindpipe checkpoint") refuse(path, "it is no manifest of a checkpoint");
    const std::int64_t written = integer_of(json.at("version"));
    if (written < 1) throw std::out_of_range(fmt::format("version is {}", written));
    if (written > version)
      fail(Exit::bad_configuration,
           "{}: it is of format version {} (this program reads up to {}; take a newer one)", path, written,
           version);
    manifest = manifest_of(json);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    refuse(path, "it does not say what a manifest says: {}", error.what());
  }
  check(manifest, path);
  return manifest;
}

Manifest read_manifest(const std::string& directory) {
  const std::string path = directory + "/" + Manifest::name;
  const OpenedFile opened = open_ordinary(path, O_NOFOLLOW);
  if (opened.error != 0) refuse(path, "cannot be read: {}", std::strerror(opened.error));
  if (!opened.file || opened.bytes > largest_manifest)
    refuse(path, "is no file of a size that a manifest has");
  std::string text(static_cast<std::size_t>(opened.bytes), '\0');
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t got =
        ::pread(opened.file.get(), text.data() + done, text.size() - done, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) refuse(path, "cannot be read: {}", got < 0 ? std::strerror(errno) : "it became shorter");
    done += static_cast<std::size_t>(got);
  }
  return parse_manifest(text, path);
}

}  // namespace mindpipe
