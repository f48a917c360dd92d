#include "app/run/run_inputs.h"

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "app/run/whole_checkpoint.h"
#include "config/config.h"
#include "core/input_file.h"
#include "core/sha256.h"
#include "corpus/corpus.h"
#include "io/manifest.h"

namespace mindpipe {
namespace {

namespace fs = std::filesystem;

constexpr const char* of_beginning = "run.weights";

/// The SHA-256 of a file's bytes. Of a long one 64 pieces count, spread evenly from its first byte to its
/// last, and its length: a start must not read a corpus.
std::string digest_at(const std::string& path) {
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
    for (std::int64_t k = 0; k < pieces; ++k) add((bytes - piece) * k / (pieces - 1));
  return to_string(digest.end());
}

/// What stands at a path; the path itself where no file does.
std::string contents_at(const std::string& path) {
  std::error_code none;
  return fs::is_regular_file(path, none) ? digest_at(path) : path;
}

std::string contents_of_table(const std::string& path) { return path.empty() ? "none" : contents_at(path); }

/// The choices of subnets: a kind that draws them, by its word, or a file.
std::string contents_of_sampler(const std::string& word) {
  return kind_named<SamplerKind>(word) ? word : contents_at(word);
}

/// The contents of a source of samples, behind its weight and what says how it is read. Endings say that,
/// too.
std::string contents_of_source(const DataSource& source) {
  const SourceFiles read = files_of_source(source.path);
  std::string text = fmt::format("{} of {}", source.weight, read.how);
  for (const std::string& file : read.files) {
    const std::string ending = fs::path(file).extension();
    const bool is_way =
        ending == ".txt" || ending == ".tsv" || ending == ".bin" || ending == ".idx" || ending == ".mask";
    text +=
        fmt::format("{}{} {}", text.ends_with(' ') ? "" : " ", is_way ? ending : "file", contents_at(file));
  }
  return text;
}

/// The digest of what a checkpoint holds, by its tensors and the checksums of its file: not who saved it.
std::string digest_of_checkpoint(const std::string& path) {
  const Manifest manifest = read_manifest(path);
  Sha256 digest;
  const auto add = [&](const std::string& text) { digest.add(text.data(), text.size()); };
  for (const CheckpointTensor& tensor : manifest.tensors)
    add(fmt::format("{} [{}] at {}\n", tensor.path, fmt::join(tensor.shape, ", "), tensor.offset));
  for (const std::uint32_t crc : manifest.crcs) add(fmt::format("{:08x}\n", crc));
  return to_string(digest.end());
}

/// Weights to begin with: a checkpoint by what it holds; a directory by the files that are read of it, in the
/// order of their names.
std::string contents_of_weights(const std::string& path) {
  if (is_checkpoint(path)) return "checkpoint " + digest_of_checkpoint(path);
  std::error_code none;
  if (!fs::is_directory(path, none)) return contents_at(path);
  const std::string whole = path + "/model.safetensors";
  if (fs::is_regular_file(whole, none)) return "directory " + contents_at(whole);
  std::vector<std::string> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(path, none)) {
    const std::string name = entry.path().filename();
    if (name.ends_with(".safetensors") || name.ends_with(".safetensors.index.json")) files.push_back(name);
  }
  std::sort(files.begin(), files.end());
  std::string text = "directory";
  for (const std::string& file : files) text += " " + contents_at(path + "/" + file);
  return text;
}

std::string line_of_beginning(const RunConfig& run) {
  return fmt::format("{}{}: {}{}", part_of_contents, of_beginning,
                     run.weights.empty() ? "none" : contents_of_weights(run.weights),
                     run.new_head ? ", with a new head" : "");
}

}  // namespace

bool counts_by_contents(const std::string& key) { return key == "data.train" || key == "supernet.sampler"; }

std::string inputs_of(const Config& config, const std::string& beginning) {
  std::string text;
  for (const DataSource& source : config.data.train)
    text += fmt::format("{}data.train: {}\n", part_of_contents, contents_of_source(source));
  text += (beginning.empty() ? line_of_beginning(config.run) : beginning) + "\n";
  if (row_of(config.model.kind).trains_subnets)
    text += fmt::format("{}supernet.sampler: {}\n", part_of_contents,
                        contents_of_sampler(config.supernet.sampler));
  if (row_of(config.device.kind).memory == Memory::Kind::device)
    text += fmt::format("{}device.kernels: {}\n", part_of_contents, contents_of_table(config.device.kernels));
  return text;
}

std::string beginning_among(const std::string& lines) {
  std::istringstream all(lines);
  for (std::string line; std::getline(all, line);)
    if (line.starts_with(fmt::format("{}{}: ", part_of_contents, of_beginning))) return line;
  return "";
}

}  // namespace mindpipe
