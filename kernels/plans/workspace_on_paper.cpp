#include "plans/workspace_on_paper.h"

#include <fmt/format.h>

#include <map>
#include <mutex>

#include "plans/attention_planner.h"

namespace mindpipe {
namespace {

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
    if (!planner_) return fmt::format("estimated ({})", why_not_);
    const int version = planner_->version();
    return fmt::format("cuDNN {}.{}.{} on paper", version / 10000, version / 100 % 100, version % 100);
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
  GpuWorkspace(const AttentionRoom& room, std::string device) : room_(room), device_(std::move(device)) {}
  void product(DType, std::int64_t, std::int64_t, std::int64_t) override {}
  void attention(const AttentionOperands& o) override { plan(o.checked(), o.q.data.dtype, false); }
  void attention_backward(const AttentionBackwardOperands& o) override {
    plan(o.checked(), o.q.data.dtype, true);
  }
  void rotary(const Heads&) override {}

 private:
  void plan(const AttentionCall& call, DType dtype, bool backward) {
    const int groups = is_planned(call, dtype) ? groups_of(call, backward, room_) : 0;
    if (groups == 0) return;
    const PlannedAttention question(call, backward, groups);
    const AttentionAnswer* answer = device_.empty() ? nullptr : answers_for(device_).to(question);
    std::size_t bytes = question.formula_bytes();
    if (answer != nullptr) bytes = answer->is_planned ? question.lengths_bytes() + answer->bytes : 0;
    if (bytes > room_.most) bytes = 0;  // not used then
    largest_.include(
        {.attention = bytes, .attention_is_estimated = answer == nullptr, .planned = {question}});
  }

  AttentionRoom room_;
  std::string device_;
};

}  // namespace

std::unique_ptr<WorkspaceOnPaper> make_gpu_workspace(const AttentionRoom& room, const std::string& device) {
  return std::make_unique<GpuWorkspace>(room, device);
}

std::string source_of_attention(const std::string& device) { return answers_for(device).source(); }

}  // namespace mindpipe
