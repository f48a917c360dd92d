#include "paper/kept_planner.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/sha256.h"

namespace mindpipe {
namespace {

namespace files = std::filesystem;

std::string text_of(const AttentionGraph& graph) {
  std::string text = fmt::format("{} {} {} {} {}\n", graph.backward, graph.padded, graph.deterministic,
                                 static_cast<int>(graph.diagonal), graph.scale);
  for (const AttentionGraph::Tensor& tensor : graph.tensors)
    text += fmt::format("{} {} {} {} {}\n", static_cast<int>(tensor.id), static_cast<int>(tensor.type),
                        tensor.extents, tensor.strides, tensor.is_output);
  return text;
}

/// What makes a graph of a question and a plan of a graph.
std::string sources_that_ask() {
  std::string text;
  for (const char* name :
       {"kernels/cuda/cudnn_planner.cpp", "kernels/cuda/cudnn_planner.h", "kernels/plans/attention_planner.h",
        "kernels/plans/attention_graph.h", "tests/paper/driver.cpp", "tests/paper/kept_planner.cpp"}) {
    std::ifstream file(files::path(MINDPIPE_SOURCE_DIR) / name);
    text += name + std::string(std::istreambuf_iterator<char>(file), {});
  }
  return text;
}

class KeptAnswers final : public AttentionPlanner {
 public:
  KeptAnswers(std::unique_ptr<AttentionPlanner> planner, GpuDescription gpu, files::path folder)
      : planner_(std::move(planner)),
        gpu_(std::move(gpu)),
        folder_(std::move(folder)),
        sources_(sources_that_ask()) {
    files::create_directories(folder_);
  }
  int version() const override { return planner_->version(); }
  AttentionAnswer ask(const AttentionGraph& graph) override {
    const files::path path = folder_ / key_of_answer(version(), gpu_, graph, sources_);
    if (std::ifstream file(path); file) {
      const auto kept = nlohmann::json::parse(file);
      return {kept.at("planned"), kept.at("supported"), kept.at("engine"), kept.at("bytes"),
              kept.at("refusal")};
    }
    AttentionAnswer answer = planner_->ask(graph);
    if (!answer.is_unanswered) keep(answer, path);
    return answer;
  }

 private:
  /// A file gets its name once it is whole, so that no reader finds a part of it.
  static void keep(const AttentionAnswer& answer, const files::path& path) {
    const std::string partial = fmt::format("{}.{}", path.string(), ::getpid());
    std::ofstream(partial) << nlohmann::json{{"planned", answer.is_planned},
                                             {"supported", answer.is_supported},
                                             {"engine", answer.engine},
                                             {"bytes", answer.bytes},
                                             {"refusal", answer.refusal}};
    files::rename(partial, path);
  }

  std::unique_ptr<AttentionPlanner> planner_;
  GpuDescription gpu_;
  files::path folder_;
  std::string sources_;
};

}  // namespace

std::string key_of_answer(int version, const GpuDescription& gpu, const AttentionGraph& graph,
                          const std::string& sources) {
  const std::string text =
      fmt::format("{}\n{}\n{}\n{}{}", version, gpu.capability, gpu.properties, text_of(graph), sources);
  Sha256 sha;
  sha.add(text.data(), text.size());
  return to_string(sha.end());
}

std::unique_ptr<AttentionPlanner> keeping_answers(std::unique_ptr<AttentionPlanner> planner,
                                                  const GpuDescription& gpu) {
  const char* folder = std::getenv("MINDPIPE_KEPT_ANSWERS");
  if (planner == nullptr || folder == nullptr) return planner;
  return std::make_unique<KeptAnswers>(std::move(planner), gpu, folder);
}

}  // namespace mindpipe
