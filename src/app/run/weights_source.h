#pragma once
#include <deque>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "io/safetensors.h"
#include "state/whole_tensor.h"

namespace mindpipe {

/// The safetensors files of a model's weights, ours or another's: one file, or a directory with
/// model.safetensors, or with model.safetensors.index.json and its parts. Every tensor of theirs is used,
/// named as left out, or refused; every tensor of the model is found, or refused.
class WeightsSource {
 public:
  /// `new_head`: tensors of the head are not asked for, and those of the files are left out.
  WeightsSource(const std::string& path, const Model& model, bool new_head = false);

  /// The model's tensors that the files have.
  const std::vector<WholeTensor>& tensors() const { return wanted_; }
  /// Reads elements first, first + step, ... of a tensor of the model as it is stored.
  void read(const WholeTensor& tensor, std::int64_t first, std::int64_t step, std::int64_t count, float* to);
  /// Names in the files that nothing here is made of.
  const std::vector<std::string>& left_out() const { return left_out_; }

 private:
  struct Place {
    const SafetensorsFile* file = nullptr;
    const StoredTensor* stored = nullptr;
  };
  void open(const std::string& path);
  void open_parts(const std::string& directory);
  void find_all(const Model& model);
  void require_same(const Place& one, const Place& other) const;
  bool take(const std::string& name, const Place& place, const Model::FileNames& names);
  /// Lines of a tensor whose rows lie across its file, as many side by side as are read at once.
  struct Band {
    const StoredTensor* stored = nullptr;
    std::int64_t first = 0, step = 0, count = 0, lines = 0;
    std::vector<float> values;  ///< line after line
    bool has(const StoredTensor* of, std::int64_t from, std::int64_t by, std::int64_t many) const {
      return of == stored && by == step && many == count && from >= first && from < first + lines;
    }
  };
  void forget_last();
  void read_band(const Place& place, std::int64_t first, std::int64_t step, std::int64_t count);

  std::string path_;
  std::deque<SafetensorsFile> files_;
  std::vector<WholeTensor> wanted_;
  std::map<std::string, Place> found_;  ///< by the model's names
  std::vector<std::string> left_out_;
  Place last_;             ///< place of the tensor that is being read
  std::int64_t kept_ = 0;  ///< elements of it that may still be in memory
  Band band_;
};

/// Whether a name is what a pattern says, in which * is any number of characters.
bool matches(std::string_view pattern, std::string_view name);

/// "h.N.attn.bias (12 of them), lm_head.bias": all names, with N for every number.
std::string kinds_of(const std::vector<std::string>& names);

/// "a, b, c and 4 more", of names in order.
std::string first_three(const std::vector<std::string>& names);

}  // namespace mindpipe
