#include "corpus/order_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "core/crc32c.h"
#include "core/log.h"
#include "core/sha256.h"
#include "core/text.h"
#include "core/unfinished_file.h"

namespace mindpipe {
namespace {

namespace fs = std::filesystem;

struct Header {
  std::array<char, 8> magic{'M', 'P', 'O', 'R', 'D', 'E', 'R', '1'};
  std::int64_t count = 0;
  Sha256::Digest cause{};
  std::uint32_t crc_of_numbers = 0, crc_of_header = 0;  ///< the latter of all before it
};
static_assert(sizeof(Header) == 56);
constexpr std::size_t crc_covers = sizeof(Header) - sizeof(std::uint32_t);

Sha256::Digest digest_of(const std::string& cause) {
  Sha256 hash;
  hash.add(cause.data(), cause.size());
  return hash.end();
}

/// A lock that one process of all holds, of all machines where the file system can; it ends with its holder.
class MakersLock {
 public:
  explicit MakersLock(const std::string& path)
      : path_(path), file_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
    while (file_ && !is_held_ && ::flock(file_.get(), LOCK_EX) != 0)
      if (errno != EINTR) return;
    is_held_ = static_cast<bool>(file_);
  }
  ~MakersLock() {
    if (is_held_) ::unlink(path_.c_str());
  }
  MakersLock(const MakersLock&) = delete;
  MakersLock& operator=(const MakersLock&) = delete;
  bool is_held() const { return is_held_; }

 private:
  std::string path_;
  Descriptor file_;
  bool is_held_ = false;
};

/// A name for a file that no other process of any machine gives.
std::string name_of_maker(const std::string& path) {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  return fmt::format("{}.{}.{}.unfinished", path, host.data(), ::getpid());
}

/// Removes what makers that were killed have left of a file; for who holds its lock.
void remove_leftovers(const std::string& path) {
  std::error_code ignored;
  const std::string begin = fs::path(path).filename().string() + ".";
  for (fs::directory_iterator entry(fs::path(path).parent_path(), ignored), end; !ignored && entry != end;
       entry.increment(ignored)) {
    const std::string name = entry->path().filename();
    if (name.starts_with(begin) && name.ends_with(".unfinished")) fs::remove(entry->path(), ignored);
  }
}

}  // namespace

OrderFile::OrderFile(const std::string& folder, const std::string& cause, std::int64_t count,
                     const Fill& fill)
    : cause_(cause), count_(count) {
  if (!folder.empty()) {
    const std::string path = folder + "/" + to_string(digest_of(cause)).substr(0, 32) + ".order";
    std::string problem, of_now;
    if (map(path, problem)) return;
    std::error_code failed;
    fs::create_directories(folder, failed);
    std::string reason = failed ? failed.message() : "";
    if (reason.empty()) {
      const MakersLock lock(path + ".lock");
      const bool is_made = map(path, of_now);  // another has made it meanwhile
      if (!problem.empty()) warning("{}: {}; the order of samples is worked out anew", path, problem);
      if (is_made) return;
      if (lock.is_held()) remove_leftovers(path);
      reason = make(path, fill);
      if (reason.empty() && map(path, reason)) return;
    }
    warning(
        "the order of samples, {}, cannot be kept in {} ({}), so every rank works it out in its own memory; "
        "make room on the disk of run.dir to have it once a machine",
        human_bytes(static_cast<double>(count) * 8), folder, reason);
  }
  memory_.resize(static_cast<std::size_t>(count));
  fill(memory_);
  numbers_ = memory_;
}

bool OrderFile::map(const std::string& path, std::string& problem) {
  if (::access(path.c_str(), F_OK) != 0) return false;
  try {
    file_.emplace(path);
  } catch (const Error& error) {
    problem = error.what();
    return false;
  }
  const auto whole = static_cast<std::int64_t>(sizeof(Header)) + 8 * count_;
  if (file_->size() < static_cast<std::int64_t>(sizeof(Header))) {
    problem = fmt::format("the file has {} bytes and no whole header", file_->size());
  } else {
    const auto header = file_->at<Header>(0);
    const std::byte* numbers = file_->data() + sizeof header;
    if (header.magic != Header{}.magic || crc32c(&header, crc_covers) != header.crc_of_header)
      problem = "its header is damaged";
    else if (header.cause != digest_of(cause_) || header.count != count_)
      problem = "it is the order of other samples";
    else if (file_->size() != whole)
      problem = fmt::format("the file has {} bytes (expected {})", file_->size(), whole);
    else if (crc32c(numbers, static_cast<std::size_t>(8 * count_)) != header.crc_of_numbers)
      problem = "its numbers are damaged";
    else numbers_ = {reinterpret_cast<const std::int64_t*>(numbers), static_cast<std::size_t>(count_)};
  }
  if (!problem.empty()) file_.reset();
  return problem.empty();
}

std::string OrderFile::make(const std::string& path, const Fill& fill) {
  UnfinishedFile unfinished(name_of_maker(path));
  const auto why = [](int error) { return std::string(std::strerror(error)); };
  const Descriptor file(::open(unfinished.path().c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!file) return why(errno);
  const std::size_t bytes = sizeof(Header) + static_cast<std::size_t>(8 * count_);
  // Room is taken before the first number: memory of a file on a full disk ends the process.
  if (const int error = ::posix_fallocate(file.get(), 0, static_cast<off_t>(bytes)); error != 0)
    return why(error);
  void* const address = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (address == MAP_FAILED) return why(errno);
  auto* const numbers = static_cast<std::byte*>(address) + sizeof(Header);
  fill({reinterpret_cast<std::int64_t*>(numbers), static_cast<std::size_t>(count_)});
  Header header;
  header.count = count_;
  header.cause = digest_of(cause_);
  header.crc_of_numbers = crc32c(numbers, bytes - sizeof header);
  header.crc_of_header = crc32c(&header, crc_covers);
  std::memcpy(address, &header, sizeof header);
  ::munmap(address, bytes);
  return unfinished.becomes(path) ? "" : why(errno);
}

}  // namespace mindpipe
