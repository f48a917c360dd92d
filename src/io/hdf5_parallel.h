#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "comm/mpi.h"
#include "io/manifest.h"

namespace mindpipe {

/// Writes elements of a checkpoint's tensors through the MPI-IO driver of HDF5, for file systems that prefer
/// it. The file is there, with the place of every tensor taken. Problems are kept, not thrown: all ranks come
/// to the end.
class ParallelHdf5 {
 public:
  /// Opens a file for writing by all ranks. Collective over the world.
  ParallelHdf5(const World& world, const std::string& path);
  ParallelHdf5(const ParallelHdf5&) = delete;
  ParallelHdf5& operator=(const ParallelHdf5&) = delete;
  ~ParallelHdf5();

  /// Writes `count` elements of a tensor from `first` on: whole rows, or a part of one row.
  void write(const CheckpointTensor& tensor, std::int64_t first, std::int64_t count, const void* words);
  /// Closes the file. Collective.
  void close();
  const std::string& problem() const { return problem_; }

 private:
  struct Handles;
  bool fails(bool failed, const char* what);

  std::string path_, problem_;
  std::unique_ptr<Handles> handles_;
};

}  // namespace mindpipe
