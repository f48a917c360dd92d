#pragma once
#include <cudnn_graph.h>

#include <map>
#include <string>
#include <vector>

#include "cuda/planner_mistakes.h"
#include "plans/attention_graph.h"

namespace mindpipe {

/// A descriptor as cuDNN was told of it.
struct ToldDescriptor {
  cudnnBackendDescriptorType_t kind{};
  /// Whole numbers, types and modes; other descriptors by their place among all.
  std::map<cudnnBackendAttributeName_t, std::vector<std::int64_t>> attributes;
};
/// A tensor in its role in an operation.
struct ToldUse {
  cudnnBackendAttributeName_t role;
  std::size_t operation;
  std::int64_t tensor;
};

/// Everything that cuDNN was told of one graph: this program's functions stand in front of the library's,
/// write down what goes by, and hand it on.
class ToldGraph {
 public:
  static ToldGraph& newest();  ///< which is being told
  static bool is_there();      ///< whether cuDNN could be opened

  cuda::Scalars scalars;
  const std::vector<ToldDescriptor>& descriptors() const { return descriptors_; }
  std::vector<ToldUse> uses() const;
  /// A tensor by its number, or none.
  const ToldDescriptor* tensor(std::int64_t id) const;
  std::int64_t number_of(const ToldDescriptor& tensor, cudnnBackendAttributeName_t name,
                         std::int64_t otherwise = -1) const;
  /// The tensor in a role of an operation, or -1.
  std::int64_t operand(const ToldDescriptor& operation, cudnnBackendAttributeName_t role) const;
  /// The operations of a kind, and the one of them that has this tensor in that role, or none.
  std::vector<const ToldDescriptor*> operations(cudnnBackendDescriptorType_t kind) const;
  const ToldDescriptor* operation(cudnnBackendDescriptorType_t kind, cudnnBackendAttributeName_t role,
                                  std::int64_t tensor) const;

  void create(cudnnBackendDescriptor_t at, cudnnBackendDescriptorType_t kind);
  void write_down(cudnnBackendDescriptor_t at, cudnnBackendAttributeName_t name,
                  cudnnBackendAttributeType_t type, std::int64_t count, const void* values);

 private:
  std::vector<ToldDescriptor> descriptors_;
  std::map<cudnnBackendDescriptor_t, std::size_t> places_;  ///< addresses are used again
};

/// How what cuDNN was told differs from the question, each in a few words; nothing where it does not. A
/// graph of one operation is read as far as the operation says what it does.
std::vector<std::string> differences(const ToldGraph& told, const AttentionGraph& wanted);

}  // namespace mindpipe
