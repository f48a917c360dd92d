#include <cudnn_graph.h>
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "paper/questions.h"

// What cuDNN is really told of every tensor of an attention: this program's cudnnBackendSetAttribute stands
// in front of the library's, writes down what goes by, and hands it on.
namespace cudnn_frontend {
extern void* cudnn_dlhandle;  // in which the frontend looks up functions of cuDNN
}

namespace {

/// A tensor as the library knows it.
struct Told {
  std::int64_t id = 0;
  cudnnDataType_t type = CUDNN_DATA_DOUBLE;
  std::vector<std::int64_t> extents, strides;
};
/// A tensor in its role in an operation.
struct Use {
  cudnnBackendAttributeName_t role;
  cudnnBackendDescriptor_t operation;
  Told tensor;
};

std::map<cudnnBackendDescriptor_t, Told> tensors;
std::vector<Use> uses;

template <class T>
std::vector<T> values_of(const void* values, std::int64_t count) {
  const auto* first = static_cast<const T*>(values);
  return {first, first + count};
}

void write_down(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                cudnnBackendAttributeType_t type, std::int64_t count, const void* values) {
  if (name == CUDNN_ATTR_TENSOR_UNIQUE_ID)
    tensors[descriptor].id = values_of<std::int64_t>(values, count).at(0);
  else if (name == CUDNN_ATTR_TENSOR_DATA_TYPE)
    tensors[descriptor].type = values_of<cudnnDataType_t>(values, count).at(0);
  else if (name == CUDNN_ATTR_TENSOR_DIMENSIONS)
    tensors[descriptor].extents = values_of<std::int64_t>(values, count);
  else if (name == CUDNN_ATTR_TENSOR_STRIDES)
    tensors[descriptor].strides = values_of<std::int64_t>(values, count);
  else if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
    for (cudnnBackendDescriptor_t used : values_of<cudnnBackendDescriptor_t>(values, count))
      if (const auto at = tensors.find(used); at != tensors.end())
        uses.push_back({name, descriptor, at->second});
}

/// The library, in front of which this program stands for the frontend.
void* stand_in_front() {
  void* library = dlopen("libcudnn.so.9", RTLD_NOW | RTLD_GLOBAL);
  if (library != nullptr) cudnn_frontend::cudnn_dlhandle = dlopen(nullptr, RTLD_NOW);
  return library;
}
void* const library = stand_in_front();

}  // namespace

extern "C" cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                                  cudnnBackendAttributeName_t name,
                                                  cudnnBackendAttributeType_t type, std::int64_t count,
                                                  const void* values) {
  using Function = decltype(&cudnnBackendSetAttribute);
  static const auto real = reinterpret_cast<Function>(dlsym(library, "cudnnBackendSetAttribute"));
  write_down(descriptor, name, type, count, values);
  return real(descriptor, name, type, count, values);
}

namespace mindpipe {
namespace {

using Graph = AttentionGraph;

cudnnDataType_t type_of(Graph::Type type) {
  switch (type) {
    case Graph::Type::bf16:
      return CUDNN_DATA_BFLOAT16;
    case Graph::Type::f32:
      return CUDNN_DATA_FLOAT;
    case Graph::Type::i32:
      return CUDNN_DATA_INT32;
  }
  return CUDNN_DATA_DOUBLE;
}

/// Whether the library knows a tensor as the graph has it. Some operations see it transposed: then both
/// extents and strides of rows and columns have changed places.
bool is_told(const Told& told, const Graph::Tensor& wanted) {
  std::vector<std::int64_t> extents(wanted.extents.begin(), wanted.extents.end()),
      strides(wanted.strides.begin(), wanted.strides.end());
  const auto is = [&] { return told.extents == extents && told.strides == strides; };
  if (told.type != type_of(wanted.type)) return false;
  if (is()) return true;
  std::swap(extents[2], extents[3]);
  std::swap(strides[2], strides[3]);
  return is();
}

/// Tensors of the graph that no operation uses, or one as something else.
std::vector<int> not_told(const Graph& graph) {
  std::vector<int> ids;
  for (const Graph::Tensor& tensor : graph.tensors) {
    int told = 0, otherwise = 0;
    for (const Use& use : uses)
      if (use.tensor.id == tensor.id) ++(is_told(use.tensor, tensor) ? told : otherwise);
    if (told == 0 || otherwise > 0) ids.push_back(static_cast<int>(tensor.id));
  }
  return ids;
}

/// The operation in which one tensor has this role and another that one.
const Use* operation_with(cudnnBackendAttributeName_t role, Graph::Id id,
                          cudnnBackendAttributeName_t other_role, Graph::Id other) {
  for (const Use& use : uses)
    for (const Use& beside : uses)
      if (use.operation == beside.operation && use.role == role && use.tensor.id == id &&
          beside.role == other_role && beside.tensor.id == other)
        return &use;
  return nullptr;
}

class Attributes : public testing::Test {
 protected:
  void SetUp() override {
    std::string why_not;
    planner_ = make_planner_on_paper(*find_gpu("h100"), why_not);
    if (!planner_) GTEST_SKIP() << why_not;
  }
  /// The graph of a direction, with `uses` as they were when it was planned: once, since it takes time.
  Graph told(bool backward) {
    static std::map<bool, std::vector<Use>> known;
    const AttentionForm form{2, 8, 8, 72, 100, 64, false, true};  // no two extents are alike
    Graph graph = graph_of(PlannedAttention(call_of(form), backward));
    if (!known.contains(backward)) {
      tensors.clear();
      uses.clear();
      const AttentionAnswer answer = planner_->ask(graph);
      EXPECT_TRUE(answer.is_planned) << answer.refusal;
      known[backward] = uses;
    }
    uses = known[backward];
    return graph;
  }

 private:
  std::unique_ptr<AttentionPlanner> planner_;
};

TEST_F(Attributes, OfEveryTensorAreThoseOfTheGraph) {
  for (const bool backward : {false, true}) {
    const Graph graph = told(backward);
    EXPECT_THAT(not_told(graph), testing::IsEmpty());
    for (const Graph::Tensor& tensor : graph.tensors) {
      const auto found = [&](auto mistake) {
        Graph wrong = graph;
        mistake(wrong.at(tensor.id));
        return not_told(wrong).size() == 1;
      };
      EXPECT_TRUE(found([](Graph::Tensor& t) { ++t.strides[0]; })) << tensor.id;
      EXPECT_TRUE(found([](Graph::Tensor& t) { ++t.strides[2]; })) << tensor.id;
      EXPECT_TRUE(found([](Graph::Tensor& t) { --t.extents[0]; })) << tensor.id;
      EXPECT_TRUE(found([](Graph::Tensor& t) { t.id = static_cast<Graph::Id>(100); })) << tensor.id;
      EXPECT_TRUE(found([](Graph::Tensor& t) {
        t.type = t.type == Graph::Type::f32 ? Graph::Type::bf16 : Graph::Type::f32;
      })) << tensor.id;
    }
  }
}

/// Tensors of one form could be told in each other's places.
TEST_F(Attributes, EveryTensorHasItsOwnRole) {
  told(false);
  const bool is_one_operation = std::any_of(uses.begin(), uses.end(), [](const Use& use) {
    return use.role == CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC;
  });
  if (is_one_operation)
    for (const auto& [role, id] : {std::pair{CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC, Graph::k},
                                   {CUDNN_ATTR_OPERATION_SDPA_FWD_VDESC, Graph::v},
                                   {CUDNN_ATTR_OPERATION_SDPA_FWD_ODESC, Graph::out},
                                   {CUDNN_ATTR_OPERATION_SDPA_FWD_STATSDESC, Graph::log_sum},
                                   {CUDNN_ATTR_OPERATION_SDPA_FWD_SEQ_LEN_QDESC, Graph::query_lengths},
                                   {CUDNN_ATTR_OPERATION_SDPA_FWD_SEQ_LEN_KVDESC, Graph::key_lengths}})
      EXPECT_NE(operation_with(CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC, Graph::q, role, id), nullptr) << id;
  const auto multiplies = [](Graph::Id a, Graph::Id b) {
    return operation_with(CUDNN_ATTR_OPERATION_MATMUL_ADESC, a, CUDNN_ATTR_OPERATION_MATMUL_BDESC, b);
  };
  const auto gives = [](Graph::Id b, Graph::Id c) {
    return operation_with(CUDNN_ATTR_OPERATION_MATMUL_BDESC, b, CUDNN_ATTR_OPERATION_MATMUL_CDESC, c);
  };
  if (!is_one_operation) {
    EXPECT_NE(multiplies(Graph::q, Graph::k), nullptr);
    EXPECT_NE(gives(Graph::v, Graph::out), nullptr);
  }

  told(true);
  if (uses.size() < 20) GTEST_SKIP() << "this cuDNN's backward is one operation";
  EXPECT_NE(multiplies(Graph::q, Graph::k), nullptr) << "the probabilities again";
  EXPECT_NE(multiplies(Graph::dout, Graph::v), nullptr) << "their gradient";
  EXPECT_NE(gives(Graph::dout, Graph::dv), nullptr);
  EXPECT_NE(gives(Graph::q, Graph::dk), nullptr);
  EXPECT_NE(operation_with(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, Graph::dout,
                           CUDNN_ATTR_OPERATION_POINTWISE_BDESC, Graph::out),
            nullptr);
  for (const auto& [role, id] :
       {std::pair{CUDNN_ATTR_OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC, Graph::query_lengths},
        {CUDNN_ATTR_OPERATION_MATMUL_GEMM_N_OVERRIDE_DESC, Graph::key_lengths}})
    EXPECT_NE(operation_with(CUDNN_ATTR_OPERATION_MATMUL_ADESC, Graph::q, role, id), nullptr) << id;
  const auto is_result = [](const Use& use) {
    return use.role == CUDNN_ATTR_OPERATION_MATMUL_CDESC && use.tensor.id == Graph::dq;
  };
  EXPECT_EQ(std::count_if(uses.begin(), uses.end(), is_result), 1);
}

}  // namespace
}  // namespace mindpipe
