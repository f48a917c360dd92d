#include <cudnn_frontend.h>
#include <dlfcn.h>

#include <cstdlib>
#include <map>
#include <unordered_map>

#include "core/log.h"
#include "cuda/device/padding.h"
#include "cuda/error.h"
#include "cuda/fused_attention.h"

namespace cudnn_frontend {
void* cudnn_dlhandle = nullptr;  // the frontend looks every function of cuDNN up in here
}

namespace mindpipe::cuda {
namespace {

namespace fe = cudnn_frontend;
using fe::graph::Tensor_attributes;
using TensorOfGraph = std::shared_ptr<Tensor_attributes>;

/// Names of the graphs' tensors.
enum Id : std::int64_t {
  q_id = 1,
  k_id,
  v_id,
  out_id,
  log_sum_id,
  dout_id,
  dq_id,
  dk_id,
  dv_id,
  queries_id,
  keys_id
};

using Strides = PlannedAttention::Strides;

struct Plan {
  fe::graph::Graph graph;
  PlannedAttention question;
};

/// Heads of [samples, rows, all heads, width], which cuDNN numbers [samples, heads, rows, width].
void describe(const TensorOfGraph& tensor, Id id, const PlannedAttention& c, const Strides& view,
              std::int64_t heads, std::int64_t rows) {
  tensor->set_uid(id)
      .set_dim({c.samples, heads, rows, c.width})
      .set_stride({view.sample, c.width, view.row, 1})
      .set_data_type(fe::DataType_t::BFLOAT16);
}
TensorOfGraph heads_of(fe::graph::Graph& graph, Id id, const PlannedAttention& c, const Strides& view,
                       std::int64_t heads, std::int64_t rows) {
  TensorOfGraph tensor = graph.tensor(Tensor_attributes().set_name("heads" + std::to_string(id)));
  describe(tensor, id, c, view, heads, rows);
  return tensor;
}
/// [samples, heads, queries] f32: the natural logarithm of the sum of exp(scaled scores).
void describe_log_sum(const TensorOfGraph& tensor, const PlannedAttention& c) {
  tensor->set_uid(log_sum_id)
      .set_dim({c.samples, c.query_heads, c.queries, 1})
      .set_stride({c.query_heads * c.queries, c.queries, 1, 1})
      .set_data_type(fe::DataType_t::FLOAT);
}
TensorOfGraph lengths_of(fe::graph::Graph& graph, Id id, const PlannedAttention& c) {
  return graph.tensor(Tensor_attributes()
                          .set_name("lengths" + std::to_string(id))
                          .set_uid(id)
                          .set_dim({c.samples, 1, 1, 1})
                          .set_stride({1, 1, 1, 1})
                          .set_data_type(fe::DataType_t::INT32));
}

/// Scale and masks, alike in both directions.
template <class Attributes>
void set_question(fe::graph::Graph& graph, const PlannedAttention& c, Attributes& attributes) {
  attributes.set_name("attention").set_attn_scale(static_cast<float>(c.scale));
  if (c.causal)
    attributes
        .set_diagonal_alignment(c.queries == c.keys ? fe::DiagonalAlignment_t::TOP_LEFT
                                                    : fe::DiagonalAlignment_t::BOTTOM_RIGHT)
        .set_diagonal_band_right_bound(0);
  if (c.padded)
    attributes.set_padding_mask(true)
        .set_seq_len_q(lengths_of(graph, queries_id, c))
        .set_seq_len_kv(lengths_of(graph, keys_id, c));
}

void add_forward(fe::graph::Graph& graph, const PlannedAttention& c) {
  auto attributes = fe::graph::SDPA_attributes().set_generate_stats(true);
  set_question(graph, c, attributes);
  const auto [out, log_sum] = graph.sdpa(heads_of(graph, q_id, c, c.q, c.query_heads, c.queries),
                                         heads_of(graph, k_id, c, c.k, c.key_heads, c.keys),
                                         heads_of(graph, v_id, c, c.v, c.key_heads, c.keys), attributes);
  describe(out, out_id, c, c.out, c.query_heads, c.queries);
  describe_log_sum(log_sum, c);
  out->set_output(true);
  log_sum->set_output(true);
}

void add_backward(fe::graph::Graph& graph, const PlannedAttention& c) {
  auto attributes = fe::graph::SDPA_backward_attributes().set_deterministic_algorithm(true);
  set_question(graph, c, attributes);
  const TensorOfGraph log_sum = graph.tensor(Tensor_attributes().set_name("log_sum"));
  describe_log_sum(log_sum, c);
  const auto [dq, dk, dv] = graph.sdpa_backward(
      heads_of(graph, q_id, c, c.q, c.query_heads, c.queries),
      heads_of(graph, k_id, c, c.k, c.key_heads, c.keys), heads_of(graph, v_id, c, c.v, c.key_heads, c.keys),
      heads_of(graph, out_id, c, c.out, c.query_heads, c.queries),
      heads_of(graph, dout_id, c, c.dout, c.query_heads, c.queries), log_sum, attributes);
  describe(dq, dq_id, c, c.dq, c.query_heads, c.queries);
  describe(dk, dk_id, c, c.dk, c.key_heads, c.keys);
  describe(dv, dv_id, c, c.dv, c.key_heads, c.keys);
  for (const TensorOfGraph& output : {dq, dk, dv}) output->set_output(true);
}

class CudnnAttention final : public FusedAttention {
 public:
  CudnnAttention(Memory& memory, cudnnHandle_t handle) : memory_(memory), handle_(handle) {}
  ~CudnnAttention() override { fe::detail::destroy_handle(handle_); }
  CudnnAttention(const CudnnAttention&) = delete;
  CudnnAttention& operator=(const CudnnAttention&) = delete;

  int version() const override { return static_cast<int>(fe::detail::get_backend_version()); }
  void plan(const std::set<PlannedAttention>& questions) override {
    for (const PlannedAttention& question : questions) plan_of(question);
  }
  bool forward(const AttentionCall& call, cudaStream_t stream) override {
    return answer(call, false, stream);
  }
  bool backward(const AttentionCall& call, cudaStream_t stream) override {
    return answer(call, true, stream);
  }

 private:
  bool answer(const AttentionCall& call, bool backward, cudaStream_t stream) {
    Plan* plan = plan_of({call, backward});
    if (plan != nullptr) run(*plan, call, stream);
    return plan != nullptr;
  }
  Plan* plan_of(const PlannedAttention& question) {
    const auto [at, is_new] = plans_.try_emplace(question);
    if (is_new) at->second = make_plan(question);
    return at->second.get();
  }
  std::unique_ptr<Plan> make_plan(const PlannedAttention& question);
  void run(Plan& plan, const AttentionCall& call, cudaStream_t stream);
  void* workspace_at(std::size_t offset) {
    return offset < workspace_.size() ? workspace_.address_of(offset) : nullptr;
  }

  Memory& memory_;
  cudnnHandle_t handle_;
  Arena workspace_;  ///< of all plans, which run one after the other in the compute queue: lengths, then the
                     ///< plan's own
  std::map<PlannedAttention, std::unique_ptr<Plan>> plans_;  ///< none: cuDNN refuses
};

std::unique_ptr<Plan> CudnnAttention::make_plan(const PlannedAttention& question) {
  // Up to this version the backward of partly filled tiles of keys copies lengths from the host in every
  // call, and may wait for it.
  constexpr int copies_lengths = 91500;
  if (version() <= copies_lengths && question.backward && !question.padded && question.keys % 128 != 0)
    return nullptr;
  auto plan = std::make_unique<Plan>();
  plan->question = question;
  fe::graph::Graph& graph = plan->graph;
  graph.set_io_data_type(fe::DataType_t::BFLOAT16)
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT);
  if (question.backward) add_backward(graph, question);
  else add_forward(graph, question);
  std::int64_t own = 0;
  if (graph.validate().is_bad() || graph.build_operation_graph(handle_).is_bad() ||
      graph.create_execution_plans({fe::HeurMode_t::A}).is_bad() || graph.check_support().is_bad() ||
      graph.build_plans(fe::BuildPlanPolicy_t::HEURISTICS_CHOICE).is_bad() ||
      graph.get_workspace_size(own).is_bad())
    return nullptr;
  const std::size_t bytes = question.lengths_bytes() + static_cast<std::size_t>(own);
  if (bytes > question.most_bytes()) return nullptr;
  if (workspace_.size() < bytes) {
    MP_CUDA(cudaDeviceSynchronize());  // calls that use the smaller one may be under way
    workspace_ = Arena();
    workspace_ = Arena(memory_, MemoryClass::workspace, aligned(bytes));
  }
  return plan;
}

void CudnnAttention::run(Plan& plan, const AttentionCall& c, cudaStream_t stream) {
  std::unordered_map<std::int64_t, void*> operands{
      {q_id, c.q.data}, {k_id, c.k.data}, {v_id, c.v.data}, {out_id, c.out.data}, {log_sum_id, c.log_sum}};
  if (plan.question.backward)
    operands.insert({{dout_id, c.dout.data}, {dq_id, c.dq.data}, {dk_id, c.dk.data}, {dv_id, c.dv.data}});
  if (plan.question.padded) {
    auto* queries = static_cast<std::int32_t*>(workspace_at(0));
    fill_lengths(queries, c.samples, static_cast<std::int32_t>(c.queries), stream);
    operands.insert({{queries_id, queries}, {keys_id, const_cast<std::int32_t*>(c.key_lengths)}});
  }
  MP_CHECK(fe::detail::set_stream(handle_, stream) == CUDNN_STATUS_SUCCESS, "cudnn: cudnnSetStream failed");
  fe::error_t result = plan.graph.execute(handle_, operands, workspace_at(plan.question.lengths_bytes()));
  MP_REQUIRE(result.is_good(), Exit::internal,
             "cudnn: attention of {} samples, {} heads on {}, {} queries, {} keys, width {} failed ({}); run "
             "once more with CUDNN_LOGLEVEL_DBG=3 "
             "CUDNN_LOGDEST_DBG=stderr, which says why, and report it",
             c.samples, c.query_heads, c.key_heads, c.queries, c.keys, c.width, result.get_message());
}

}  // namespace

std::unique_ptr<FusedAttention> make_fused_attention(Memory& memory) {
  // The frontend opens a CUDA runtime for itself, and where there are two it would take the older.
  const std::string runtime = fmt::format("libcudart.so.{}", CUDART_VERSION / 1000);
  if (dlopen(runtime.c_str(), RTLD_NOW | RTLD_LOCAL) == nullptr) return nullptr;
  setenv("CUDNN_FRONTEND_CUDART_LIB_NAME", runtime.c_str(), 0);
  if (fe::cudnn_dlhandle == nullptr)
    fe::cudnn_dlhandle = dlopen(fmt::format("libcudnn.so.{}", CUDNN_MAJOR).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (fe::cudnn_dlhandle == nullptr) return nullptr;
  unsetenv("CUDNN_FRONTEND_ATTN_DP_WORKSPACE_LIMIT");  // it would choose another backward, and other bits, on
                                                       // some ranks
  cudnnHandle_t handle = nullptr;
  const cudnnStatus_t answer = fe::detail::create_handle(&handle);
  if (answer == CUDNN_STATUS_SUCCESS) return std::make_unique<CudnnAttention>(memory, handle);
  warning(
      "cudnn: cudnnCreate answered {} (are all of its libraries there, and does the driver fit CUDA {}?); "
      "attention is our own",
      static_cast<int>(answer), CUDART_VERSION / 1000);
  return nullptr;
}

}  // namespace mindpipe::cuda
