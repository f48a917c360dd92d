#include "app/run/run_arithmetic.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "app/run/agreement.h"
#include "app/run/build.h"
#include "config/settings.h"
#include "core/input_file.h"
#include "core/portable_math.h"
#include "core/sha256.h"

namespace mindpipe {
namespace {

namespace fs = std::filesystem;

/// What the code fixes. A test ties these numbers to the golden hashes: whoever moves a bit counts on.
constexpr std::pair<const char*, const char*> fixed_by_code[] = {
    {"rounding points", "1"}, {"random streams", "1"}, {"order of samples", "1"}, {"kernels by shape", "1"}};

/// The SHA-256 of a file's bytes. Of a long one 64 pieces count, spread evenly from its first byte to its
/// last, and its length: a start must not read a corpus.
std::string digest_of(const std::string& path) {
  constexpr std::int64_t whole = std::int64_t{64} << 20, piece = std::int64_t{1} << 20, pieces = 64;
  const InputFile file(path);
  const std::int64_t bytes = file.size();
  std::vector<char> buffer(static_cast<std::size_t>(piece));
  Sha256 digest;
  digest.add(&bytes, sizeof bytes);
  const auto add = [&](std::int64_t begin) {
    const auto length = static_cast<std::size_t>(std::min(piece, bytes - begin));
    const ssize_t got = pread(file.descriptor(), buffer.data(), length, static_cast<off_t>(begin));
    MP_REQUIRE(got == static_cast<ssize_t>(length), Exit::bad_data, "{}: cannot be read at byte {}", path,
               begin);
    digest.add(buffer.data(), length);
  };
  if (bytes <= whole)
    for (std::int64_t begin = 0; begin < bytes; begin += piece) add(begin);
  else
    for (std::int64_t k = 0; k < pieces; ++k) add((bytes - piece) / (pieces - 1) * k);
  return to_string(digest.end());
}

/// What stands at a path, or at its endings of token files; the words of what the program makes itself.
std::string contents_at(const std::string& path) {
  std::string text;
  std::error_code none;
  for (const char* ending : {"", ".bin", ".idx", ".mask"})
    if (fs::is_regular_file(path + ending, none))
      text += fmt::format("{}{}{}", text.empty() ? "" : " ", ending, digest_of(path + ending));
  return text.empty() ? path : text;
}

/// The contents of a source of samples; what stands before the first colon says how they are read, and more
/// colons part several files.
std::string contents_of(const DataSource& source) {
  const std::size_t colon = source.path.find(':');
  const bool is_made = source.path.starts_with("synthetic:");
  if (is_made || colon == std::string::npos || colon < 2)
    return fmt::format("{} of {}", source.weight, is_made ? source.path : contents_at(source.path));
  std::string text = fmt::format("{} of {}", source.weight, source.path.substr(0, colon));
  std::istringstream files(source.path.substr(colon + 1));
  for (std::string file; std::getline(files, file, ':');) text += ":" + contents_at(file);
  return text;
}

std::string contents_of_table(const std::string& path) { return path.empty() ? "none" : contents_at(path); }

}  // namespace

std::string inputs_of(const Config& config) {
  std::string text;
  for (const DataSource& source : config.data.train)
    text += fmt::format("data.train: {}\n", contents_of(source));
  if (row_of(config.device.kind).memory == Memory::Kind::device)
    text += fmt::format("device.kernels: {}\n", contents_of_table(config.device.kernels));
  return text;
}

RunArithmetic::RunArithmetic(const Config& given, const std::string& kernels, const std::string& inputs) {
  parts_.emplace_back("kernels", arithmetic_of(kernels, given.train.precision));
  parts_.emplace_back("compiler", fmt::format("g++ {} {}", __VERSION__, build::flags));
  parts_.emplace_back("functions of real numbers", fmt::format("{}", portable::version));
  for (const auto& [name, value] : fixed_by_code) parts_.emplace_back(name, value);
  std::istringstream lines(inputs);
  for (std::string line; std::getline(lines, line);)
    parts_.emplace_back(line.substr(0, line.find(": ")), line.substr(line.find(": ") + 2));
  Config config = given;
  const bool on_gpu = row_of(config.device.kind).memory == Memory::Kind::device;
  for (const Setting& setting : settings_of(config)) {
    const bool of_gpu =
        setting.key() == "device.attention_workspace" || setting.key() == "device.attention_beyond";
    if (setting.role() != Setting::Role::arithmetic && !(of_gpu && on_gpu)) continue;
    if (setting.key() == "data.train") continue;  // an input, by its contents
    const bool may_be_file = setting.key() == "supernet.sampler" || setting.key() == "model.space";
    const std::string value = may_be_file ? contents_at(setting.written()) : setting.written();
    parts_.emplace_back(setting.key(), value);
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

std::string first_difference(const RunArithmetic& here, const RunArithmetic& there,
                             const std::string& where) {
  const bool has_names = here.has_name() && there.has_name();
  const auto value_of = [](const RunArithmetic& arithmetic, const std::string& name, std::size_t nth) {
    for (const auto& [part, value] : arithmetic.parts())
      if (part == name && nth-- == 0) return value;
    return std::string("not set");
  };
  for (const auto& [one, other] : {std::pair(&here, &there), std::pair(&there, &here)})
    for (std::size_t i = 0; i < one->parts().size(); ++i) {
      const std::string& name = one->parts()[i].first;
      if (!has_names && name != "kernels") continue;
      const auto nth = static_cast<std::size_t>(
          std::count_if(one->parts().begin(), one->parts().begin() + static_cast<std::ptrdiff_t>(i),
                        [&](const RunArithmetic::Part& part) { return part.first == name; }));
      const std::string a = value_of(here, name, nth), b = value_of(there, name, nth);
      if (a != b) return fmt::format("{} is {} here and {} {}", name, a, b, where);
    }
  return "";
}

std::string other_course(const std::map<std::string, std::string>& one,
                         const std::map<std::string, std::string>& other, const std::string& of_one,
                         const std::string& of_other) {
  constexpr const char* not_trained[] = {"data.train",
                                         "model.space",
                                         "supernet.sampler",
                                         "data.validation",
                                         "train.evaluate_every",
                                         "train.evaluate_batches",
                                         "supernet.evaluate_subnets",
                                         "supernet.calibrate_batches"};
  for (const auto& [key, value] : one) {
    if (std::find(std::begin(not_trained), std::end(not_trained), key) != std::end(not_trained)) continue;
    if (const auto there = other.find(key); there != other.end() && there->second != value)
      return fmt::format("{} is {} {} and {} {}", key, value, of_one, there->second, of_other);
  }
  return "";
}

std::string meaning_of_other_bits(const RunArithmetic& one, const RunArithmetic& other,
                                  const std::string& other_course) {
  if (!one.has_name() || !other.has_name())
    return "one of them was made before arithmetic had a name, so nobody can say whether they should be "
           "equal";
  if (const std::string differs = first_difference(one, other, "in the other"); !differs.empty())
    return fmt::format("their arithmetic has two names ({} and {}), so other bits are no wonder: {}",
                       one.name(), other.name(), differs);
  if (!other_course.empty())
    return fmt::format("their arithmetic is one ({}), but not their course: {}", one.name(), other_course);
  return fmt::format(
      "their arithmetic is one ({}) and so is their course: a machine or the program is broken, unless data "
      "differs that the name does not see (docs/same-bits.md)",
      one.name());
}

}  // namespace mindpipe
