#include "app/run/weights.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <sstream>

#include "app/run/weights_source.h"
#include "app/run/whole_checkpoint.h"
#include "comm/gather_bytes.h"
#include "comm/text_of_rank_0.h"
#include "config/config.h"
#include "core/input_file.h"
#include "core/log.h"
#include "io/checked_writer.h"
#include "io/checkpoint_directory.h"
#include "io/safetensors.h"
#include "runtime/checkpoint_reader.h"
#include "state/state_copy.h"

namespace mindpipe {

namespace {

/// Lets files appear once they are whole, with what stands beside them. A machine that stops at any call
/// leaves the old weights with their config.json, the new ones with theirs, or either without one.
void publish(std::deque<NewFile>& made, const WeightFiles& files, FilesBeside* beside) {
  if (beside != nullptr) beside->make_way();
  for (NewFile& file : made) file.commit();
  files.settle();
  if (beside != nullptr) beside->complete();
}

/// The files of weights on their way, which rank 0 makes and all ranks write into.
class SharedFiles {
 public:
  /// Collective over the world.
  SharedFiles(const World& world, const WeightFiles& files) : world_(world), files_(files) {
    std::string names;
    for (const WeightFiles::Part& part : files.parts()) {
      if (world.rank > 0) break;
      NewFile& file = made_.emplace_back(part.path);
      file.extend(part.bytes);
      names += file.unfinished() + "\n";
    }
    std::istringstream lines(text_of_rank_0(world, names));
    for (std::string name; std::getline(lines, name);) names_.push_back(name);
    writers_.resize(names_.size());
    if (world.rank == 0) write_what_no_rank_has();
  }

  void write(int part, std::int64_t offset, const void* bytes, std::int64_t count) {
    std::unique_ptr<CheckedWriter>& writer = writers_[part];
    if (!writer) writer = std::make_unique<CheckedWriter>(names_[part]);
    writer->write(offset, bytes, count);
  }

  /// Gives the files their names, once every byte of theirs has been written, by one rank. Collective over
  /// the world. `beside`: on rank 0, if at all.
  void finish(FilesBeside* beside) {
    std::string problem;
    std::vector<std::vector<WrittenPiece>> pieces(writers_.size());
    for (std::size_t i = 0; i < writers_.size(); ++i) {
      if (!writers_[i]) continue;
      writers_[i]->finish();
      if (problem.empty()) problem = writers_[i]->problem();
      pieces[i] = writers_[i]->pieces();
      writers_[i].reset();  // and with it the memory through which it has read
    }
    for (const std::string& told : gather_texts(world_, problem))
      MP_REQUIRE(told.empty(), Exit::io_error, "{}", told);
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const auto all = gather_bytes(world_, bytes_of_pieces(pieces[i]));
      if (world_.rank == 0) block_crcs(pieces_of(all), files_.parts()[i].bytes, files_.parts()[i].path);
    }
    if (world_.rank == 0) publish(made_, files_, beside);
  }

 private:
  /// Writes headers, and tensors of zeros that are no parameters.
  void write_what_no_rank_has() {
    for (std::size_t i = 0; i < names_.size(); ++i) {
      const WeightFiles::Part& part = files_.parts()[i];
      const auto header = static_cast<std::int64_t>(part.header.size());
      write(static_cast<int>(i), 0, part.header.data(), header);
      for (const StoredTensor& stored : part.tensors) {
        if (!files_.own_name(stored.name).empty()) continue;
        const std::vector<std::byte> zeros(stored.end - stored.begin);
        write(static_cast<int>(i), header + static_cast<std::int64_t>(stored.begin), zeros.data(),
              static_cast<std::int64_t>(zeros.size()));
      }
    }
  }

  World world_;
  const WeightFiles& files_;
  std::deque<NewFile> made_;
  std::vector<std::string> names_;
  std::vector<std::unique_ptr<CheckedWriter>> writers_;
};

}  // namespace

/// Each rank brings its tensors together from those of its stage.
void write_together(Worker& worker, const WeightFiles& files, FilesBeside* beside) {
  worker.settle();
  SharedFiles shared(worker.world(), files);
  StateCopy copy(worker.stage(), worker.residency(), worker.wiring().all_ranks.get(),
                 weights_for_files(worker.residency().state_names(), worker.stage().model()),
                 longest_piece_of_weights);
  const auto place_of = [&](const FilePiece& piece) {
    WeightFiles::Place place = files.place_of(copy.tensors()[piece.tensor].path);
    place.offset += files.bytes_of_words(piece.stored.first);
    return place;
  };
  // Bytes that lie within a page of memory as within one of the file go to the device by the shortest way.
  std::vector<std::byte> buffer(static_cast<std::size_t>(longest_piece_of_weights + 2 * file_page));
  const auto address = reinterpret_cast<std::uintptr_t>(buffer.data());
  std::byte* page = buffer.data() + (file_page - address % file_page) % file_page;
  copy.gather([&](const FilePiece& piece) { return page + place_of(piece).offset % file_page; },
              [&](const FilePiece& piece, const std::byte* words) {
                const WeightFiles::Place place = place_of(piece);
                files.convert(const_cast<std::byte*>(words), piece.stored.count());
                shared.write(place.part, place.offset, words, files.bytes_of_words(piece.stored.count()));
              });
  shared.finish(beside);
}

std::string save_weights_for_others(Worker& worker, const std::string& directory) {
  const World& world = worker.world();
  const std::string stem =
      text_of_rank_0(world, world.rank == 0 ? WeightFiles::stem_for(directory) : std::string());
  std::optional<FilesBeside> beside;
  if (world.rank == 0) beside.emplace(worker.config(), directory);
  const WeightFiles files =
      WeightFiles::in_directory(worker.stage().model(), worker.config().exported, directory, stem);
  write_together(worker, files, beside ? &*beside : nullptr);
  return files.name();
}

namespace {

/// Writes the files one after the other, as `give` gives their elements, some at a time; how many tensors.
std::size_t write_alone(const Model& model, const WeightFiles& files, const GiveWords& give,
                        FilesBeside* beside) {
  constexpr std::int64_t at_once = std::int64_t{1} << 19;
  std::vector<float> words(static_cast<std::size_t>(at_once));
  std::map<std::string, WholeTensor> tensors;
  for (WholeTensor& tensor : tensors_for_files(model)) tensors.emplace(tensor.name, std::move(tensor));
  std::deque<NewFile> made;
  for (const WeightFiles::Part& part : files.parts()) {
    NewFile& file = made.emplace_back(part.path);
    file.write(part.header.data(), part.header.size());
    for (const StoredTensor& stored : part.tensors) {
      const std::string& own = files.own_name(stored.name);
      const auto count = static_cast<std::int64_t>((stored.end - stored.begin) / bytes_of(files.type()));
      for (std::int64_t first = 0; first < count; first += at_once) {
        const std::int64_t some = std::min(at_once, count - first);
        if (own.empty()) std::fill_n(words.begin(), some, 0.0f);
        else give(tensors.at(own), first, some, words.data());
        files.convert(words.data(), some);
        file.write(words.data(), static_cast<std::size_t>(files.bytes_of_words(some)));
      }
    }
  }
  publish(made, files, beside);
  return tensors.size();
}

}  // namespace

std::size_t write_weights(const Model& model, const Config& config, const std::string& path,
                          const GiveWords& give) {
  return write_alone(model, WeightFiles::one(model, config.exported, path), give, nullptr);
}

std::size_t write_weights_for_others(const Model& model, const Config& config, const std::string& directory,
                                     const GiveWords& give, const Descriptions& more) {
  FilesBeside beside(config, directory, more);
  const WeightFiles files =
      WeightFiles::in_directory(model, config.exported, directory, WeightFiles::stem_for(directory));
  return write_alone(model, files, give, &beside);
}

namespace {

/// Sets the weights from a checkpoint, whatever optimizer and grid made it.
void read_weights_of_checkpoint(Worker& worker, const std::string& directory) {
  const Manifest manifest = read_manifest(directory);
  warn_of_suspicion(directory);
  const std::string damage = damage_of(worker.world(), manifest, directory, worker.threads());
  MP_REQUIRE(damage.empty(), Exit::checkpoint_corrupt, "{}", damage);
  std::map<std::string, const CheckpointTensor*> stored;
  for (const CheckpointTensor& tensor : manifest.tensors) stored[tensor.path] = &tensor;
  const std::vector<WholeTensor> tensors = tensors_of_pieces(worker.stage().model());
  std::vector<std::string> missing;
  for (const WholeTensor& tensor : tensors) {
    const auto found = stored.find("/model/" + tensor.name);
    if (found == stored.end() || found->second->shape != tensor.shape()) missing.push_back(tensor.name);
  }
  MP_REQUIRE(missing.empty(), Exit::bad_data,
             "{}: has not the {} of the model of this configuration (run.weights is a checkpoint of the same "
             "model)",
             directory, first_three(missing));
  const CheckpointFile file(directory, manifest.file_bytes);
  worker.state().load_weights(tensors, [&](const WholeTensor& tensor, std::int64_t first, std::int64_t,
                                           std::int64_t count, float* to) {
    constexpr auto word = static_cast<std::int64_t>(sizeof(float));
    file.read(stored.at("/model/" + tensor.name)->offset + first * word, to, count * word);
  });
}

}  // namespace

void read_weights(Worker& worker, const std::string& path, bool new_head) {
  if (is_checkpoint(path)) {
    MP_REQUIRE(!new_head, Exit::bad_configuration,
               "run.new_head takes all but the head from files of weights, and {} is a checkpoint; name its "
               "run, or what `ckpt export` makes of it",
               path);
    return read_weights_of_checkpoint(worker, path);
  }
  WeightsSource source(path, worker.stage().model(), new_head);
  if (worker.world().rank == 0 && !source.left_out().empty())
    info("{}: left out: {}", path, kinds_of(source.left_out()));
  worker.state().load_weights(
      source.tensors(), [&](const WholeTensor& tensor, std::int64_t first, std::int64_t step,
                            std::int64_t count, float* to) { source.read(tensor, first, step, count, to); });
}

void begin_with_weights(Worker& worker) {
  const RunConfig& run = worker.config().run;
  read_weights(worker, run.weights, run.new_head);
}

void read_weights_of_run(Worker& worker) {
  const RunConfig& run = worker.config().run;
  const std::string path = run.dir + "/model.safetensors";
  const bool has_parts = !file_is_there(path) && file_is_there(path + ".index.json"),
             is_there = has_parts || file_is_there(path);
  if (!is_there && !run.weights.empty()) {
    if (worker.world().rank == 0)
      info("{} is not there yet: these are the weights to begin with, {}", path, run.weights);
    return begin_with_weights(worker);
  }
  MP_REQUIRE(is_there, Exit::input_missing,
             "{}: there is no such file; a training leaves it in its run.dir when it ends or is stopped, so "
             "train first, or name another run.dir",
             path);
  read_weights(worker, has_parts ? run.dir : path);
}

}  // namespace mindpipe
