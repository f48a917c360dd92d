#include "runtime/checkpoint_reader.h"

#include <algorithm>
#include <map>
#include <thread>

#include "comm/gather_bytes.h"
#include "comm/text_of_rank_0.h"
#include "io/checkpoint_directory.h"
#include "state/file_shares.h"

namespace mindpipe {
namespace {

/// Looks at blocks first, first + step, ...
std::string damage_among(const Manifest& manifest, const std::string& directory, int first, int step) {
  try {
    const CheckpointFile file(directory, manifest.file_bytes);
    const std::int64_t bad = file.first_bad_block(manifest, first, step);
    if (bad < 0) return "";
    return fmt::format(
        "{}: the bytes from {} to {} are not those that were written (their CRC does not hold)", file.path(),
        bad * Manifest::block, std::min(manifest.file_bytes, (bad + 1) * Manifest::block));
  } catch (const Error& error) {
    return error.what();
  }
}

/// Threads that check this rank's share of a file's blocks.
class BlockChecks {
 public:
  BlockChecks(const World& world, const Manifest& manifest, const std::string& directory, int threads)
      : found_(std::clamp(threads, 1, 8)) {
    const auto count = static_cast<int>(found_.size());
    for (int i = 0; i < count; ++i)
      threads_.emplace_back(
          [&manifest, directory, &found = found_[i], first = world.rank * count + i,
           step = world.size * count] { found = damage_among(manifest, directory, first, step); });
  }
  ~BlockChecks() { join(); }
  BlockChecks(const BlockChecks&) = delete;

  /// What they found, when all are done.
  std::string found() {
    join();
    for (const std::string& text : found_)
      if (!text.empty()) return text;
    return "";
  }

 private:
  void join() {
    for (std::thread& thread : threads_)
      if (thread.joinable()) thread.join();
  }
  std::vector<std::string> found_;
  std::vector<std::thread> threads_;
};

/// What the ranks say, of several the first.
std::string first_said(const World& world, const std::string& mine) {
  const auto* begin = reinterpret_cast<const std::byte*>(mine.data());
  std::string first;
  for (const std::vector<std::byte>& said : gather_bytes(world, {begin, begin + mine.size()}))
    if (first.empty()) first.assign(reinterpret_cast<const char*>(said.data()), said.size());
  return text_of_rank_0(world, first);
}

std::string text_of(const CheckpointTensor& tensor) {
  std::string shape;
  for (const std::int64_t extent : tensor.shape)
    shape += fmt::format("{}{}", shape.empty() ? "" : " x ", extent);
  return fmt::format("{} [{}]", tensor.path, shape);
}

}  // namespace

std::string damage_of(const World& world, const Manifest& manifest, const std::string& directory,
                      int threads) {
  return first_said(world, BlockChecks(world, manifest, directory, threads).found());
}

void require_same_tensors(Worker& worker, const Manifest& manifest, const std::string& directory) {
  const std::vector<SavedTensor> own = saved_tensors(worker.config(), worker.stage().model());
  const std::size_t most = std::max(own.size(), manifest.tensors.size());
  for (std::size_t i = 0; i < most; ++i) {
    const std::string here =
        i < own.size() ? text_of({own[i].path, own[i].tensor.shape(), 0, 0}) : std::string("nothing");
    const std::string there =
        i < manifest.tensors.size() ? text_of(manifest.tensors[i]) : std::string("nothing");
    MP_REQUIRE(here == there, Exit::bad_configuration,
               "{}: a checkpoint of another model: it has {} where this configuration has {}", directory,
               there, here);
  }
  const std::vector<CheckpointUnit> units = worker.state().unit_counters();
  MP_REQUIRE(std::equal(units.begin(), units.end(), manifest.units.begin(), manifest.units.end(),
                        [](const CheckpointUnit& a, const CheckpointUnit& b) { return a.name == b.name; }),
             Exit::checkpoint_corrupt, "{}: its units are not those of this model", directory);
}

namespace {

/// Sets what this rank keeps from the file, whatever that holds.
void load_values(Worker& worker, const Manifest& manifest, const std::string& directory) {
  const CheckpointFile file(directory, manifest.file_bytes);
  std::map<std::string_view, std::vector<WholeTensor>> by_slot;
  std::map<std::string_view, std::map<std::string, std::int64_t>> offsets;
  const std::vector<SavedTensor> saved = saved_tensors(worker.config(), worker.stage().model());
  for (std::size_t i = 0; i < saved.size(); ++i) {
    by_slot[saved[i].slot].push_back(saved[i].tensor);
    offsets[saved[i].slot][saved[i].tensor.name] = manifest.tensors[i].offset;
  }
  for (const auto& [slot, tensors] : by_slot) {
    const auto& places = offsets[slot];
    const auto read = [&](const WholeTensor& tensor, std::int64_t first, std::int64_t, std::int64_t count,
                          float* to) {
      constexpr auto word = static_cast<std::int64_t>(sizeof(float));
      file.read(places.at(tensor.name) + first * word, to, count * word);
    };
    if (slot == "value" || slot == "master") worker.state().load_weights(tensors, read);
    else worker.state().load(slot, tensors, read);
  }
  worker.state().set_unit_counters(manifest.units);
  worker.state().set_applied_steps(manifest.progress.applied);
}

}  // namespace

std::string load_checkpoint(Worker& worker, const Manifest& manifest, const std::string& directory) {
  BlockChecks checks(worker.world(), manifest, directory, worker.threads());
  std::string problem;
  try {
    load_values(worker, manifest, directory);
  } catch (const Error& error) {
    problem = error.what();
  }
  const std::string damage = checks.found();
  return first_said(worker.world(), damage.empty() ? problem : damage);
}

}  // namespace mindpipe
