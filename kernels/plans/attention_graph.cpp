#include "plans/attention_graph.h"

#include <algorithm>

#include "core/check.h"

namespace mindpipe {
namespace {

using Graph = AttentionGraph;

/// Heads of [samples, rows, all heads, width].
Graph::Tensor heads(Graph::Id id, const PlannedAttention& c, const PlannedAttention::Strides& view,
                    std::int64_t count, std::int64_t rows, bool is_output = false) {
  return {id,
          Graph::Type::bf16,
          {c.samples, count, rows, c.width},
          {view.sample, c.width, view.row, 1},
          is_output};
}

}  // namespace

Graph::Tensor& AttentionGraph::at(Id id) {
  const auto found =
      std::find_if(tensors.begin(), tensors.end(), [&](const Tensor& tensor) { return tensor.id == id; });
  MP_CHECK(found != tensors.end(), "attention: the graph has no tensor {}", static_cast<int>(id));
  return *found;
}

AttentionGraph graph_of(const PlannedAttention& c) {
  AttentionGraph graph;
  graph.backward = graph.deterministic = c.backward;
  graph.padded = c.padded;
  graph.scale = static_cast<float>(c.scale);
  if (c.causal)
    graph.diagonal = c.queries == c.keys ? Graph::Diagonal::upper_left : Graph::Diagonal::lower_right;
  graph.tensors = {heads(Graph::q, c, c.q, c.query_heads, c.queries),
                   heads(Graph::k, c, c.k, c.key_heads, c.keys),
                   heads(Graph::v, c, c.v, c.key_heads, c.keys),
                   heads(Graph::out, c, c.out, c.query_heads, c.queries, !c.backward),
                   {Graph::log_sum,
                    Graph::Type::f32,
                    {c.samples, c.query_heads, c.queries, 1},
                    {c.query_heads * c.queries, c.queries, 1, 1},
                    !c.backward}};
  if (c.backward)
    graph.tensors.insert(graph.tensors.end(), {heads(Graph::dout, c, c.dout, c.query_heads, c.queries),
                                               heads(Graph::dq, c, c.dq, c.query_heads, c.queries, true),
                                               heads(Graph::dk, c, c.dk, c.key_heads, c.keys, true),
                                               heads(Graph::dv, c, c.dv, c.key_heads, c.keys, true)});
  if (c.padded)
    for (const Graph::Id id : {Graph::query_lengths, Graph::key_lengths})
      graph.tensors.push_back({id, Graph::Type::i32, {c.samples, 1, 1, 1}, {1, 1, 1, 1}});
  return graph;
}

}  // namespace mindpipe
