#pragma once
#include <functional>
#include <string>
#include <vector>

#include "operations/products.h"

/// What the processors and GPUs of this machine are, asked without a backend.
namespace mindpipe {

/// The sets of this processor that the kernels can use: "avx2 avx512 avx512+bf16 avx512+amx".
std::string instruction_sets();
/// What graphics processors can be used here: "CUDA 13.0 on a driver for 13.0, NVIDIA H200", or why none.
std::string gpu_devices();
int gpu_count();  ///< 0 also where there is no driver, or no CUDA in this build
/// The libraries of the GPU that this program was built with, by name and version: "cuBLASLt 13.1.0, cuDNN
/// 9.19.0". Empty in a build without CUDA.
std::string gpu_libraries_built_with();
/// The libraries of the GPU that can be opened here. Opening them takes a second where nobody else has done
/// it lately; no GPU is touched. Empty in a build without CUDA.
std::string gpu_libraries_found();
/// Times the library's algorithms for these products on a GPU, `reserved` of whose multiprocessors are left
/// to messages, and writes the table; `say` is told of each.
std::string tuned_products(const std::vector<ProductCall>& calls, int device, int reserved,
                           const std::function<void(const std::string&)>& say);

}  // namespace mindpipe
