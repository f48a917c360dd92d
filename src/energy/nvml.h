#pragma once
#include <functional>
#include <memory>

#include "energy/meter.h"

namespace mindpipe {

/// Energy of GPUs from NVIDIA's management library, which is opened when a run asks for it.
class Nvml : public Meter {
 public:
  /// Which GPUs: those that CUDA_VISIBLE_DEVICES names, else the first `count`.
  struct Wanted {
    std::string visible;
    int count = 1;
  };

  /// Opens `library`. Where that or a GPU is not there, there is no meter, and `why` says why.
  static std::unique_ptr<Nvml> open(const std::string& library, const Wanted& wanted, std::string& why);

  ~Nvml() override;
  double joules() override;
  bool is_own() const override { return true; }
  std::vector<std::string> troubles() const override { return troubles_; }
  std::string describe() const override;
  std::vector<std::string> caps() const override;

 private:
  struct Library;
  struct Gpu {
    void* handle = nullptr;
    std::string name;
    bool counts = false;           ///< else its power is read and integrated
    unsigned long long first = 0;  ///< millijoules
    double joules = 0, watts = 0;
    std::int64_t last_ns = 0;
    bool gone = false;
  };
  bool add(void* handle, const std::string& name);
  void read(Gpu& gpu);

  std::unique_ptr<Library> library_;
  std::vector<Gpu> gpus_;
  std::vector<std::string> troubles_;
};

}  // namespace mindpipe
