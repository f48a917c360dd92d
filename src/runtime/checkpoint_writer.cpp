#include "runtime/checkpoint_writer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <sstream>
#include <utility>

#include "comm/gather_bytes.h"
#include "comm/text_of_rank_0.h"
#include "config/config.h"
#include "core/clock.h"
#include "core/text.h"
#include "io/file.h"

namespace mindpipe {
namespace {

/// Adds the time until its end to a sum of seconds.
class Stopwatch {
 public:
  explicit Stopwatch(double& seconds) : seconds_(seconds) {}
  ~Stopwatch() { seconds_ += seconds_since(start_); }
  Stopwatch(const Stopwatch&) = delete;

 private:
  double& seconds_;
  std::int64_t start_ = now_ns();
};

/// The next address that lies within its page as the offset does.
std::byte* in_page_of(std::int64_t offset, std::byte* next) {
  const auto address = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(next));
  return next + ((offset - address) % file_page + file_page) % file_page;
}

void take_offsets(Manifest& manifest, const std::string& text) {
  std::istringstream numbers(text);
  numbers >> manifest.file_bytes;
  for (CheckpointTensor& tensor : manifest.tensors) numbers >> tensor.offset;
}

std::int64_t offset_of(const Manifest& manifest, const FilePiece& file_piece) {
  return manifest.tensors[file_piece.tensor].offset +
         file_piece.stored.first * static_cast<std::int64_t>(sizeof(float));
}

/// Takes in all of the file that is no tensor's.
void note_skeleton(CheckedWriter& writer, const Manifest& manifest) {
  std::vector<const CheckpointTensor*> by_offset;
  for (const CheckpointTensor& tensor : manifest.tensors) by_offset.push_back(&tensor);
  std::sort(by_offset.begin(), by_offset.end(),
            [](const CheckpointTensor* a, const CheckpointTensor* b) { return a->offset < b->offset; });
  std::int64_t end = 0;
  for (const CheckpointTensor* tensor : by_offset) {
    writer.note_as_it_is(end, tensor->offset - end);
    end = tensor->offset + tensor->bytes;
  }
  writer.note_as_it_is(end, manifest.file_bytes - end);
}

}  // namespace

CheckpointWriter::CheckpointWriter(Worker& worker, std::string run_directory, Made made)
    : worker_(worker), run_directory_(std::move(run_directory)), hears_(std::move(made)) {
  make_copy();
  worker_.before_move = [this] { finish(); };
}

CheckpointWriter::~CheckpointWriter() {
  worker_.before_move = nullptr;
  join();
}

void CheckpointWriter::make_copy() {
  copy_.emplace(worker_.stage(), worker_.residency(), worker_.wiring().all_ranks.get());
}

void CheckpointWriter::join() {
  if (thread_.joinable()) thread_.join();
}

/// Makes a call on the thread, or at once where the run has no room for a copy of its state.
template <class Call>
void CheckpointWriter::in_background(Call call) {
  if (worker_.copy_memory() == nullptr) return call();
  thread_ = std::thread(call);
}

void CheckpointWriter::begin(Manifest manifest, const std::string& configuration) {
  finish();
  const Stopwatch stopwatch(stood_still_);
  began_ns_ = now_ns();
  make_copy();
  manifest_ = std::move(manifest);
  configuration_ = configuration;
  manifest_.tensors.clear();
  for (const SavedTensor& saved : copy_->tensors())
    manifest_.tensors.push_back({saved.path, saved.tensor.shape(), 0, saved.bytes()});
  ModelState& state = worker_.state();
  manifest_.units = state.unit_counters();
  manifest_.progress.applied =  // a subnet's units are counted each by itself
      worker_.subnets() != nullptr ? manifest_.progress.step : state.applied_steps();
  place_ = std::make_unique<NewCheckpoint>(run_directory_, manifest_.progress.step);
  if (!make_file()) return;
  phase_ = Phase::writing;
  written_ = false;
  writer_ = std::make_unique<CheckedWriter>(place_->file());
  if (worker_.copy_memory() == nullptr) return write_as_it_comes();
  copy_aside();
  in_background([this] { write_parts(); });
}

/// Rank 0 makes the file, with room for all, and tells where the tensors lie in it.
bool CheckpointWriter::make_file() {
  std::string told;
  if (worker_.world().rank == 0) {
    try {
      place_->create();
      place_->reserve(copy_->all_bytes());
      write_hdf5_skeleton(place_->file(), manifest_);
      place_->reserve(manifest_.file_bytes);
      told = std::to_string(manifest_.file_bytes);
      for (const CheckpointTensor& tensor : manifest_.tensors) told += " " + std::to_string(tensor.offset);
    } catch (const Error& error) {
      give_up(error.what());
    }
  }
  told = text_of_rank_0(worker_.world(), told);
  if (!told.empty()) take_offsets(manifest_, told);
  return !told.empty();
}

void CheckpointWriter::copy_aside() {
  parts_.clear();
  std::byte* next = worker_.copy_memory();
  copy_->gather(
      [&](const FilePiece& file_piece) {
        next = in_page_of(offset_of(manifest_, file_piece), next);
        parts_.push_back({offset_of(manifest_, file_piece), next, file_piece.bytes()});
        next += file_piece.bytes();
        return const_cast<std::byte*>(parts_.back().words);
      },
      [](const FilePiece&, const std::byte*) {});
}

void CheckpointWriter::write_as_it_comes() {
  std::vector<std::byte> buffer(copy_->mine().empty() ? 0 : static_cast<std::size_t>(longest_file_piece));
  std::unique_ptr<MpiFile> parallel;
  if (worker_.config().checkpoint.writer == CheckpointWriterKind::mpiio)
    parallel = std::make_unique<MpiFile>(worker_.world(), place_->file());
  copy_->gather([&](const FilePiece&) { return buffer.data(); },
                [&](const FilePiece& file_piece, const std::byte* words) {
                  if (!parallel)
                    return writer_->write(offset_of(manifest_, file_piece), words, file_piece.bytes());
                  parallel->write(offset_of(manifest_, file_piece), words, file_piece.bytes());
                  writer_->note(offset_of(manifest_, file_piece), words, file_piece.bytes());
                });
  if (parallel) parallel->close();
  if (parallel) writer_->take_problem(parallel->problem());
  parts_.clear();
  write_parts();
}

void CheckpointWriter::write_parts() {
  for (const Part& part : parts_) writer_->write(part.offset, part.words, part.bytes);
  if (worker_.world().rank == 0) note_skeleton(*writer_, manifest_);
  writer_->finish();
  written_ = true;
}

void CheckpointWriter::collect() {
  const Stopwatch stopwatch(stood_still_);
  join();
  const World world = worker_.world();
  const auto problems = gather_texts(world, writer_->problem());
  const auto pieces = gather_bytes(world, bytes_of_pieces(writer_->pieces()));
  writer_.reset();
  phase_ = Phase::idle;
  if (worker_.world().rank != 0) return;
  for (const std::string& problem : problems)
    if (!problem.empty()) return give_up(problem);
  manifest_.crcs = block_crcs(pieces_of(pieces), manifest_.file_bytes);
  phase_ = Phase::publishing;
  in_background([this] { publish(); });
}

void CheckpointWriter::publish() {
  manifest_.longest_save_ms =
      std::max<std::int64_t>(manifest_.longest_save_ms, std::llround(1e3 * seconds_since(began_ns_)));
  try {
    place_->publish(manifest_, configuration_);
    if (hears_) hears_(manifest_);
    const std::lock_guard lock(mutex_);
    made_ = Saved{manifest_.progress.step, seconds_since(began_ns_)};
  } catch (const Error& error) {
    give_up(error.what());
  }
}

void CheckpointWriter::give_up(const std::string& problem) {
  const std::optional<std::int64_t> free = place_->free_bytes();
  place_->discard();
  const std::lock_guard lock(mutex_);
  problem_ = fmt::format("{} (a checkpoint takes {}, and {} are free)", problem,
                         human_bytes(static_cast<double>(std::max(copy_->all_bytes(), manifest_.file_bytes))),
                         free ? human_bytes(static_cast<double>(*free)) : "nobody knows how many");
}

void CheckpointWriter::finish() {
  if (phase_ == Phase::writing) collect();
  const Stopwatch stopwatch(stood_still_);
  join();
  phase_ = Phase::idle;
}

std::optional<CheckpointWriter::Saved> CheckpointWriter::made() {
  const std::lock_guard lock(mutex_);
  return std::exchange(made_, std::nullopt);
}

std::string CheckpointWriter::problem() {
  const std::lock_guard lock(mutex_);
  return std::exchange(problem_, {});
}

}  // namespace mindpipe
