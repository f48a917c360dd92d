#include "plans/workspace_on_paper.h"

#include <fmt/format.h>

#include <map>
#include <mutex>

#include "plans/attention_planner.h"

namespace mindpipe {
namespace {

std::string library_text(const AttentionPlanner& planner) {
  const int version = planner.version();
  return fmt::format("cuDNN {}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

/// The library on paper for one GPU, and what it has answered: a plan takes half a second, and a search over
/// layouts asks the same again and again.
class Answers {
 public:
  explicit Answers(const std::string& device) {
    const GpuDescription* gpu = find_gpu(device);
    if (gpu != nullptr) planner_ = make_planner_on_paper(*gpu, why_not_);
    else why_not_ = fmt::format("data/devices does not describe '{}'", device);
  }
  /// None where the library cannot be asked.
  const AttentionAnswer* to(const PlannedAttention& question) {
    const std::lock_guard lock(mutex_);
    if (!planner_) return nullptr;
    const auto [at, is_new] = known_.try_emplace(question);
    if (is_new) at->second = planner_->ask(graph_of(question));
    if (!at->second.is_unanswered) return &at->second;
    why_not_ = at->second.refusal;
    planner_.reset();
    return nullptr;
  }
  std::string source() {
    const std::lock_guard lock(mutex_);
    return planner_ ? library_text(*planner_) + " on paper" : fmt::format("estimated ({})", why_not_);
  }

 private:
  std::mutex mutex_;
  std::unique_ptr<AttentionPlanner> planner_;
  std::string why_not_;
  std::map<PlannedAttention, AttentionAnswer> known_;
};

Answers& answers_for(const std::string& device) {
  static std::mutex mutex;
  static auto& all = *new std::map<std::string, Answers>;  // libraries end before what is static here would
  const std::lock_guard lock(mutex);
  return all.try_emplace(device, device).first->second;
}

class GpuWorkspace final : public WorkspaceOnPaper {
 public:
  GpuWorkspace(const AttentionLimit& limit, std::string device) : limit_(limit), device_(std::move(device)) {}
  void product(DType, std::int64_t, std::int64_t, std::int64_t) override {}
  void attention(const AttentionOperands& o) override { plan(o.checked(), o.q.data.dtype, false); }
  void attention_backward(const AttentionBackwardOperands& o) override {
    plan(o.checked(), o.q.data.dtype, true);
  }
  void rotary(const Heads&) override {}

 private:
  void plan(const AttentionCall& call, DType dtype, bool backward) {
    const auto own = [&](OwnAttention why) { largest_.own.insert({backward, why}); };
    if (!is_planned(call, dtype)) return own(OwnAttention::form);
    const auto pieces = pieces_of(call, backward, limit_);
    if (!pieces) return own(OwnAttention::limit);
    const PlannedAttention question(call, backward, *pieces);
    const AttentionAnswer* answer = device_.empty() ? nullptr : answers_for(device_).to(question);
    std::size_t bytes = question.formula_bytes();
    if (answer != nullptr) bytes = answer->is_planned ? question.lengths_bytes() + answer->bytes : 0;
    if (answer != nullptr && !answer->is_planned) own(OwnAttention::refused);
    if (bytes > limit_.most) {
      own(OwnAttention::limit);
      bytes = 0;
    }
    largest_.include(
        {.attention = bytes, .attention_is_estimated = answer == nullptr, .planned = {question}});
  }

  AttentionLimit limit_;
  std::string device_;
};

}  // namespace

std::unique_ptr<WorkspaceOnPaper> make_gpu_workspace(const AttentionLimit& limit, const std::string& device) {
  return std::make_unique<GpuWorkspace>(limit, device);
}

std::string gpus_with_attention() {
  // Heads as those of GPT-2, packed as the layers pack them.
  constexpr std::int64_t heads = 12, rows = 1024, width = 64;
  AttentionCall call;
  call.samples = 1;
  call.query_heads = call.key_heads = heads;
  call.queries = call.keys = rows;
  call.width = width;
  call.causal = true;
  call.scale = 0.125;
  call.q = call.k = call.v = call.dq = call.dk =
      call.dv = {nullptr, rows * 3 * heads * width, 3 * heads * width};
  call.out = call.dout = {nullptr, rows * heads * width, heads * width};
  std::string names, library, why_not = "no GPU is described";
  for (const GpuDescription& gpu : described_gpus()) {
    const auto planner = make_planner_on_paper(gpu, why_not);
    if (!planner) return "none: " + why_not;
    library = library_text(*planner);
    bool both = true;
    for (const bool backward : {false, true}) {
      const AttentionAnswer answer = planner->ask(graph_of(PlannedAttention(call, backward)));
      both = both && answer.is_supported;
      if (!answer.is_supported) why_not = answer.refusal;
    }
    if (both) names += (names.empty() ? "" : ", ") + gpu.name;
  }
  return names.empty() ? "none: " + why_not : fmt::format("{} ({})", names, library);
}

std::string source_of_attention(const std::string& device) { return answers_for(device).source(); }

}  // namespace mindpipe
