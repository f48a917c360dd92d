#include "app/verbs/checkpoint_tools.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <vector>

#include "app/run/run_history.h"
#include "app/run/weights.h"
#include "app/run/whole_checkpoint.h"
#include "app/verbs/main_verb.h"
#include "config/config.h"
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
  if (!text.empty() && one.manifest.progress.step == other.manifest.progress.step)
    text += meaning_of_other_bits(RunHistory(one.manifest), RunHistory(other.manifest),
                                  one.manifest.progress.step, "in the first", "in the second",
                                  one.manifest.progress.left_out, other.manifest.progress.left_out) +
            "\n";
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

std::string export_weights(const std::string& directory, const std::string& output,
                           const std::vector<std::string>& overrides) {
  const bool is_file = output.ends_with(".safetensors");
  for (const std::string& text : overrides)
    MP_REQUIRE(!is_file || !text.starts_with("export.part="), Exit::usage,
               "command line: {} cuts what stands in a directory, and --output {} is one file", text, output);
  const WholeCheckpoint checkpoint(directory);
  const Config config = settings_of_checkpoint(directory, checkpoint.manifest, overrides);
  CostModel costs(config, make_layout(config, {}));
  const auto give = [&](const WholeTensor& tensor, std::int64_t first, std::int64_t count, float* to) {
    checkpoint.read(tensor, costs.model(), first, count, to);
  };
  if (!is_file) make_directory(output);
  const std::size_t count = is_file ? write_weights(costs.model(), config, output, give)
                                    : write_weights_for_others(costs.model(), config, output, give);
  return fmt::format("{}: {} tensors of step {}\n", output, count, checkpoint.manifest.progress.step);
}

}  // namespace mindpipe
