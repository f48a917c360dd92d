#include "serves.h"

// In place of libcuda.so.1 for programs that plan on paper: cuDNN compiles kernels while it plans and loads
// them into the driver; here that succeeds and does nothing. There is no GPU in it. No program can load it
// but those that have plans_on_paper, and where something preloaded has that it is a driver that does not
// start.

namespace {

using Result = int;
constexpr Result success = 0, not_found = 500, no_start = 999;

Result answer() { return serves_this_program() ? success : no_start; }

void* own_handle() {
  static void* handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  return handle;
}

}  // namespace

extern "C" {

Result cuInit(unsigned) { return answer(); }
Result cuDriverGetVersion(int* version) {
  *version = 13000;
  return answer();
}
Result cuDeviceGetCount(int* count) {
  *count = 0;
  return answer();
}
Result cuGetProcAddress_v2(const char* name, void** function, int, unsigned long, int* status) {
  *function = own_handle() == nullptr ? nullptr : dlsym(own_handle(), name);
  if (status != nullptr) *status = *function == nullptr ? 1 : 0;
  return *function == nullptr ? not_found : answer();
}
Result cuLibraryLoadData(void** library, const void*, void*, void*, unsigned, void*, void*, unsigned) {
  *library = own_handle();
  return answer();
}
Result cuLibraryGetKernel(void** kernel, void*, const char*) {
  *kernel = own_handle();
  return answer();
}
Result cuLibraryUnload(void*) { return answer(); }
Result cuGetExportTable(const void**, const void*) { return not_found; }

// Functions that cuDNN looks up before it plans, and never calls then.
#define NEVER_CALLED(name) \
  Result name() { return not_found; }
NEVER_CALLED(cuGetErrorName)
NEVER_CALLED(cuGetErrorString)
NEVER_CALLED(cuCtxGetCurrent)
NEVER_CALLED(cuCtxGetLimit)
NEVER_CALLED(cuCtxPopCurrent)
NEVER_CALLED(cuCtxPushCurrent)
NEVER_CALLED(cuStreamGetCtx)
NEVER_CALLED(cuLinkCreate)
NEVER_CALLED(cuLinkAddData)
NEVER_CALLED(cuLinkComplete)
NEVER_CALLED(cuLinkDestroy)
NEVER_CALLED(cuLaunchKernel)
NEVER_CALLED(cuLaunchKernelEx)
NEVER_CALLED(cuLaunchCooperativeKernel)
NEVER_CALLED(cuDeviceGet)
NEVER_CALLED(cuLibraryLoadFromFile)
NEVER_CALLED(cuKernelSetAttribute)
NEVER_CALLED(cuKernelGetAttribute)
NEVER_CALLED(cuOccupancyMaxPotentialClusterSize)

}  // extern "C"
