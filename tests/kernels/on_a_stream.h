#pragma once
#include <gtest/gtest.h>

#include "cuda/queues.h"

namespace mindpipe::testing {

/// work(stream), until it has been done.
template <class Work>
void on_a_stream(const Work& work) {
  Handle<cuda::StreamTraits> stream;
  ASSERT_EQ(cudaStreamCreateWithPriority(stream.receive(), cudaStreamNonBlocking, 0), cudaSuccess);
  work(stream.get());
  ASSERT_EQ(cudaStreamSynchronize(stream.get()), cudaSuccess);
}

}  // namespace mindpipe::testing
