#include "io/hdf5_parallel.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <utility>

#include "comm/text_of_rank_0.h"
#include "io/file.h"
#include "io/hdf5_handles.h"

namespace mindpipe {

struct ParallelHdf5::Handles {
  Hdf5File file;
  Hdf5Dataset dataset;
  std::string open_path;  ///< of the dataset
};

bool ParallelHdf5::fails(bool failed, const char* what) {
  if (failed && problem_.empty()) problem_ = fmt::format("{}: HDF5 with MPI-IO cannot {}", path_, what);
  return failed;
}

ParallelHdf5::ParallelHdf5(const World& world, const std::string& path)
    : path_(path), handles_(std::make_unique<Handles>()) {
  // Where one rank cannot open the file, MPI-IO lets the others wait for it.
  const File mine(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (fails(any_rank(world, !mine), "open the file on every rank")) return;
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  const Hdf5List access(H5Pcreate(H5P_FILE_ACCESS));
  H5Pset_libver_bounds(access.get(), H5F_LIBVER_V110, H5F_LIBVER_V110);
  const MPI_Comm ranks = world.comm == MPI_COMM_NULL ? MPI_COMM_SELF : world.comm;
  if (fails(H5Pset_fapl_mpio(access.get(), ranks, MPI_INFO_NULL) < 0, "be set up")) return;
  handles_->file = Hdf5File(H5Fopen(path.c_str(), H5F_ACC_RDWR, access.get()));
  fails(!handles_->file || handles_->file.get() < 0, "open the file");
}

ParallelHdf5::~ParallelHdf5() = default;

void ParallelHdf5::write(const CheckpointTensor& tensor, std::int64_t first, std::int64_t count,
                         const void* words) {
  if (!problem_.empty()) return;
  if (handles_->open_path != tensor.path) {
    handles_->dataset = Hdf5Dataset(H5Dopen2(handles_->file.get(), tensor.path.c_str(), H5P_DEFAULT));
    handles_->open_path = tensor.path;
    if (fails(handles_->dataset.get() < 0, "open a tensor")) return;
  }
  const auto at = static_cast<hsize_t>(first), size = static_cast<hsize_t>(count);
  hsize_t begin[2] = {at, 0}, extent[2] = {size, 1};
  const int rank = static_cast<int>(tensor.shape.size());
  if (rank == 2) {
    const auto width = static_cast<hsize_t>(tensor.shape[1]);
    begin[0] = at / width;
    begin[1] = at % width;
    extent[0] = size < width ? 1 : size / width;
    extent[1] = size < width ? size : width;
  }
  const Hdf5Space there(H5Dget_space(handles_->dataset.get())), here(H5Screate_simple(rank, extent, nullptr));
  const Hdf5List transfer(H5Pcreate(H5P_DATASET_XFER));
  H5Pset_dxpl_mpio(transfer.get(), H5FD_MPIO_INDEPENDENT);
  if (fails(H5Sselect_hyperslab(there.get(), H5S_SELECT_SET, begin, nullptr, extent, nullptr) < 0,
            "choose elements"))
    return;
  fails(H5Dwrite(handles_->dataset.get(), H5T_IEEE_F32LE, here.get(), there.get(), transfer.get(), words) < 0,
        "write a tensor");
}

void ParallelHdf5::close() {
  handles_->dataset = {};
  if (handles_->file && handles_->file.get() >= 0)
    fails(H5Fclose(std::exchange(*handles_->file.receive(), H5I_INVALID_HID)) < 0, "close the file");
}

}  // namespace mindpipe
