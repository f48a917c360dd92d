#include "io/hdf5_skeleton.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "io/hdf5_steady_driver.h"

namespace mindpipe {
namespace {

class Skeleton {
 public:
  Skeleton(const std::string& path, SteadyDriver& driver);
  void group(const std::string& name);
  void tensor(CheckpointTensor& tensor);
  void attribute(const Hdf5Group& at, const char* name, const std::string& text);
  void attribute(const Hdf5Group& at, const char* name, std::int64_t number) {
    write(at, name, H5T_STD_I64LE, scalar(), &number, H5T_NATIVE_INT64);
  }
  void attribute(const Hdf5Group& at, const char* name, double number) {
    write(at, name, H5T_IEEE_F64LE, scalar(), &number, H5T_NATIVE_DOUBLE);
  }
  void counters(const CheckpointUnit& unit);
  void table(const std::vector<CheckpointTensor>& tensors);
  /// Fails where the file does not get to be whole. Groups that `open` gave are closed before.
  void close() { hdf5(H5Fclose(std::exchange(*file_.receive(), H5I_INVALID_HID)), path_, "write the file"); }
  Hdf5Group open(const char* name) {
    return Hdf5Group(hdf5(H5Gopen2(file_.get(), name, H5P_DEFAULT), path_, "open a group"));
  }

 private:
  static Hdf5Space scalar() { return Hdf5Space(H5Screate(H5S_SCALAR)); }
  static Hdf5Type fixed_text(std::size_t bytes) {
    Hdf5Type type(H5Tcopy(H5T_C_S1));
    H5Tset_size(type.get(), std::max<std::size_t>(1, bytes));
    H5Tset_strpad(type.get(), H5T_STR_NULLPAD);
    H5Tset_cset(type.get(), H5T_CSET_UTF8);
    return type;
  }
  void write(const Hdf5Group& at, const char* name, hid_t stored, const Hdf5Space& space, const void* value,
             hid_t given);
  Hdf5Dataset dataset(const std::string& name, hid_t type, const std::vector<hsize_t>& extents);

  std::string path_;
  Hdf5List layout_;
  Hdf5File file_;
};

/// Makes a file in which nothing is a time, and that HDF5 1.10 and later can read.
Skeleton::Skeleton(const std::string& path, SteadyDriver& driver) : path_(path) {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);  // our own sentences say what failed
  const Hdf5List access(H5Pcreate(H5P_FILE_ACCESS)), creation(H5Pcreate(H5P_FILE_CREATE));
  driver.serve(access);
  hdf5(H5Pset_libver_bounds(access.get(), H5F_LIBVER_V110, H5F_LIBVER_V110), path_, "choose its format");
  H5Pset_alignment(access.get(), 64 << 10, 4096);  // large tensors begin with a page
  H5Pset_obj_track_times(creation.get(), false);
  file_ = Hdf5File(
      hdf5(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation.get(), access.get()), path_, "create the file"));
  layout_ = Hdf5List(H5Pcreate(H5P_DATASET_CREATE));
  H5Pset_layout(layout_.get(), H5D_CONTIGUOUS);
  H5Pset_alloc_time(layout_.get(), H5D_ALLOC_TIME_EARLY);
  H5Pset_fill_time(layout_.get(), H5D_FILL_TIME_NEVER);
  H5Pset_obj_track_times(layout_.get(), false);
}

void Skeleton::group(const std::string& name) {
  const Hdf5List creation(H5Pcreate(H5P_GROUP_CREATE));
  H5Pset_obj_track_times(creation.get(), false);
  const Hdf5Group made(hdf5(H5Gcreate2(file_.get(), name.c_str(), H5P_DEFAULT, creation.get(), H5P_DEFAULT),
                            path_, "create a group"));
}

Hdf5Dataset Skeleton::dataset(const std::string& name, hid_t type, const std::vector<hsize_t>& extents) {
  const Hdf5Space space(H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr));
  return Hdf5Dataset(
      hdf5(H5Dcreate2(file_.get(), name.c_str(), type, space.get(), H5P_DEFAULT, layout_.get(), H5P_DEFAULT),
           path_, "create a dataset"));
}

void Skeleton::tensor(CheckpointTensor& tensor) {
  const Hdf5Dataset made = dataset(tensor.path, H5T_IEEE_F32LE, {tensor.shape.begin(), tensor.shape.end()});
  tensor.offset = static_cast<std::int64_t>(H5Dget_offset(made.get()));
}

void Skeleton::write(const Hdf5Group& at, const char* name, hid_t stored, const Hdf5Space& space,
                     const void* value, hid_t given) {
  const Hdf5Attribute made(hdf5(H5Acreate2(at.get(), name, stored, space.get(), H5P_DEFAULT, H5P_DEFAULT),
                                path_, "create an attribute"));
  hdf5(H5Awrite(made.get(), given, value), path_, "write an attribute");
}

void Skeleton::attribute(const Hdf5Group& at, const char* name, const std::string& text) {
  const Hdf5Type type = fixed_text(text.size());
  write(at, name, type.get(), scalar(), text.c_str(), type.get());
}

void Skeleton::counters(const CheckpointUnit& unit) {
  const std::int64_t counts[] = {unit.version, unit.uses, unit.applied};
  const Hdf5Dataset made = dataset("/units/" + unit.name, H5T_STD_I64LE, {std::size(counts)});
  hdf5(H5Dwrite(made.get(), H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, counts), path_,
       "write a unit's counters");
}

/// Columns: path, rows, columns (0: a vector), dtype, offset, bytes.
void Skeleton::table(const std::vector<CheckpointTensor>& tensors) {
  std::size_t longest = 1;
  for (const CheckpointTensor& tensor : tensors) longest = std::max(longest, tensor.path.size());
  constexpr std::size_t word = sizeof(std::int64_t);
  const std::size_t size = longest + 4 * word + 4;
  const Hdf5Type path = fixed_text(longest), dtype = fixed_text(4), row(H5Tcreate(H5T_COMPOUND, size));
  H5Tinsert(row.get(), "path", 0, path.get());
  H5Tinsert(row.get(), "dtype", longest, dtype.get());
  const char* const numbers[] = {"rows", "columns", "offset", "bytes"};
  for (std::size_t i = 0; i < 4; ++i) H5Tinsert(row.get(), numbers[i], longest + 4 + i * word, H5T_STD_I64LE);
  std::vector<char> rows(tensors.size() * size, '\0');
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const CheckpointTensor& tensor = tensors[i];
    const std::int64_t values[] = {tensor.shape[0], tensor.shape.size() > 1 ? tensor.shape[1] : 0,
                                   tensor.offset, tensor.bytes};
    char* const to = rows.data() + i * size;
    std::memcpy(to, tensor.path.data(), tensor.path.size());
    std::memcpy(to + longest, "f32", 3);
    std::memcpy(to + longest + 4, values, sizeof values);
  }
  const Hdf5Dataset made = dataset("/meta/tensors", row.get(), {tensors.size()});
  hdf5(H5Dwrite(made.get(), row.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, rows.data()), path_,
       "write the table of tensors");
}

void add_groups(Skeleton& skeleton, const std::vector<CheckpointTensor>& tensors) {
  for (const char* name : {"/model", "/optim", "/units", "/data", "/meta"}) skeleton.group(name);
  std::string last;
  for (const CheckpointTensor& tensor : tensors) {
    const std::string group = tensor.path.substr(0, tensor.path.rfind('/'));
    if (group != last && group != "/model") skeleton.group(group);
    last = group;
  }
}

void add_attributes(Skeleton& skeleton, const Manifest& manifest) {
  const RunProgress& p = manifest.progress;
  const Hdf5Group root = skeleton.open("/"), data = skeleton.open("/data");
  skeleton.attribute(root, "format", "mindpipe checkpoint");
  skeleton.attribute(root, "version", std::int64_t{1});
  skeleton.attribute(root, "created_by", manifest.created_by);
  skeleton.attribute(root, "step", p.step);
  skeleton.attribute(root, "applied_steps", p.applied);
  skeleton.attribute(root, "tokens", p.tokens);
  if (p.best_loss) skeleton.attribute(root, "best_loss", *p.best_loss);
  if (p.best_loss) skeleton.attribute(root, "best_step", p.best_step);
  skeleton.attribute(root, "configuration", nlohmann::json(manifest.settings).dump());
  skeleton.attribute(data, "samples", p.samples);
  skeleton.attribute(data, "planned_samples", p.planned_samples);
  skeleton.attribute(data, "seed", manifest.settings.at("seed"));
}

void write_all(const std::string& path, Manifest& manifest, SteadyDriver& driver) {
  Skeleton skeleton(path, driver);
  add_groups(skeleton, manifest.tensors);
  add_attributes(skeleton, manifest);
  for (CheckpointTensor& tensor : manifest.tensors) skeleton.tensor(tensor);
  for (const CheckpointUnit& unit : manifest.units) skeleton.counters(unit);
  skeleton.table(manifest.tensors);
  skeleton.close();
}

}  // namespace

void write_hdf5_skeleton(const std::string& path, Manifest& manifest) {
  SteadyDriver driver;
  try {
    write_all(path, manifest, driver);
  } catch (const Error&) {  // of what HDF5 finds where nothing could be written, the first reason counts
    if (driver.problem().empty()) throw;
  }
  MP_REQUIRE(driver.problem().empty(), Exit::io_error, "{}: {}", path, driver.problem());
  struct stat status {};
  MP_REQUIRE(::stat(path.c_str(), &status) == 0, Exit::io_error, "{}: it is gone while it is written", path);
  manifest.file_bytes = status.st_size;
}

}  // namespace mindpipe
