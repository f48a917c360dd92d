#include <cudnn_frontend.h>
#include <dlfcn.h>

#include <array>
#include <bit>
#include <cstdlib>
#include <map>
#include <unordered_map>
#include <vector>

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
enum Id : std::int64_t { q_id = 1, k_id, v_id, out_id, log_sum_id, dout_id, dq_id, dk_id, dv_id, queries_id, keys_id };

/// What a plan is made for. Addresses are none of it.
using Question = std::array<std::int64_t, 26>;
Question question_of(const AttentionCall& c, bool backward) {
  Question question{backward,
                    c.samples,
                    c.query_heads,
                    c.key_heads,
                    c.queries,
                    c.keys,
                    c.width,
                    c.causal,
                    c.key_lengths != nullptr,
                    std::bit_cast<std::int64_t>(c.scale)};
  std::size_t at = 10;
  for (const HeadsView* view : {&c.q, &c.k, &c.v, &c.out, &c.dout, &c.dq, &c.dk, &c.dv}) {
    question[at++] = view->sample;
    question[at++] = view->row;
  }
  return question;
}

struct Plan {
  fe::graph::Graph graph;
  Arena queries;  ///< where there is padding: i32 [samples], the number of queries
};

/// Heads of [samples, rows, all heads, width], which cuDNN numbers [samples, heads, rows, width].
void describe(const TensorOfGraph& tensor, Id id, const AttentionCall& c, const HeadsView& view, std::int64_t heads, std::int64_t rows) {
  tensor->set_uid(id)
      .set_dim({c.samples, heads, rows, c.width})
      .set_stride({view.sample, c.width, view.row, 1})
      .set_data_type(fe::DataType_t::BFLOAT16);
}
TensorOfGraph heads_of(fe::graph::Graph& graph, Id id, const AttentionCall& c, const HeadsView& view, std::int64_t heads,
                       std::int64_t rows) {
  TensorOfGraph tensor = graph.tensor(Tensor_attributes().set_name("heads" + std::to_string(id)));
  describe(tensor, id, c, view, heads, rows);
  return tensor;
}
/// [samples, heads, queries] f32: the natural logarithm of the sum of exp(scaled scores).
void describe_log_sum(const TensorOfGraph& tensor, const AttentionCall& c) {
  tensor->set_uid(log_sum_id)
      .set_dim({c.samples, c.query_heads, c.queries, 1})
      .set_stride({c.query_heads * c.queries, c.queries, 1, 1})
      .set_data_type(fe::DataType_t::FLOAT);
}
TensorOfGraph lengths_of(fe::graph::Graph& graph, Id id, const AttentionCall& c) {
  return graph.tensor(Tensor_attributes()
                          .set_name("lengths" + std::to_string(id))
                          .set_uid(id)
                          .set_dim({c.samples, 1, 1, 1})
                          .set_stride({1, 1, 1, 1})
                          .set_data_type(fe::DataType_t::INT32));
}

/// Scale and masks, alike in both directions.
template <class Attributes>
void set_question(fe::graph::Graph& graph, const AttentionCall& c, Attributes& attributes) {
  attributes.set_name("attention").set_attn_scale(static_cast<float>(c.scale));
  if (c.causal)
    attributes.set_diagonal_alignment(c.queries == c.keys ? fe::DiagonalAlignment_t::TOP_LEFT : fe::DiagonalAlignment_t::BOTTOM_RIGHT)
        .set_diagonal_band_right_bound(0);
  if (c.key_lengths != nullptr)
    attributes.set_padding_mask(true).set_seq_len_q(lengths_of(graph, queries_id, c)).set_seq_len_kv(lengths_of(graph, keys_id, c));
}

void add_forward(fe::graph::Graph& graph, const AttentionCall& c) {
  auto attributes = fe::graph::SDPA_attributes().set_generate_stats(true);
  set_question(graph, c, attributes);
  const auto [out, log_sum] =
      graph.sdpa(heads_of(graph, q_id, c, c.q, c.query_heads, c.queries), heads_of(graph, k_id, c, c.k, c.key_heads, c.keys),
                 heads_of(graph, v_id, c, c.v, c.key_heads, c.keys), attributes);
  describe(out, out_id, c, c.out, c.query_heads, c.queries);
  describe_log_sum(log_sum, c);
  out->set_output(true);
  log_sum->set_output(true);
}

void add_backward(fe::graph::Graph& graph, const AttentionCall& c) {
  auto attributes = fe::graph::SDPA_backward_attributes().set_deterministic_algorithm(true);
  set_question(graph, c, attributes);
  const TensorOfGraph log_sum = graph.tensor(Tensor_attributes().set_name("log_sum"));
  describe_log_sum(log_sum, c);
  const auto [dq, dk, dv] =
      graph.sdpa_backward(heads_of(graph, q_id, c, c.q, c.query_heads, c.queries), heads_of(graph, k_id, c, c.k, c.key_heads, c.keys),
                          heads_of(graph, v_id, c, c.v, c.key_heads, c.keys), heads_of(graph, out_id, c, c.out, c.query_heads, c.queries),
                          heads_of(graph, dout_id, c, c.dout, c.query_heads, c.queries), log_sum, attributes);
  describe(dq, dq_id, c, c.dq, c.query_heads, c.queries);
  describe(dk, dk_id, c, c.dk, c.key_heads, c.keys);
  describe(dv, dv_id, c, c.dv, c.key_heads, c.keys);
  for (const TensorOfGraph& output : {dq, dk, dv}) output->set_output(true);
}

class CudnnAttention final : public FusedAttention {
 public:
  explicit CudnnAttention(Memory& memory) : memory_(memory) {
    const cudnnStatus_t answer = fe::detail::create_handle(&handle_);
    MP_REQUIRE(answer == CUDNN_STATUS_SUCCESS, Exit::internal,
               "cudnn: cudnnCreate answered {}; look with nvidia-smi whether the GPU is well and its driver fits CUDA {}",
               static_cast<int>(answer), CUDART_VERSION / 1000);
  }
  ~CudnnAttention() override { fe::detail::destroy_handle(handle_); }
  CudnnAttention(const CudnnAttention&) = delete;
  CudnnAttention& operator=(const CudnnAttention&) = delete;

  int version() const override { return static_cast<int>(fe::detail::get_backend_version()); }
  bool forward(const AttentionCall& call, cudaStream_t stream) override { return answer(call, false, stream); }
  bool backward(const AttentionCall& call, cudaStream_t stream) override { return answer(call, true, stream); }

 private:
  bool answer(const AttentionCall& call, bool backward, cudaStream_t stream) {
    const auto [at, is_new] = plans_.try_emplace(question_of(call, backward));
    if (is_new) at->second = make_plan(call, backward);
    return at->second != nullptr && run(*at->second, call, stream);
  }
  std::unique_ptr<Plan> make_plan(const AttentionCall& call, bool backward);
  bool run(Plan& plan, const AttentionCall& call, cudaStream_t stream);

  Memory& memory_;
  cudnnHandle_t handle_ = nullptr;
  Arena workspace_;
  std::map<Question, std::unique_ptr<Plan>> plans_;  ///< none: cuDNN refuses
};

std::unique_ptr<Plan> CudnnAttention::make_plan(const AttentionCall& call, bool backward) {
  auto plan = std::make_unique<Plan>();
  fe::graph::Graph& graph = plan->graph;
  graph.set_io_data_type(fe::DataType_t::BFLOAT16)
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT);
  if (backward) add_backward(graph, call);
  else add_forward(graph, call);
  std::int64_t bytes = 0;
  if (graph.validate().is_bad() || graph.build_operation_graph(handle_).is_bad() ||
      graph.create_execution_plans({fe::HeurMode_t::A}).is_bad() || graph.check_support().is_bad() ||
      graph.build_plans(fe::BuildPlanPolicy_t::HEURISTICS_CHOICE).is_bad() || graph.get_workspace_size(bytes).is_bad() ||
      bytes > workspace_limit)
    return nullptr;
  if (workspace_.size() < static_cast<std::size_t>(bytes)) {
    MP_CUDA(cudaDeviceSynchronize());  // calls that use the smaller one may be under way; a new plan is made before step 0 or in it, never
                                       // later
    workspace_ = Arena();
    workspace_ = Arena(memory_, MemoryClass::workspace, aligned(static_cast<std::size_t>(bytes)));
  }
  if (call.key_lengths != nullptr) {
    const std::vector<std::int32_t> all(static_cast<std::size_t>(call.samples), static_cast<std::int32_t>(call.queries));
    plan->queries = Arena(memory_, MemoryClass::workspace, aligned(all.size() * sizeof(std::int32_t)));
    MP_CUDA(cudaMemcpy(plan->queries.address_of(0), all.data(), all.size() * sizeof(std::int32_t), cudaMemcpyHostToDevice));
  }
  return plan;
}

bool CudnnAttention::run(Plan& plan, const AttentionCall& c, cudaStream_t stream) {
  std::unordered_map<std::int64_t, void*> operands{
      {q_id, c.q.data}, {k_id, c.k.data}, {v_id, c.v.data}, {out_id, c.out.data}, {log_sum_id, c.log_sum}};
  if (c.dout.data != nullptr) operands.insert({{dout_id, c.dout.data}, {dq_id, c.dq.data}, {dk_id, c.dk.data}, {dv_id, c.dv.data}});
  if (c.key_lengths != nullptr)
    operands.insert({{queries_id, plan.queries.address_of(0)}, {keys_id, const_cast<std::int32_t*>(c.key_lengths)}});
  MP_CHECK(fe::detail::set_stream(handle_, stream) == CUDNN_STATUS_SUCCESS, "cudnn: cudnnSetStream failed");
  fe::error_t result = plan.graph.execute(handle_, operands, workspace_.size() == 0 ? nullptr : workspace_.address_of(0));
  MP_REQUIRE(
      result.is_good(), Exit::internal,
      "cudnn: attention of {} samples, {} heads on {}, {} queries, {} keys, width {} failed ({}); run once more with CUDNN_LOGLEVEL_DBG=3 "
      "CUDNN_LOGDEST_DBG=stderr, which says why, and report it",
      c.samples, c.query_heads, c.key_heads, c.queries, c.keys, c.width, result.get_message());
  return true;
}

}  // namespace

std::unique_ptr<FusedAttention> make_fused_attention(Memory& memory) {
  // The frontend opens a CUDA runtime for itself, and where there are two it would take the older.
  const std::string runtime = fmt::format("libcudart.so.{}", CUDART_VERSION / 1000);
  if (dlopen(runtime.c_str(), RTLD_NOW | RTLD_LOCAL) == nullptr) return nullptr;
  setenv("CUDNN_FRONTEND_CUDART_LIB_NAME", runtime.c_str(), 0);
  if (fe::cudnn_dlhandle == nullptr) fe::cudnn_dlhandle = dlopen(fmt::format("libcudnn.so.{}", CUDNN_MAJOR).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (fe::cudnn_dlhandle == nullptr) return nullptr;
  return std::make_unique<CudnnAttention>(memory);
}

}  // namespace mindpipe::cuda
