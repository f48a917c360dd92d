#pragma once
#include <cstdint>
#include <string>

#include "comm/mpi.h"

namespace mindpipe {

/// A file that several ranks write through MPI-IO, for file systems that prefer it. The file is there, with
/// room for all. Problems are kept, not thrown, and what follows one does nothing: all ranks come to the end.
class MpiFile {
 public:
  /// Collective over the world.
  MpiFile(const World& world, std::string path);
  MpiFile(const MpiFile&) = delete;
  MpiFile& operator=(const MpiFile&) = delete;
  ~MpiFile() { close(); }

  void write(std::int64_t offset, const void* bytes, std::int64_t count);
  /// Hands everything to the file system. Collective.
  void close();
  /// "PATH: MPI-IO cannot write: ..."; empty: none.
  const std::string& problem() const { return problem_; }

 private:
  bool fails(int code, const char* what);

  std::string path_, problem_;
  MPI_File file_ = MPI_FILE_NULL;
};

}  // namespace mindpipe
