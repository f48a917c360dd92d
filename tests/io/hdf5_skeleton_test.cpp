#include "io/hdf5_skeleton.h"

#include <gmock/gmock.h>

#include <chrono>
#include <thread>

#include "io/checkpoint_sample.h"
#include "io/hdf5_handles.h"

namespace mindpipe {
namespace {

class Hdf5Skeleton : public CheckpointFolder {
 protected:
  /// A manifest of tensors small and large, which do not know yet where they lie.
  static Manifest before_the_file() {
    Manifest m = sample_manifest();
    m.tensors = {{"/model/a.weight", {300, 200}, 0, 240'000},
                 {"/model/a.bias", {5}, 0, 20},
                 {"/model/b.weight", {7, 3}, 0, 84},
                 {"/optim/m/a.weight", {300, 200}, 0, 240'000},
                 {"/optim/m/a.bias", {5}, 0, 20},
                 {"/optim/v/a.weight", {300, 200}, 0, 240'000}};
    m.file_bytes = 0;
    m.crcs.clear();
    return m;
  }
  Manifest write(const std::string& name, Manifest manifest) const {
    write_hdf5_skeleton(path(name), manifest);
    return manifest;
  }
};

TEST_F(Hdf5Skeleton, TwiceHasTheSameBytes) {
  const Manifest one = write("one.h5", before_the_file());
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));  // a time would be another one by now
  const Manifest two = write("two.h5", before_the_file());
  EXPECT_EQ(text_of(one), text_of(two));
  EXPECT_TRUE(bytes_of(path("one.h5")) == bytes_of(path("two.h5")));
}

TEST_F(Hdf5Skeleton, EveryTensorHasItsPlaceAndTheManifestIsSound) {
  Manifest m = write("state.h5", before_the_file());
  EXPECT_EQ(m.file_bytes, static_cast<std::int64_t>(std::filesystem::file_size(path("state.h5"))));
  m.crcs.assign(static_cast<std::size_t>((m.file_bytes + Manifest::block - 1) / Manifest::block), 0);
  EXPECT_EQ(refusal([&] { parse_manifest(text_of(m), "a"); }), "accepted");
  for (const CheckpointTensor& tensor : m.tensors) {
    EXPECT_GT(tensor.offset, 0) << tensor.path;
    if (tensor.bytes >= (64 << 10)) {
      EXPECT_EQ(tensor.offset % 4096, 0) << tensor.path << " begins with a page";
    }
  }
}

TEST_F(Hdf5Skeleton, ATensorWrittenAtItsPlaceIsReadByTheLibrary) {
  const Manifest m = write("state.h5", before_the_file());
  std::fstream file(path("state.h5"), std::ios::binary | std::ios::in | std::ios::out);
  std::vector<std::vector<float>> wanted;
  for (const CheckpointTensor& tensor : m.tensors) {
    std::vector<float>& values = wanted.emplace_back();
    for (std::int64_t i = 0; i < tensor.bytes / 4; ++i)
      values.push_back(static_cast<float>(i) + 0.25f * static_cast<float>(wanted.size()));
    file.seekp(tensor.offset).write(reinterpret_cast<const char*>(values.data()), tensor.bytes);
  }
  file.close();
  const Hdf5File opened(H5Fopen(path("state.h5").c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
  for (std::size_t i = 0; i < m.tensors.size(); ++i) {
    const Hdf5Dataset dataset(H5Dopen2(opened.get(), m.tensors[i].path.c_str(), H5P_DEFAULT));
    ASSERT_GE(dataset.get(), 0) << m.tensors[i].path;
    const Hdf5Space space(H5Dget_space(dataset.get()));
    std::vector<hsize_t> extents(static_cast<std::size_t>(H5Sget_simple_extent_ndims(space.get())));
    H5Sget_simple_extent_dims(space.get(), extents.data(), nullptr);
    EXPECT_EQ(std::vector<std::int64_t>(extents.begin(), extents.end()), m.tensors[i].shape);
    std::vector<float> got(wanted[i].size());
    ASSERT_GE(H5Dread(dataset.get(), H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, got.data()), 0);
    EXPECT_EQ(got, wanted[i]) << m.tensors[i].path;
  }
}

TEST_F(Hdf5Skeleton, NothingOfTheGridIsInTheFile) {
  Manifest other = before_the_file();
  other.grid = {{"tensor", 8}, {"data", 1}, {"pipeline", 3}, {"supernet", 1}};
  other.restarts = 77;
  write("one.h5", before_the_file());
  write("two.h5", other);
  EXPECT_TRUE(bytes_of(path("one.h5")) == bytes_of(path("two.h5")));
}

TEST_F(Hdf5Skeleton, AFileThatCannotBeMadeIsNamed) {
  Manifest manifest = before_the_file();
  EXPECT_THAT(refusal([&] { write_hdf5_skeleton(path("none/state.h5"), manifest); }, Exit::io_error),
              testing::HasSubstr(path("none/state.h5") + ": opening failed"));
}

}  // namespace
}  // namespace mindpipe
