#include "hardware.h"
#include "make_backend.h"
#include "plans/attention_planner.h"

/// What stands in place of kernels/cuda in a build without CUDA.
namespace mindpipe {

std::unique_ptr<Backend> make_cuda_backend(Memory&, int, const std::string&, const AttentionLimit&, int) {
  fail(Exit::bad_configuration,
       "device.kind is cuda, but this build has no CUDA: configure with -DMINDPIPE_CUDA=ON where nvcc is "
       "(make cuda), or use cpu");
}
std::string tuned_products(const std::vector<ProductCall>&, int, int,
                           const std::function<void(const std::string&)>&) {
  fail(Exit::bad_configuration,
       "doctor --tune times products on a GPU, but this build has no CUDA: configure with -DMINDPIPE_CUDA=ON "
       "where nvcc is (make cuda)");
}
std::unique_ptr<AttentionPlanner> make_planner_on_paper(const GpuDescription&, std::string& why_not) {
  why_not = "this build has no CUDA";
  return nullptr;
}
std::string gpu_devices() { return "this build has no CUDA"; }
int gpu_count() { return 0; }
std::string gpu_libraries_built_with() { return ""; }
std::string gpu_libraries_found() { return ""; }

}  // namespace mindpipe
