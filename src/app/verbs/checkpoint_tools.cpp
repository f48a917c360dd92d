#include "app/verbs/checkpoint_tools.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <optional>
#include <vector>

#include "app/run/weights.h"
#include "app/run/whole_checkpoint.h"
#include "app/verbs/main_verb.h"
#include "plan/cost_model.h"

namespace mindpipe {
namespace {

/// How two tensors of one shape differ, in words; empty: in no bit.
std::string difference(const std::vector<float>& a, const std::vector<float>& b) {
  if (std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0) return "";
  double largest = 0, squares = 0, norm = 0;
  std::size_t count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double apart = static_cast<double>(a[i]) - b[i];
    count += std::memcmp(&a[i], &b[i], sizeof(float)) != 0 ? 1 : 0;
    largest = std::isnan(apart) ? apart : std::max(largest, std::abs(apart));
    squares += apart * apart;
    norm += static_cast<double>(a[i]) * a[i];
  }
  return fmt::format("{} of {} elements differ, by {:.3g} at most, {:.3g} of the norm", count, a.size(),
                     largest, norm > 0 ? std::sqrt(squares / norm) : std::numeric_limits<double>::infinity());
}

}  // namespace

std::string checkpoint_at(const std::string& path) {
  if (::access((path + "/" + Manifest::name).c_str(), F_OK) == 0) return path;
  const std::vector<CheckpointPlace> places = checkpoints_in(path);
  MP_REQUIRE(!places.empty(), Exit::input_missing,
             "{}: is neither a checkpoint nor a run directory that has one", path);
  return places.front().path;
}

bool print_difference(const std::string& a, const std::string& b) {
  const WholeCheckpoint one(a), other(b);
  std::string text;
  std::size_t equal = 0;
  for (const auto& [path, tensor] : one.tensors) {
    const auto there = other.tensors.find(path);
    if (there == other.tensors.end()) text += fmt::format("{}: only in {}\n", path, a);
    else if (there->second.shape != tensor.shape) text += fmt::format("{}: of another shape\n", path);
    else if (const std::string apart = difference(one.words(tensor), other.words(there->second));
             !apart.empty())
      text += fmt::format("{}: {}\n", path, apart);
    else ++equal;
  }
  for (const auto& [path, tensor] : other.tensors)
    if (one.tensors.count(path) == 0) text += fmt::format("{}: only in {}\n", path, b);
  const bool differ = !text.empty() || one.manifest.progress.step != other.manifest.progress.step;
  print(text + fmt::format("{} tensors are equal; steps {} and {}\n", equal, one.manifest.progress.step,
                           other.manifest.progress.step));
  return differ;
}

namespace {

void make_directory(const std::string& path) {
  std::error_code problem;
  std::filesystem::create_directories(path, problem);
  MP_REQUIRE(!problem, Exit::cannot_create, "{}: cannot be created ({}; name another --output)", path,
             problem.message());
}

}  // namespace

std::string export_weights(const std::string& directory, const std::string& output) {
  const WholeCheckpoint checkpoint(directory);
  const Config config = settings_of_checkpoint(directory, checkpoint.manifest);
  CostModel costs(config, make_layout(config, {}));
  const bool is_file = output.ends_with(".safetensors");
  if (!is_file) make_directory(output);
  std::optional<FilesBeside> beside;
  if (!is_file) beside.emplace(config, output);
  const WeightFiles files =
      is_file ? WeightFiles::one(costs.model(), output)
              : WeightFiles::in_directory(costs.model(), config, output, WeightFiles::stem_for(output));
  const auto bring = [&](const WholeTensor& tensor) {
    return checkpoint.brought_together(tensor, costs.model());
  };
  const std::size_t count = write_weights(costs.model(), files, bring, beside ? &*beside : nullptr);
  return fmt::format("{}: {} tensors of step {}\n", output, count, checkpoint.manifest.progress.step);
}

}  // namespace mindpipe
