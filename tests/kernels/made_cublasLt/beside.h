#pragma once
#include "kernels/made_cublasLt/product.h"

/// The real library, where it is opened beside the one that stands in: what needs no device is asked of both.
namespace made_cublasLt::beside {

/// Begins a description, or a layout, of the real library; its number.
std::uint32_t describe(cublasComputeType_t compute, cudaDataType_t scale);
std::uint32_t layout(cudaDataType_t type, std::uint64_t rows, std::uint64_t cols, std::int64_t leading);
void set(std::uint32_t description, cublasLtMatmulDescAttributes_t name, const void* value,
         std::size_t bytes);
/// Begins a preference, and sets what it asks for.
void prefer();
void prefer(cublasLtMatmulPreferenceAttributes_t name, const void* value, std::size_t bytes);
/// Reads back what the real library has understood, and notes where it differs.
void compare(const Product& product);

}  // namespace made_cublasLt::beside
