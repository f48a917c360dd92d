#include "app/run/weights_file.h"

#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "core/log.h"
#include "io/safetensors.h"

namespace mindpipe {

void save_weights(Worker& worker, const std::string& path) {
  std::optional<SafetensorsWriter> file;
  if (worker.world().rank == 0) {
    std::vector<StoredTensor> tensors;
    for (const WholeTensor& tensor : tensors_for_files(worker.stage().model()))
      tensors.push_back({tensor.name, StoredType::f32, tensor.shape()});
    file.emplace(path, std::map<std::string, std::string>{{"format", "pt"}}, std::move(tensors));
  }
  worker.state().gather_weights([&](const std::byte* words, std::size_t bytes) {
    if (file) file->write(words, bytes);
  });
  if (file) file->commit();
}

std::size_t write_weights(const Model& model, const std::string& path, const BringTensor& bring) {
  std::map<std::string, WholeTensor> tensors;
  std::vector<StoredTensor> stored;
  for (WholeTensor& tensor : tensors_for_files(model)) {
    stored.push_back({tensor.name, StoredType::f32, tensor.shape()});
    tensors.emplace(tensor.name, std::move(tensor));
  }
  SafetensorsWriter file(path, {{"format", "pt"}}, std::move(stored));
  for (const StoredTensor& tensor : file.tensors()) {
    const std::vector<float> words = bring(tensors.at(tensor.name));
    file.write(words.data(), words.size() * sizeof(float));
  }
  file.commit();
  return tensors.size();
}

void read_weights(Worker& worker, const std::string& path) {
  constexpr std::int64_t most_kept = std::int64_t{1} << 20;
  const SafetensorsFile file(path);
  const StoredTensor* stored = nullptr;  // the one that is being read
  std::int64_t kept = 0;                 // elements of it that may still be in memory
  worker.state().load_weights(
      [&](const WholeTensor& tensor, std::int64_t first, std::int64_t step, std::int64_t count, float* to) {
        if (stored == nullptr || stored->name != tensor.name) {
          if (stored != nullptr) file.forget(*stored);
          stored = &file.tensor(tensor.name);
          kept = 0;
          MP_REQUIRE(stored->shape == tensor.shape(), Exit::bad_data,
                     "{}: tensor {} has {} elements in another shape than the model of this configuration "
                     "({} elements); is it the model's own file?",
                     path, tensor.name, stored->count(), tensor.count());
        }
        // A tensor that lies row by row is not needed again; rows of a transposed one share their pages.
        if (step == 1 && (kept += count) > most_kept) {
          file.forget(*stored);
          kept = count;
        }
        file.read(*stored, first, step, count, to);
      });
  if (stored != nullptr) file.forget(*stored);
}

void begin_with_weights(Worker& worker) {
  const std::string& path = worker.config().run.weights;
  std::set<std::string> wanted;
  for (const WholeTensor& tensor : tensors_for_files(worker.stage().model())) wanted.insert(tensor.name);
  const SafetensorsFile file(path);
  for (const StoredTensor& tensor : file.tensors())
    MP_REQUIRE(wanted.erase(tensor.name) > 0, Exit::bad_data,
               "{}: has {}, which the model of this configuration has not (run.weights is a file of all its "
               "weights and no others; mindpipe-train extract takes a network's out of a supernet's)",
               path, tensor.name);
  MP_REQUIRE(wanted.empty(), Exit::bad_data,
             "{}: has no {}, which the model of this configuration has (run.weights is a file of all its "
             "weights)",
             path, *wanted.begin());
  read_weights(worker, path);
}

void read_weights_of_run(Worker& worker) {
  const RunConfig& run = worker.config().run;
  const std::string path = run.dir + "/model.safetensors";
  std::error_code unknown;
  const bool is_there =
      std::filesystem::status(path, unknown).type() != std::filesystem::file_type::not_found;
  if (!is_there && !run.weights.empty()) {
    if (worker.world().rank == 0)
      info("{} is not there yet: these are the weights to begin with, {}", path, run.weights);
    return begin_with_weights(worker);
  }
  MP_REQUIRE(is_there, Exit::input_missing,
             "{}: there is no such file; a training leaves it in its run.dir when it ends or is stopped, so "
             "train first, or name another run.dir",
             path);
  read_weights(worker, path);
}

}  // namespace mindpipe
