#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "backend.h"
#include "device_description.h"
#include "plans/workspace_on_paper.h"

/// The backends by the names that device.kind knows, and one that only counts.
namespace mindpipe {

/// threads 0: as many as this process may use; instructions "auto", "avx512", "avx2" or "baseline".
std::unique_ptr<Backend> make_cpu_backend(Memory& memory, int threads, const std::string& instructions);

/// On GPU `device` of those that this process may use; `memory` is of kind `device`; `kernels`: a file of
/// doctor --tune, or empty; `limit`: of a library's attention; `reserved`: multiprocessors that products
/// leave to messages. Refused in a build without CUDA.
std::unique_ptr<Backend> make_cuda_backend(Memory& memory, int device, const std::string& kernels = {},
                                           const AttentionLimit& limit = {}, int reserved = 0);

/// A device on paper that takes no time and adds up what operations would cost.
class PricingBackend : public ImmediateBackend {
 public:
  virtual const DeviceDescription& device() const = 0;
  /// Seconds that all operations so far cost; taking a difference prices a part of a model.
  virtual double seconds() const = 0;
  virtual double operations() const = 0;  ///< floating-point operations so far
  /// A digest of the operations since forget_work, of what each moves and computes: equal work has equal
  /// digests, wherever it stands in a model.
  virtual std::uint64_t work() const = 0;
  virtual void forget_work() = 0;
  /// Lets `workspace` hear from here on of every operation that may take working memory.
  virtual void tell(WorkspaceOnPaper& workspace) = 0;
  /// An operation as a GPU does it: bytes that it reads and writes, working memory of its kernels too, and
  /// how many it starts. A library's call counts as one.
  struct Asked {
    std::string_view name;
    double operations = 0, read = 0, written = 0;
    int kernels = 1;
    double seconds = 0;                    ///< arithmetic or memory, whichever takes longer
    const ProductCall* product = nullptr;  ///< none: it is no product of a linear layer
    bool is_attention() const { return name.starts_with("attention"); }
  };
  /// Sets what is called with every operation that is asked for.
  virtual void on_operation(std::function<void(const Asked&)> observer) = 0;
};
/// `wants_many_rows`: as Device says it.
std::unique_ptr<PricingBackend> make_pricing_backend(Memory& memory, const DeviceDescription& device,
                                                     bool wants_many_rows = false);

}  // namespace mindpipe
