#include "cuda/cudnn_planner.h"

#include <cudnn_frontend.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <unordered_map>

#include "core/check.h"
#include "core/log.h"
#include "cuda/planner_mistakes.h"

namespace cudnn_frontend {
void* cudnn_dlhandle = nullptr;  // the frontend looks every function of cuDNN up in here
}

namespace mindpipe::cuda {
namespace {

namespace fe = cudnn_frontend;
using Id = AttentionGraph::Id;
using fe::graph::Tensor_attributes;
using TensorOfGraph = std::shared_ptr<Tensor_attributes>;

/// Who plans: a handle of the GPU that is here, or the description of one.
struct WhoPlans {
  cudnnHandle_t handle = nullptr;
  std::shared_ptr<const fe::DeviceProperties> properties;
  int capability = 0;  ///< compute capability of the described GPU
};

fe::DataType_t type_of(AttentionGraph::Type type) {
  switch (type) {
    case AttentionGraph::Type::bf16:
      return fe::DataType_t::BFLOAT16;
    case AttentionGraph::Type::f32:
      return fe::DataType_t::FLOAT;
    case AttentionGraph::Type::i32:
      return fe::DataType_t::INT32;
  }
  fail(Exit::internal, "cudnn: a tensor of unknown type");
}

/// A graph that says which numbers travel beside its tensors.
class Graph : public fe::graph::Graph {
 public:
  Scalars scalars() const {
    std::unordered_map<std::int64_t, Tensor_attributes::pass_by_values_t> values;
    (void)collect_pass_by_value_tensors_subtree(values);
    Scalars scalars;
    for (const auto& [id, value] : values)
      scalars[id] = std::visit([](auto number) { return static_cast<double>(number); }, value);
    return scalars;
  }
};

/// Builds cuDNN's graph from ours, tensor by tensor, and plans it.
class GraphBuilder {
 public:
  GraphBuilder(const AttentionGraph& wanted, const WhoPlans& who)
      : wanted_(wanted), made_(std::make_unique<Graph>()), graph_(*made_) {
    const auto f32_unless = [&](Mistake mistake) {
      return is_mistaken(mistake) ? fe::DataType_t::BFLOAT16 : fe::DataType_t::FLOAT;
    };
    graph_.set_io_data_type(fe::DataType_t::BFLOAT16)
        .set_intermediate_data_type(f32_unless(Mistake::bf16_between))
        .set_compute_data_type(f32_unless(Mistake::bf16_sums));
    if (who.handle == nullptr)  // operations that are added look at this
      graph_.set_device_properties(who.properties).set_sm_version(who.capability);
    if (wanted.backward) add_backward();
    else add_forward();
  }
  fe::error_t plan(const WhoPlans& who, AttentionAnswer& answer) {
    std::int64_t bytes = 0;
    if (described_ + outputs() != wanted_.tensors.size())
      return {fe::error_code_t::INVALID_VALUE,
              "the graph has tensors that no operation of it reads or writes"};
    fe::error_t status = graph_.validate();
    if (status.is_good()) status = graph_.build_operation_graph(who.handle);
    if (status.is_good() && hear_scalars(graph_.scalars()))
      return {fe::error_code_t::INVALID_VALUE, "no plan is made for a listener"};
    if (status.is_good()) status = graph_.create_execution_plans({fe::HeurMode_t::A});
    if (status.is_good()) status = graph_.check_support();
    answer.is_supported = status.is_good();
    if (status.is_good()) status = graph_.build_plans(fe::BuildPlanPolicy_t::HEURISTICS_CHOICE);
    if (status.is_good()) status = graph_.get_workspace_size(bytes);
    if (status.is_good()) status = graph_.get_plan_name(answer.engine);
    answer.bytes = static_cast<std::size_t>(bytes);
    return status;
  }
  std::unique_ptr<fe::graph::Graph> take() { return std::move(made_); }

 private:
  bool is_mistaken(Mistake mistake) const { return cuda::is_mistaken(mistake, wanted_.backward); }
  static void describe(const TensorOfGraph& tensor, const AttentionGraph::Tensor& wanted) {
    tensor->set_uid(wanted.id)
        .set_dim({wanted.extents.begin(), wanted.extents.end()})
        .set_stride({wanted.strides.begin(), wanted.strides.end()})
        .set_data_type(type_of(wanted.type));
    if (wanted.is_output) tensor->set_output(true);
  }
  TensorOfGraph input(Id id) {
    TensorOfGraph tensor = graph_.tensor(Tensor_attributes().set_name("tensor" + std::to_string(id)));
    describe(tensor, wanted_.at(id));
    ++described_;
    return tensor;
  }
  std::size_t outputs() const {
    return std::count_if(wanted_.tensors.begin(), wanted_.tensors.end(),
                         [](const AttentionGraph::Tensor& tensor) { return tensor.is_output; });
  }
  /// Scale and masks, alike in both directions.
  template <class Attributes>
  void set_question(Attributes& attributes) {
    attributes.set_name("attention");
    if (!is_mistaken(Mistake::no_scale))
      attributes.set_attn_scale(is_mistaken(Mistake::other_scale) ? 1 : wanted_.scale);
    if (wanted_.diagonal != AttentionGraph::Diagonal::none && !is_mistaken(Mistake::no_mask)) {
      const bool is_upper = wanted_.diagonal == AttentionGraph::Diagonal::upper_left;
      attributes
          .set_diagonal_alignment(is_upper != is_mistaken(Mistake::other_corner)
                                      ? fe::DiagonalAlignment_t::TOP_LEFT
                                      : fe::DiagonalAlignment_t::BOTTOM_RIGHT)
          .set_diagonal_band_right_bound(is_mistaken(Mistake::wide_band) ? 1 : 0);
    }
    if (wanted_.padded && !is_mistaken(Mistake::no_lengths))
      attributes.set_padding_mask(true)
          .set_seq_len_q(input(Id::query_lengths))
          .set_seq_len_kv(input(Id::key_lengths));
  }
  void add_forward() {
    auto attributes = fe::graph::SDPA_attributes().set_generate_stats(true);
    set_question(attributes);
    const auto [out, log_sum] = graph_.sdpa(input(Id::q), input(Id::k), input(Id::v), attributes);
    describe(out, wanted_.at(Id::out));
    describe(log_sum, wanted_.at(Id::log_sum));
  }
  void add_backward() {
    auto attributes = fe::graph::SDPA_backward_attributes().set_deterministic_algorithm(
        wanted_.deterministic && !is_mistaken(Mistake::any_order));
    set_question(attributes);
    const auto [dq, dk, dv] = graph_.sdpa_backward(input(Id::q), input(Id::k), input(Id::v), input(Id::out),
                                                   input(Id::dout), input(Id::log_sum), attributes);
    describe(dq, wanted_.at(Id::dq));
    describe(dk, wanted_.at(Id::dk));
    describe(dv, wanted_.at(Id::dv));
  }

  const AttentionGraph& wanted_;
  std::size_t described_ = 0;  ///< inputs
  std::unique_ptr<Graph> made_;
  Graph& graph_;
};

/// The library's reasons in one line.
std::string one_line(const std::string& message) {
  constexpr std::size_t most = 300;
  std::string line;
  for (const char c : message)
    if (c != '_' || !line.ends_with('_')) line += c == '\n' ? ' ' : c;
  while (line.ends_with(' ')) line.pop_back();
  return line.size() <= most ? line : line.substr(0, most) + " ...";
}

/// Up to this version the backward of partly filled tiles of keys copies lengths from the host in every call,
/// and may wait for it.
bool copies_lengths(const AttentionGraph& graph) {
  constexpr std::size_t last_version = 91500;
  return fe::detail::get_backend_version() <= last_version && graph.backward && !graph.padded &&
         graph.at(Id::k).extents[2] % 128 != 0;
}

/// Every plan, for a GPU that is here or on paper, is made by this function.
std::unique_ptr<fe::graph::Graph> planned(const AttentionGraph& wanted, const WhoPlans& who,
                                          AttentionAnswer& answer) {
  answer = {};
  if (copies_lengths(wanted)) {
    answer.refusal = "this version of cuDNN copies lengths from the host in every call";
    return nullptr;
  }
  GraphBuilder builder(wanted, who);
  fe::error_t status = builder.plan(who, answer);
  answer.is_planned = status.is_good();
  if (answer.is_planned) return builder.take();
  const std::string message = status.get_message();
  answer.refusal = one_line(message.empty() ? "no reason given" : message);
  // On paper kernels are loaded into the driver that is here, which may have no GPU to load them for.
  answer.is_unanswered = message.find("RUNTIME_PREREQUISITE_MISSING") != std::string::npos ||
                         (who.handle == nullptr && answer.is_supported);
  return nullptr;
}

/// Why the driver, to which cuDNN gives the kernels that it compiles while it plans, cannot take them; empty
/// where it can. One without a GPU will do.
std::string what_ails_the_driver() {
  constexpr int no_device = 100;
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr) return "cuDNN plans only where the driver's libcuda.so.1 is";
  const auto start = reinterpret_cast<int (*)(unsigned)>(dlsym(driver, "cuInit"));
  const int answer = start == nullptr ? -1 : start(0);
  if (answer == 0 || answer == no_device) return "";
  return fmt::format("the driver that cuDNN plans with does not start: cuInit answered {}", answer);
}

/// Opens cuDNN, and sees to it that no variable of the environment changes its choice of kernels.
bool open_cudnn() {
  if (fe::cudnn_dlhandle == nullptr)
    fe::cudnn_dlhandle = dlopen(fmt::format("libcudnn.so.{}", CUDNN_MAJOR).c_str(), RTLD_NOW | RTLD_LOCAL);
  unsetenv("CUDNN_FRONTEND_ATTN_DP_WORKSPACE_LIMIT");  // it would choose another backward, and other bits, on
                                                       // some ranks
  return fe::cudnn_dlhandle != nullptr;
}

class PlanOnGpu final : public CudnnPlan {
 public:
  PlanOnGpu(std::unique_ptr<fe::graph::Graph> graph, cudnnHandle_t handle)
      : graph_(std::move(graph)), handle_(handle) {}

  std::string run(const Addresses& operands, void* workspace, cudaStream_t stream) override {
    std::unordered_map<std::int64_t, void*> by_number(operands.begin(), operands.end());
    if (fe::detail::set_stream(handle_, stream) != CUDNN_STATUS_SUCCESS) return "cudnnSetStream failed";
    fe::error_t result = graph_->execute(handle_, by_number, workspace);
    return result.is_good() ? "" : "it says: " + result.get_message();
  }

 private:
  std::unique_ptr<fe::graph::Graph> graph_;
  cudnnHandle_t handle_;
};

class PlannerForGpu final : public CudnnPlanner {
 public:
  explicit PlannerForGpu(cudnnHandle_t handle) : who_{.handle = handle, .properties = nullptr} {}
  ~PlannerForGpu() override { fe::detail::destroy_handle(who_.handle); }
  PlannerForGpu(const PlannerForGpu&) = delete;
  PlannerForGpu& operator=(const PlannerForGpu&) = delete;

  int version() const override { return static_cast<int>(fe::detail::get_backend_version()); }
  AttentionAnswer ask(const AttentionGraph& graph) override {
    AttentionAnswer answer;
    planned(graph, who_, answer);
    return answer;
  }
  std::unique_ptr<CudnnPlan> plan(const AttentionGraph& graph, AttentionAnswer& answer) override {
    auto made = planned(graph, who_, answer);
    return made ? std::make_unique<PlanOnGpu>(std::move(made), who_.handle) : nullptr;
  }
  std::string properties() override {
    std::vector<std::uint8_t> text;
    fe::DeviceProperties here;
    here.set_handle(who_.handle);
    if (here.build().is_bad() || here.serialize(text).is_bad()) return "";
    return {text.begin(), text.end()};
  }

 private:
  WhoPlans who_;
};

class PlannerOnPaper final : public AttentionPlanner {
 public:
  explicit PlannerOnPaper(WhoPlans who) : who_(std::move(who)) {}
  int version() const override { return static_cast<int>(fe::detail::get_backend_version()); }
  AttentionAnswer ask(const AttentionGraph& graph) override {
    AttentionAnswer answer;
    planned(graph, who_, answer);
    return answer;
  }

 private:
  WhoPlans who_;
};

}  // namespace

std::unique_ptr<CudnnPlanner> make_cudnn_planner() {
  // The frontend opens a CUDA runtime for itself, and where there are two it would take the older.
  const std::string runtime = fmt::format("libcudart.so.{}", CUDART_VERSION / 1000);
  if (dlopen(runtime.c_str(), RTLD_NOW | RTLD_LOCAL) == nullptr) return nullptr;
  setenv("CUDNN_FRONTEND_CUDART_LIB_NAME", runtime.c_str(), 0);
  if (!open_cudnn()) return nullptr;
  cudnnHandle_t handle = nullptr;
  const cudnnStatus_t answer = fe::detail::create_handle(&handle);
  if (answer == CUDNN_STATUS_SUCCESS) return std::make_unique<PlannerForGpu>(handle);
  warning(
      "cudnn: cudnnCreate answered {} (are all of its libraries there, and does the driver fit CUDA {}?); "
      "attention is our own",
      static_cast<int>(answer), CUDART_VERSION / 1000);
  return nullptr;
}

}  // namespace mindpipe::cuda

namespace mindpipe {

std::unique_ptr<AttentionPlanner> make_planner_on_paper(const GpuDescription& gpu, std::string& why_not) {
  constexpr std::size_t first_version = 90800;
  why_not = cuda::what_ails_the_driver();
  if (!why_not.empty()) return nullptr;
  if (!cuda::open_cudnn()) {
    why_not = fmt::format("libcudnn.so.{} is not found", CUDNN_MAJOR);
    return nullptr;
  }
  if (cuda::fe::detail::get_backend_version() < first_version) {
    why_not = fmt::format("cuDNN {} cannot plan for a GPU that is not there, as 9.8 and newer can",
                          cuda::fe::detail::get_backend_version_string());
    return nullptr;
  }
  std::vector<std::uint8_t> text(gpu.properties.begin(), gpu.properties.end());
  auto properties = std::make_shared<cuda::fe::DeviceProperties>();
  auto status = properties->deserialize(text);
  if (status.is_bad()) {
    why_not = fmt::format("cuDNN does not read data/devices/{}.json: {}", gpu.name,
                          cuda::one_line(status.get_message()));
    return nullptr;
  }
  return std::make_unique<cuda::PlannerOnPaper>(
      cuda::WhoPlans{.handle = nullptr, .properties = properties, .capability = gpu.capability});
}

}  // namespace mindpipe
