#include "app/weights_file.h"

#include <filesystem>
#include <optional>

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

void read_weights_of_run(Worker& worker, const std::string& directory) {
  const std::string path = directory + "/model.safetensors";
  std::error_code unknown;
  MP_REQUIRE(std::filesystem::status(path, unknown).type() != std::filesystem::file_type::not_found,
             Exit::input_missing,
             "{}: there is no such file; a training leaves it in its run.dir when it ends or is stopped, so "
             "train first, or name another run.dir",
             path);
  read_weights(worker, path);
}

}  // namespace mindpipe
