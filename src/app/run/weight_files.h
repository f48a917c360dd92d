#pragma once
#include <map>
#include <string>
#include <vector>

#include "io/safetensors.h"
#include "state/whole_tensor.h"

namespace mindpipe {

struct ExportConfig;

/// The safetensors files that a model's weights go to: one, or parts with an index that says which has what.
/// A function of model and settings alone, so every rank knows it.
class WeightFiles {
 public:
  /// One file, however long.
  static WeightFiles one(const Model& model, ExportConfig how, const std::string& path);
  /// What `how` says, in a directory.
  static WeightFiles in_directory(const Model& model, const ExportConfig& how, const std::string& directory,
                                  const std::string& stem);
  /// How names of parts begin in a directory: other than those that are there, which stay until the new ones
  /// are whole.
  static std::string stem_for(const std::string& directory);

  struct Part {
    std::string path;
    std::string header;                 ///< the file's bytes before the data
    std::vector<StoredTensor> tensors;  ///< offsets within the data
    std::int64_t bytes = 0;             ///< bytes of the whole file
  };
  const std::vector<Part>& parts() const { return parts_; }
  /// What to name for all of them: the file, or the index.
  std::string name() const;
  /// Where the elements of a tensor of tensors_for_files begin: part, and byte of the file.
  struct Place {
    int part = 0;
    std::int64_t offset = 0;
  };
  Place place_of(const std::string& tensor) const { return places_.at(tensor); }
  /// The model's name for a tensor of the files; empty: it is one of zeros.
  const std::string& own_name(const std::string& stored) const { return own_names_.at(stored); }
  StoredType type() const { return type_; }
  std::int64_t bytes_of_words(std::int64_t count) const {
    return count * static_cast<std::int64_t>(bytes_of(type_));
  }
  /// Turns f32 words into the files' type in place.
  void convert(void* words, std::int64_t count) const;

  /// Once all parts have their names: writes the index, and takes away the files of an earlier export.
  void settle() const;

 private:
  WeightFiles() = default;
  void plan(const Model& model, const ExportConfig& how, const std::string& stem);

  std::vector<Part> parts_;
  std::map<std::string, Place> places_;           ///< by the model's names
  std::map<std::string, std::string> own_names_;  ///< by the files' names
  std::string directory_;                         ///< empty: one file by itself
  StoredType type_ = StoredType::f32;
};

/// A tensor's name with the words of mindspore.nn: gamma, beta, embedding_table, moving_mean ...
std::string name_of_mindspore(const std::string& name, const std::string& part);

}  // namespace mindpipe
