#pragma once
#include <memory>

#include "energy/gpus.h"
#include "energy/meter.h"
#include "energy/nvml_library.h"

namespace mindpipe {

/// Energy of GPUs from NVIDIA's management library, which is opened when a run asks for it. A GPU on which
/// others compute too is divided equally among the processes there, and one of instances by their slices.
class Nvml : public Meter {
 public:
  /// Opens `library` for GPUs, each of which is named once. Where that or a GPU is not there, there is no
  /// meter, and `why` says why.
  static std::unique_ptr<Nvml> open(const std::string& library, const std::vector<UsedGpu>& gpus,
                                    std::string& why);

  double joules() override;
  bool is_own() const override { return true; }
  bool is_divided() const override;
  std::vector<std::string> troubles() const override { return troubles_; }
  std::string describe() const override;

 private:
  struct Gpu {
    void* counted = nullptr;  ///< the GPU whose energy is told
    void* used = nullptr;     ///< the GPU, or an instance of it
    std::string name;
    int ranks = 1;
    double slices = 1;            ///< the part of the GPU that the instance is
    double share = 1;             ///< the job's part of that, among the processes there
    bool divided = false;         ///< others used it, or another instance of it
    bool told = false;            ///< whether it was said that others compute there
    bool counts = false;          ///< else its power is read and integrated
    unsigned long long last = 0;  ///< millijoules
    double joules = 0, watts = 0;
    std::int64_t last_ns = 0;
    bool gone = false;
  };
  bool add(const UsedGpu& gpu);
  void read(Gpu& gpu);
  double share_of(Gpu& gpu);

  std::unique_ptr<NvmlLibrary> library_;
  std::vector<Gpu> gpus_;
  std::vector<std::string> troubles_;
};

}  // namespace mindpipe
