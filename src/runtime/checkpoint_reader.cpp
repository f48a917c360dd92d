#include "runtime/checkpoint_reader.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <map>
#include <thread>

#include "comm/gather_bytes.h"
#include "comm/text_of_rank_0.h"
#include "io/checkpoint_directory.h"
#include "state/file_shares.h"

namespace mindpipe {
namespace {

/// Threads that check this rank's share of a file's blocks, from the file's begin to its end.
class BlockChecks {
 public:
  BlockChecks(const World& world, const Manifest& manifest, const std::string& directory, int threads)
      : manifest_(manifest), directory_(directory), parts_(std::clamp(threads, 1, 8)) {
    const auto count = static_cast<int>(parts_.size());
    for (int i = 0; i < count; ++i)
      threads_.emplace_back([this, i, first = world.rank * count + i, step = world.size * count] {
        check(parts_[i], first, step);
      });
  }
  ~BlockChecks() { join(); }
  BlockChecks(const BlockChecks&) = delete;

  /// Waits until this rank's share of the file is checked as far as an offset: the ranks go about equally
  /// fast, so what lies before it is in memory by then, and who reads it does not wait for the device.
  void wait_up_to(std::int64_t offset) const {
    for (const Part& part : parts_)
      for (std::int64_t next = part.next; next * Manifest::block < offset; next = part.next)
        part.next.wait(next);
  }

  /// What they found, when all are done.
  std::string found() {
    join();
    for (const Part& part : parts_)
      if (!part.damage.empty()) return part.damage;
    return "";
  }

 private:
  struct Part {
    std::atomic<std::int64_t> next = 0;  ///< all blocks of the part before it are checked
    std::string damage;
  };

  /// Looks at blocks first, first + step, ...
  void check(Part& part, std::int64_t first, std::int64_t step) const {
    part.damage = damage_among(part, first, step);
    go_on(part, std::numeric_limits<std::int64_t>::max() / Manifest::block);
  }
  std::string damage_among(Part& part, std::int64_t first, std::int64_t step) const {
    try {
      const CheckpointFile file(directory_, manifest_.file_bytes);
      for (auto block = first; block < static_cast<std::int64_t>(manifest_.crcs.size()); block += step) {
        go_on(part, block);
        if (!file.block_holds(manifest_, block))
          return fmt::format(
              "{}: the bytes from {} to {} are not those that were written (their CRC does not hold)",
              file.path(), block * Manifest::block,
              std::min(manifest_.file_bytes, (block + 1) * Manifest::block));
      }
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
  static void go_on(Part& part, std::int64_t next) {
    part.next = next;
    part.next.notify_all();
  }

  void join() {
    for (std::thread& thread : threads_)
      if (thread.joinable()) thread.join();
  }

  const Manifest& manifest_;
  const std::string directory_;
  std::vector<Part> parts_;
  std::vector<std::thread> threads_;
};

/// What the ranks say, of several the first.
std::string first_said(const World& world, const std::string& mine) {
  std::string first;
  for (const std::string& said : gather_texts(world, mine))
    if (first.empty()) first = said;
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
  const std::vector<SavedTensor> own =
      saved_tensors(worker.residency().state_names(), worker.stage().model());
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

/// Sets what this rank keeps from the file, whatever that holds, state by state as they lie in it.
void load_values(Worker& worker, const Manifest& manifest, const std::string& directory,
                 const BlockChecks& checks) {
  const CheckpointFile file(directory, manifest.file_bytes);
  const std::vector<SavedTensor> saved =
      saved_tensors(worker.residency().state_names(), worker.stage().model());
  for (std::size_t i = 0, end = 0; i < saved.size(); i = end) {
    const std::string_view state = saved[i].state;
    std::vector<WholeTensor> tensors;
    std::map<std::string, std::int64_t> offsets;
    for (end = i; end < saved.size() && saved[end].state == state; ++end) {
      tensors.push_back(saved[end].tensor);
      offsets[saved[end].tensor.name] = manifest.tensors[end].offset;
    }
    const auto read = [&](const WholeTensor& tensor, std::int64_t first, std::int64_t, std::int64_t count,
                          float* to) {
      constexpr auto word = static_cast<std::int64_t>(sizeof(float));
      const std::int64_t offset = offsets.at(tensor.name) + first * word;
      checks.wait_up_to(offset + count * word);
      file.read(offset, to, count * word);
    };
    if (state == "value" || state == "master") worker.state().load_weights(tensors, read);
    else worker.state().load(state, tensors, read);
  }
  worker.state().set_unit_counters(manifest.units);
  worker.state().set_applied_steps(manifest.progress.applied);
}

}  // namespace

std::string load_checkpoint(Worker& worker, const Manifest& manifest, const std::string& directory) {
  worker.go_to(manifest.progress.step);
  BlockChecks checks(worker.world(), manifest, directory, worker.threads());
  std::string problem;
  try {
    load_values(worker, manifest, directory, checks);
  } catch (const Error& error) {
    problem = error.what();
  }
  const std::string damage = checks.found();
  return first_said(worker.world(), damage.empty() ? problem : damage);
}

}  // namespace mindpipe
