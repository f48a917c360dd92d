// thorough
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "paper/questions.h"
#include "paper/told.h"

// What cuDNN is really told of an attention: every tensor in its role, the mask, the scale, the types, the
// order of sums. The planner asks functions of this file which mistakes it makes, so that each is shown to be
// noticed.
extern "C" {
int plans_on_paper = 1;  // the driver in place of the real one works for programs that export this name
}

namespace mindpipe {
namespace cuda {
namespace {

Mistake made = Mistake::none;
bool made_backward = false;

}  // namespace

void set_mistake(Mistake mistake, bool backward) {
  made = mistake;
  made_backward = backward;
}
bool is_mistaken(Mistake mistake, bool backward) { return mistake == made && backward == made_backward; }
bool hear_scalars(const Scalars& scalars) {
  ToldGraph::newest().scalars = scalars;
  return true;
}

}  // namespace cuda

namespace {

using cuda::Mistake;
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
bool is_told(const ToldDescriptor& told, const Graph::Tensor& wanted) {
  std::vector<std::int64_t> extents(wanted.extents.begin(), wanted.extents.end()),
      strides(wanted.strides.begin(), wanted.strides.end());
  const auto is = [&] {
    return told.attributes.at(CUDNN_ATTR_TENSOR_DIMENSIONS) == extents &&
           told.attributes.at(CUDNN_ATTR_TENSOR_STRIDES) == strides;
  };
  if (told.attributes.at(CUDNN_ATTR_TENSOR_DATA_TYPE) != std::vector<std::int64_t>{type_of(wanted.type)})
    return false;
  if (is()) return true;
  std::swap(extents[2], extents[3]);
  std::swap(strides[2], strides[3]);
  return is();
}

/// Tensors of the graph that no operation uses, or one as something else.
std::vector<int> not_told(const ToldGraph& told, const Graph& graph) {
  std::vector<int> ids;
  const std::vector<ToldUse> uses = told.uses();
  for (const Graph::Tensor& tensor : graph.tensors) {
    const bool is_used =
        std::any_of(uses.begin(), uses.end(), [&](const ToldUse& use) { return use.tensor == tensor.id; });
    if (!is_used || !is_told(*told.tensor(tensor.id), tensor)) ids.push_back(static_cast<int>(tensor.id));
  }
  return ids;
}

/// Whether there is an operation in which one tensor has this role and another that one.
bool has_operation(const ToldGraph& told, cudnnBackendAttributeName_t role, Graph::Id id,
                   cudnnBackendAttributeName_t other_role, Graph::Id other) {
  for (const ToldUse& use : told.uses())
    for (const ToldUse& beside : told.uses())
      if (use.operation == beside.operation && use.role == role && use.tensor == id &&
          beside.role == other_role && beside.tensor == other)
        return true;
  return false;
}

class Attributes : public testing::Test {
 protected:
  void SetUp() override {
    if (!ToldGraph::is_there()) GTEST_SKIP() << "libcudnn.so.9 is not found";
    std::string why_not;
    planner_ = make_planner_on_paper(*find_gpu("h100"), why_not);
    ASSERT_EQ(why_not.find("driver"), std::string::npos)
        << "the one in its place does not serve: " << why_not;
    if (!planner_) GTEST_SKIP() << why_not;
  }
  void TearDown() override { cuda::set_mistake(Mistake::none, false); }
  /// What is told of a graph, made with a mistake in one direction. No plan is made.
  const ToldGraph& told(const Graph& graph, Mistake mistake = Mistake::none, bool in_backward = false) {
    ToldGraph& newest = ToldGraph::newest();
    newest = ToldGraph();
    cuda::set_mistake(mistake, in_backward);
    answer_ = planner_->ask(graph);
    cuda::set_mistake(Mistake::none, false);
    return newest;
  }
  /// The refusal of the graph that was told last, or nothing.
  std::string refusal() const {
    return answer_.refusal.find("no plan is made for a listener") != std::string::npos ? "" : answer_.refusal;
  }

  /// From then on attention is a single operation that says what it does in other words.
  bool is_one_operation() const { return planner_->version() >= 92100; }

 private:
  std::unique_ptr<AttentionPlanner> planner_;
  AttentionAnswer answer_;
};

// No two extents are alike but those of a causal mask from corner to corner.
constexpr AttentionForm padded{2, 8, 8, 72, 100, 64, false, true}, causal{2, 8, 4, 100, 100, 64, true},
    lower_right{2, 8, 8, 72, 100, 64, true}, both{2, 8, 8, 100, 100, 64, true, true},
    whole{2, 8, 8, 72, 128, 64};

Graph graph_for(const AttentionForm& form, bool backward) {
  return graph_of(PlannedAttention(call_of(form), backward));
}

TEST_F(Attributes, OfEveryTensorAreThoseOfTheGraph) {
  for (const bool backward : {false, true}) {
    const Graph graph = graph_for(padded, backward);
    const ToldGraph& all = told(graph);
    EXPECT_EQ(refusal(), "");
    EXPECT_THAT(not_told(all, graph), testing::IsEmpty());
    for (const Graph::Tensor& tensor : graph.tensors) {
      const auto found = [&](auto mistake) {
        Graph wrong = graph;
        mistake(wrong.at(tensor.id));
        return not_told(all, wrong).size() == 1;
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
  const ToldGraph forward = told(graph_for(padded, false)), backward = told(graph_for(padded, true));
  const bool is_one_operation = !forward.operations(CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR).empty();
  if (is_one_operation) {
    for (const auto& [role, id] : {std::pair{CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC, Graph::k},
                                   {CUDNN_ATTR_OPERATION_SDPA_FWD_VDESC, Graph::v},
                                   {CUDNN_ATTR_OPERATION_SDPA_FWD_ODESC, Graph::out},
                                   {CUDNN_ATTR_OPERATION_SDPA_FWD_STATSDESC, Graph::log_sum},
                                   {CUDNN_ATTR_OPERATION_SDPA_FWD_SEQ_LEN_QDESC, Graph::query_lengths},
                                   {CUDNN_ATTR_OPERATION_SDPA_FWD_SEQ_LEN_KVDESC, Graph::key_lengths}})
      EXPECT_TRUE(has_operation(forward, CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC, Graph::q, role, id)) << id;
  }
  const auto multiplies = [](const ToldGraph& graph, Graph::Id a, Graph::Id b) {
    return has_operation(graph, CUDNN_ATTR_OPERATION_MATMUL_ADESC, a, CUDNN_ATTR_OPERATION_MATMUL_BDESC, b);
  };
  const auto gives = [](const ToldGraph& graph, Graph::Id b, Graph::Id c) {
    return has_operation(graph, CUDNN_ATTR_OPERATION_MATMUL_BDESC, b, CUDNN_ATTR_OPERATION_MATMUL_CDESC, c);
  };
  if (!is_one_operation) {
    EXPECT_TRUE(multiplies(forward, Graph::q, Graph::k));
    EXPECT_TRUE(gives(forward, Graph::v, Graph::out));
  }

  if (backward.uses().size() < 20) GTEST_SKIP() << "this cuDNN's backward is one operation";
  EXPECT_TRUE(multiplies(backward, Graph::q, Graph::k)) << "the probabilities again";
  EXPECT_TRUE(multiplies(backward, Graph::dout, Graph::v)) << "their gradient";
  EXPECT_TRUE(gives(backward, Graph::dout, Graph::dv));
  EXPECT_TRUE(gives(backward, Graph::q, Graph::dk));
  EXPECT_TRUE(has_operation(backward, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, Graph::dout,
                            CUDNN_ATTR_OPERATION_POINTWISE_BDESC, Graph::out));
  for (const auto& [role, id] :
       {std::pair{CUDNN_ATTR_OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC, Graph::query_lengths},
        {CUDNN_ATTR_OPERATION_MATMUL_GEMM_N_OVERRIDE_DESC, Graph::key_lengths}})
    EXPECT_TRUE(has_operation(backward, CUDNN_ATTR_OPERATION_MATMUL_ADESC, Graph::q, role, id)) << id;
}

/// Masks, scale, types and the order of sums, worked out score by score from what the library was told.
TEST_F(Attributes, TheGraphComputesTheQuestion) {
  if (is_one_operation()) GTEST_SKIP() << "the single operations of cuDNN 9.21 and newer are not read";
  for (const AttentionForm& form : {whole, padded, causal, lower_right, both})
    for (const bool backward : {false, true}) {
      const Graph graph = graph_for(form, backward);
      const ToldGraph& all = told(graph);
      SCOPED_TRACE(PlannedAttention(call_of(form), backward).text());
      EXPECT_EQ(refusal(), "");
      EXPECT_THAT(differences(all, graph), testing::IsEmpty());
    }
}

/// Every mistake that the planner can be told to make in a direction is noticed there, and nowhere else.
TEST_F(Attributes, MistakesOfThePlannerAreNoticed) {
  if (is_one_operation()) GTEST_SKIP() << "the single operations of cuDNN 9.21 and newer are not read";
  struct Case {
    Mistake mistake;
    const char* what;
    AttentionForm form;
    bool of_backwards_only = false;
  };
  const Case cases[] = {
      {Mistake::no_mask, "the causal mask left out", causal},
      {Mistake::no_mask, "the causal mask left out, beside padding", both},
      {Mistake::other_corner, "a mask into the lower right corner begun in the upper left", lower_right},
      {Mistake::wide_band, "one key behind the diagonal", causal},
      {Mistake::wide_band, "one key behind the diagonal", lower_right},
      {Mistake::no_scale, "the scale not told", causal},
      {Mistake::no_scale, "the scale not told", padded},
      {Mistake::other_scale, "a scale of 1", causal},
      {Mistake::other_scale, "a scale of 1", padded},
      {Mistake::no_lengths, "lengths not told", padded},
      {Mistake::any_order, "sums in any order", causal, true},
      {Mistake::bf16_between, "bf16 between operations", causal},
      {Mistake::bf16_sums, "sums in bf16", causal}};
  for (const Case& one : cases)
    for (const bool mistaken : {false, true})
      for (const bool backward : {false, true}) {
        if (one.of_backwards_only && !mistaken) continue;
        const Graph graph = graph_for(one.form, backward);
        const ToldGraph& all = told(graph, one.mistake, mistaken);
        const bool is_noticed = refusal() != "" || !differences(all, graph).empty();
        EXPECT_EQ(is_noticed, mistaken == backward)
            << one.what << (mistaken ? " in backwards" : " in forwards") << ", looked for in a "
            << PlannedAttention(call_of(one.form), backward).text() << ": " << refusal()
            << testing::PrintToString(differences(all, graph));
      }
}

}  // namespace
}  // namespace mindpipe
