#include "io/mpi_file.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <utility>

#include "comm/text_of_rank_0.h"
#include "io/file.h"

namespace mindpipe {

/// Keeps the problem of a call that did not succeed; whether it is one.
bool MpiFile::fails(int code, const char* what) {
  if (code == MPI_SUCCESS) return false;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  if (problem_.empty()) problem_ = fmt::format("{}: MPI-IO cannot {}: {}", path_, what, text);
  return true;
}

MpiFile::MpiFile(const World& world, std::string path) : path_(std::move(path)) {
  // Where one rank cannot open the file, MPI-IO lets the others wait for it.
  const File mine(::open(path_.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (any_rank(world, !mine)) {
    problem_ = fmt::format("{}: MPI-IO cannot open the file on every rank", path_);
    return;
  }
  const MPI_Comm ranks = world.comm == MPI_COMM_NULL ? MPI_COMM_SELF : world.comm;
  fails(MPI_File_open(ranks, path_.c_str(), MPI_MODE_RDWR, MPI_INFO_NULL, &file_), "open the file");
}

void MpiFile::write(std::int64_t offset, const void* bytes, std::int64_t count) {
  if (!problem_.empty()) return;
  MPI_Status status;
  int written = 0;
  if (fails(MPI_File_write_at(file_, offset, bytes, static_cast<int>(count), MPI_BYTE, &status), "write"))
    return;
  MPI_Get_count(&status, MPI_BYTE, &written);
  if (written != count) fails(MPI_ERR_NO_SPACE, "write");
}

void MpiFile::close() {
  if (file_ == MPI_FILE_NULL) return;
  fails(MPI_File_sync(file_), "hand on what was written");
  fails(MPI_File_close(&file_), "close the file");
}

}  // namespace mindpipe
