#include "io/checkpoint_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>

#include "core/check.h"
#include "core/crc32c.h"
#include "core/input_file.h"

namespace mindpipe {
namespace {

namespace fs = std::filesystem;
constexpr const char* suspect_file = "suspect";
constexpr std::string_view prefix = "step-", hidden = ".step-";

[[noreturn]] void cannot(const char* what, const std::string& path) {
  fail(Exit::io_error, "{}: {} failed: {}", path, what, std::strerror(errno));
}

void flush_directory(const std::string& path) {
  if (!names_reach_device(path)) cannot("fsync", path);
}

/// "step-00001000" -> 1000; -1: no checkpoint's name.
std::int64_t step_of(const std::string& name) {
  std::int64_t step = -1;
  if (!name.starts_with(prefix) || name.size() < prefix.size() + 8) return -1;
  const char* const end = name.data() + name.size();
  const auto [last, error] = std::from_chars(name.data() + prefix.size(), end, step);
  return error == std::errc{} && last == end && checkpoint_name(step) == name ? step : -1;
}

/// Lets the link `latest` name a checkpoint, in one move.
void point_latest_to(const std::string& checkpoints, const std::string& name) {
  const std::string link = checkpoints + "/latest", next = checkpoints + "/.step-latest";
  ::unlink(next.c_str());
  if (::symlink(name.c_str(), next.c_str()) != 0) cannot("making a link", next);
  if (::rename(next.c_str(), link.c_str()) != 0) cannot("renaming to latest", next);
}

}  // namespace

std::string checkpoints_of(const std::string& run_directory) { return run_directory + "/checkpoints"; }

std::string checkpoint_name(std::int64_t step) { return fmt::format("{}{:08}", prefix, step); }

std::vector<CheckpointPlace> checkpoints_in(const std::string& run_directory) {
  std::vector<CheckpointPlace> places;
  std::error_code problem;
  for (fs::directory_iterator entry(checkpoints_of(run_directory), problem), end; !problem && entry != end;
       entry.increment(problem))
    if (const std::int64_t step = step_of(entry->path().filename()); step >= 0)
      places.push_back({step, entry->path()});
  std::sort(places.begin(), places.end(),
            [](const CheckpointPlace& a, const CheckpointPlace& b) { return a.step > b.step; });
  return places;
}

void mend_latest(const std::string& checkpoint) {
  const fs::path path(checkpoint);
  std::error_code none;
  if (fs::read_symlink(path.parent_path() / "latest", none) != path.filename())
    point_latest_to(path.parent_path(), path.filename());
}

void mark_suspect(const std::string& checkpoint, const std::string& why) {
  try {
    replace_file(checkpoint + "/" + suspect_file, why + "\n");
    flush_directory(checkpoint);
  } catch (const Error&) {  // a full disk has room for this
    remove_checkpoint(checkpoint);
  }
}

std::string suspicion_of(const std::string& checkpoint) {
  constexpr std::int64_t longest = 4096;
  const std::string path = checkpoint + "/" + suspect_file;
  std::error_code problem;
  if (fs::symlink_status(path, problem).type() == fs::file_type::not_found) return "";
  std::string why = "it is marked as suspect";
  try {
    why = read_text_if_there(path, longest).value_or(why);
  } catch (const Error&) {  // that it is there says enough
  }
  return why.substr(0, why.find('\n'));
}

void remove_unfinished_checkpoints(const std::string& run_directory) {
  std::vector<fs::path> found;
  std::error_code problem;
  for (fs::directory_iterator entry(checkpoints_of(run_directory), problem), end; !problem && entry != end;
       entry.increment(problem))
    if (entry->path().filename().string().starts_with(hidden)) found.push_back(entry->path());
  for (const fs::path& path : found) fs::remove_all(path, problem);
}

void remove_checkpoint(const std::string& path) {
  const fs::path whole(path), going = whole.parent_path() / ("." + whole.filename().string() + ".going");
  std::error_code ignored;
  fs::remove_all(going, ignored);
  if (::rename(path.c_str(), going.c_str()) != 0) return;
  fs::remove_all(going, ignored);
}

CheckpointFile::CheckpointFile(const std::string& directory, std::int64_t bytes)
    : path_(directory + "/" + Manifest::file_name) {
  OpenedFile opened = open_ordinary(path_, O_NOFOLLOW);
  MP_REQUIRE(opened.error == 0, Exit::checkpoint_corrupt, "{}: cannot be opened: {}", path_,
             opened.error == ELOOP ? "it is a link, and a checkpoint's file is never one"
                                   : std::strerror(opened.error));
  MP_REQUIRE(opened.file, Exit::checkpoint_corrupt, "{}: is no regular file", path_);
  MP_REQUIRE(opened.bytes == bytes, Exit::checkpoint_corrupt, "{}: has {} bytes (its manifest says {})",
             path_, opened.bytes, bytes);
  file_ = std::move(opened.file);
}

void CheckpointFile::read(std::int64_t offset, void* to, std::int64_t count) const {
  auto* next = static_cast<std::byte*>(to);
  while (count > 0) {
    const ssize_t got = ::pread(file_.get(), next, static_cast<std::size_t>(count), offset);
    if (got < 0 && errno == EINTR) continue;
    MP_REQUIRE(got > 0, Exit::checkpoint_corrupt, "{}: reading at {} failed: {}", path_, offset,
               got < 0 ? std::strerror(errno) : "the file ends there");
    next += got;
    offset += got;
    count -= got;
  }
}

bool CheckpointFile::block_holds(const Manifest& manifest, std::int64_t block) const {
  std::vector<std::byte> buffer(std::size_t{1} << 20);
  std::int64_t at = block * Manifest::block;
  const std::int64_t end = std::min(manifest.file_bytes, at + Manifest::block);
  std::uint32_t crc = 0;
  ::posix_fadvise(file_.get(), at, end - at, POSIX_FADV_WILLNEED);  // asked for at once
  for (; at < end; at += static_cast<std::int64_t>(buffer.size())) {
    const auto count = std::min<std::int64_t>(end - at, static_cast<std::int64_t>(buffer.size()));
    read(at, buffer.data(), count);
    crc = crc32c(buffer.data(), static_cast<std::size_t>(count), crc);
  }
  return crc == manifest.crcs[block];
}

NewCheckpoint::NewCheckpoint(const std::string& run_directory, std::int64_t step)
    : run_directory_(run_directory),
      path_(checkpoints_of(run_directory) + "/." + checkpoint_name(step) + ".partial"),
      final_path_(checkpoints_of(run_directory) + "/" + checkpoint_name(step)) {}

void NewCheckpoint::create() const {
  std::error_code problem;
  fs::create_directories(checkpoints_of(run_directory_), problem);
  fs::remove_all(path_, problem);
  if (::mkdir(path_.c_str(), 0777) != 0) cannot("making the directory", path_);
}

void NewCheckpoint::reserve(std::int64_t bytes) const {
  const File opened(::open(file().c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
  if (!opened) cannot("opening", file());
  while (::fallocate(opened.get(), FALLOC_FL_KEEP_SIZE, 0, bytes) != 0) {
    if (errno == EINTR) continue;
    const bool unknown = errno == EOPNOTSUPP || errno == ENOSYS;
    if (unknown && free_bytes().value_or(bytes) >= bytes) return;
    if (unknown) errno = ENOSPC;
    cannot("taking room", file());
  }
}

std::optional<std::int64_t> NewCheckpoint::free_bytes() const {
  struct statvfs space {};
  if (::statvfs(path_.c_str(), &space) != 0 && ::statvfs(run_directory_.c_str(), &space) != 0)
    return std::nullopt;
  return static_cast<std::int64_t>(space.f_bavail * space.f_frsize);
}

void NewCheckpoint::publish(const Manifest& manifest, const std::string& configuration) const {
  const std::string checkpoints = checkpoints_of(run_directory_);
  replace_file(path_ + "/config.yaml", configuration);
  replace_file(path_ + "/" + Manifest::name, text_of(manifest));
  flush_directory(path_);
  // A checkpoint of this step that stood there was passed over when the run came back: it is damaged.
  if (::access(final_path_.c_str(), F_OK) == 0) remove_checkpoint(final_path_);
  if (::rename(path_.c_str(), final_path_.c_str()) != 0) cannot("renaming", path_);
  try {
    flush_directory(checkpoints);
    point_latest_to(checkpoints, fs::path(final_path_).filename());
    flush_directory(checkpoints);
  } catch (const Error&) {  // what is said not to have been made is not there
    remove_checkpoint(final_path_);
    throw;
  }
}

void NewCheckpoint::discard() const noexcept {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace mindpipe
