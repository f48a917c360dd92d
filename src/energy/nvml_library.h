#pragma once
#include <memory>
#include <string>
#include <vector>

namespace mindpipe {

/// NVIDIA's management library, which is opened when a run asks for it. Each of its functions answers 0 where
/// all went well; those that an older driver lacks are null.
struct NvmlLibrary {
  /// What MIG says of an instance, as far as it is asked for.
  struct Attributes {
    unsigned processors = 0, copies = 0, decoders = 0, encoders = 0, pictures = 0, flows = 0;
    unsigned slices_of_gpu = 0, slices = 0;
    unsigned long long megabytes = 0;
  };

  static constexpr const char* usual = "libnvidia-ml.so.1";
  /// Opens and begins it; else nothing, and `why` says why.
  static std::unique_ptr<NvmlLibrary> open(const std::string& path, std::string& why);
  NvmlLibrary() = default;
  ~NvmlLibrary();
  NvmlLibrary(const NvmlLibrary&) = delete;
  NvmlLibrary& operator=(const NvmlLibrary&) = delete;

  /// The id of a GPU or an instance; empty where it is not told.
  std::string uuid_of(void* device) const;
  /// The GPU or instance of an id; null where this user cannot reach it.
  void* device_of(const std::string& uuid) const;
  /// Ids of all GPUs that this process may reach, in NVML's order.
  std::vector<std::string> all_gpus() const;
  /// Whether a GPU is divided into instances.
  bool is_divided(void* device) const;
  /// "GPU 3", or its id where its number is not told.
  std::string word_for(void* device) const;

  int (*initialize)() = nullptr;
  int (*end)() = nullptr;
  int (*count)(unsigned* devices) = nullptr;
  int (*by_index)(unsigned index, void** device) = nullptr;
  int (*by_uuid)(const char* uuid, void** device) = nullptr;
  int (*by_bus_place)(const char* place, void** device) = nullptr;
  int (*uuid)(void* device, char* text, unsigned size) = nullptr;
  int (*index)(void* device, unsigned* index) = nullptr;
  int (*energy)(void* device, unsigned long long* millijoules) = nullptr;
  int (*power)(void* device, unsigned* milliwatts) = nullptr;
  int (*cap)(void* device, unsigned* milliwatts) = nullptr;
  int (*processes)(void* device, unsigned* count, void* infos) = nullptr;
  int (*clients)(void* device, unsigned* count, void* infos) = nullptr;
  int (*mode)(void* device, unsigned* now, unsigned* later) = nullptr;
  int (*most_instances)(void* device, unsigned* count) = nullptr;
  int (*instance)(void* device, unsigned index, void** instance) = nullptr;
  int (*whole)(void* instance, void** device) = nullptr;
  int (*attributes)(void* instance, Attributes* attributes) = nullptr;

 private:
  void find_all();

  void* opened_ = nullptr;
  bool begun_ = false;
};

}  // namespace mindpipe
