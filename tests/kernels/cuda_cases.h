#pragma once
#include "kernels/cuda_cases/convolution.h"
#include "kernels/cuda_cases/elementwise.h"
#include "kernels/cuda_cases/integers.h"
#include "kernels/cuda_cases/memory.h"
#include "kernels/cuda_cases/pixels.h"
#include "kernels/cuda_cases/rows.h"
#include "kernels/cuda_cases/tokens.h"
#include "kernels/cuda_cases/updates.h"

/// Every operation that the GPU does by kernels of our own, against the CPU. Included behind a class Cuda
/// (shared.h says what it has).
