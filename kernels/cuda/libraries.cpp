#include <cublasLt.h>
#include <dlfcn.h>
#if __has_include(<cudnn_version.h>)
#include <cudnn_version.h>
#endif

#include "hardware.h"

namespace mindpipe {
namespace {

std::string text_of(std::size_t version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

/// What a library says of itself, by a function that needs no GPU.
std::string found(const std::string& library, const char* function) {
  void* opened = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  const auto ask = reinterpret_cast<std::size_t (*)()>(opened == nullptr ? nullptr : dlsym(opened, function));
  return ask == nullptr ? library + " not found" : text_of(ask());
}

}  // namespace

std::string gpu_libraries_built_with() {
  std::string text =
      "cuBLASLt " + text_of(CUBLAS_VER_MAJOR * 10000 + CUBLAS_VER_MINOR * 100 + CUBLAS_VER_PATCH);
#ifdef CUDNN_MAJOR
  text += ", cuDNN " + text_of(CUDNN_MAJOR * 10000 + CUDNN_MINOR * 100 + CUDNN_PATCHLEVEL);
#endif
  return text;
}

std::string gpu_libraries_found() {
  std::string text =
      "cuBLASLt " + found(fmt::format("libcublasLt.so.{}", CUBLAS_VER_MAJOR), "cublasLtGetVersion");
#ifdef CUDNN_MAJOR
  text += ", cuDNN " + found(fmt::format("libcudnn.so.{}", CUDNN_MAJOR), "cudnnGetVersion");
#endif
  return text;
}

}  // namespace mindpipe
