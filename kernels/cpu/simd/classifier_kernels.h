#pragma once
#include <cstdint>

#include "cpu/isa.h"
#include "operations/calls.h"

namespace mindpipe {

/// Arrays are by dtype of the logits (f64, f32) or gradient (f64, f32, bf16). Work is on rows [first, last).
struct ClassifierKernels {
  void (*row_maximum[2])(const void* logits, const LogitShard& shard, void* maximum, std::int64_t first,
                         std::int64_t last);
  void (*softmax_sums[2])(const void* logits, const LogitShard& shard, const std::int32_t* targets,
                          const void* maximum, void* sums, void* of_target, void* total, std::int64_t first,
                          std::int64_t last);
  void (*target_rank[2])(const void* logits, const LogitShard& shard, const std::int32_t* targets,
                         const void* of_target, void* ranks, std::int64_t first, std::int64_t last);
  /// dlogits = exp(logit - maximum) factor / sum - uniform, less `of_target` in the target's column
  void (*backward[3])(const void* logits, const LogitShard& shard, const std::int32_t* targets,
                      const void* maximum, const void* sums, double factor, double uniform, double of_target,
                      void* dlogits, std::int64_t first, std::int64_t last);
};
MINDPIPE_DECLARE_KERNELS(ClassifierKernels, classifier_kernels)

}  // namespace mindpipe
