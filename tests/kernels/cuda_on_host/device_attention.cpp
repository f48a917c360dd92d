// The device code of attention, compiled for the host.
#include "cuda/device/attention_f64.cu"
#include "cuda/device/flash_backward.cu"
#include "cuda/device/flash_forward.cu"
#include "cuda/device/padding.cu"
