#include "paper/told.h"

#include <dlfcn.h>

#include <cstring>
#include <set>

namespace cudnn_frontend {
extern void* cudnn_dlhandle;  // in which the frontend looks up functions of cuDNN
}

namespace mindpipe {
namespace {

/// The library, in front of which this program stands for the frontend.
void* stand_in_front() {
  void* library = dlopen("libcudnn.so.9", RTLD_NOW | RTLD_GLOBAL);
  if (library != nullptr) cudnn_frontend::cudnn_dlhandle = dlopen(nullptr, RTLD_NOW);
  return library;
}
void* const library = stand_in_front();

template <class Function>
Function real(const char* name) {
  return reinterpret_cast<Function>(dlsym(library, name));
}

/// Bytes of an element that is a whole number, a mode or an address; 0: it is not read.
std::size_t size_of(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_BOOLEAN:
    case CUDNN_TYPE_CHAR:
      return 1;
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
      return 8;
    case CUDNN_TYPE_FLOAT:
    case CUDNN_TYPE_DOUBLE:
    case CUDNN_TYPE_FRACTION:
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_VOID_PTR:
      return 0;
    default:
      return 4;
  }
}

}  // namespace

ToldGraph& ToldGraph::newest() {
  static ToldGraph graph;
  return graph;
}
bool ToldGraph::is_there() { return library != nullptr; }

void ToldGraph::create(cudnnBackendDescriptor_t at, cudnnBackendDescriptorType_t kind) {
  places_[at] = descriptors_.size();
  descriptors_.push_back({kind, {}});
}

void ToldGraph::write_down(cudnnBackendDescriptor_t at, cudnnBackendAttributeName_t name,
                           cudnnBackendAttributeType_t type, std::int64_t count, const void* values) {
  const auto place = places_.find(at);
  if (place == places_.end()) return;  // a graph that was forgotten
  const std::size_t size = size_of(type);
  auto& told = descriptors_[place->second].attributes[name];
  told.clear();
  for (std::int64_t i = 0; size != 0 && i < count; ++i) {
    std::int64_t number = 0;
    std::memcpy(&number, static_cast<const char*>(values) + static_cast<std::size_t>(i) * size, size);
    if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
      const auto other = places_.find(reinterpret_cast<cudnnBackendDescriptor_t>(number));
      number = other == places_.end() ? -1 : static_cast<std::int64_t>(other->second);
    }
    told.push_back(number);
  }
}

std::int64_t ToldGraph::number_of(const ToldDescriptor& descriptor, cudnnBackendAttributeName_t name,
                                  std::int64_t otherwise) const {
  const auto at = descriptor.attributes.find(name);
  return at == descriptor.attributes.end() || at->second.size() != 1 ? otherwise : at->second[0];
}

const ToldDescriptor* ToldGraph::tensor(std::int64_t id) const {
  for (const ToldDescriptor& one : descriptors_)
    if (one.kind == CUDNN_BACKEND_TENSOR_DESCRIPTOR && number_of(one, CUDNN_ATTR_TENSOR_UNIQUE_ID) == id)
      return &one;
  return nullptr;
}

std::vector<ToldUse> ToldGraph::uses() const {
  std::vector<ToldUse> uses;
  for (std::size_t i = 0; i < descriptors_.size(); ++i)
    for (const auto& [role, values] : descriptors_[i].attributes)
      if (const std::int64_t id = operand(descriptors_[i], role); id >= 0) uses.push_back({role, i, id});
  return uses;
}

std::int64_t ToldGraph::operand(const ToldDescriptor& operation, cudnnBackendAttributeName_t role) const {
  // Roles of operations have numbers of their own, beside those of what is set on plain descriptors.
  static const std::set<cudnnBackendDescriptorType_t> operations{
      CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR,
      CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR,
      CUDNN_BACKEND_OPERATION_RNG_DESCRIPTOR,       CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR,
      CUDNN_BACKEND_OPERATION_SDPA_BWD_DESCRIPTOR};
  if (!operations.contains(operation.kind)) return -1;
  const std::int64_t place = number_of(operation, role);
  if (place < 0 || place >= static_cast<std::int64_t>(descriptors_.size())) return -1;
  const ToldDescriptor& used = descriptors_[static_cast<std::size_t>(place)];
  return used.kind == CUDNN_BACKEND_TENSOR_DESCRIPTOR ? number_of(used, CUDNN_ATTR_TENSOR_UNIQUE_ID) : -1;
}

std::vector<const ToldDescriptor*> ToldGraph::operations(cudnnBackendDescriptorType_t kind) const {
  std::vector<const ToldDescriptor*> found;
  for (const ToldDescriptor& one : descriptors_)
    if (one.kind == kind) found.push_back(&one);
  return found;
}

const ToldDescriptor* ToldGraph::operation(cudnnBackendDescriptorType_t kind,
                                           cudnnBackendAttributeName_t role, std::int64_t tensor) const {
  for (const ToldDescriptor* one : operations(kind))
    if (operand(*one, role) == tensor) return one;
  return nullptr;
}

}  // namespace mindpipe

extern "C" cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t kind,
                                                      cudnnBackendDescriptor_t* descriptor) {
  static const auto create =
      mindpipe::real<decltype(&cudnnBackendCreateDescriptor)>("cudnnBackendCreateDescriptor");
  const cudnnStatus_t answer = create(kind, descriptor);
  if (answer == CUDNN_STATUS_SUCCESS) mindpipe::ToldGraph::newest().create(*descriptor, kind);
  return answer;
}

extern "C" cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                                  cudnnBackendAttributeName_t name,
                                                  cudnnBackendAttributeType_t type, std::int64_t count,
                                                  const void* values) {
  static const auto set = mindpipe::real<decltype(&cudnnBackendSetAttribute)>("cudnnBackendSetAttribute");
  mindpipe::ToldGraph::newest().write_down(descriptor, name, type, count, values);
  return set(descriptor, name, type, count, values);
}
