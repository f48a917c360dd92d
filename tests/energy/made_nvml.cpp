// A library with NVML's functions for tests: GPUs of a known power that count as the driver does, in steps of
// 100 ms.
#include <chrono>
#include <cstdlib>

namespace {

double seconds() {
  static const auto start = std::chrono::steady_clock::now();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// 250 W and 400 W in turns of a second, 325 W on the average of two.
double joules_at(double time) {
  const double turns = static_cast<double>(static_cast<long>(time / 2)), rest = time - 2 * turns;
  return 650 * turns + (rest < 1 ? 250 * rest : 250 + 400 * (rest - 1));
}

bool says(const char* name) { return std::getenv(name) != nullptr; }

int devices[2];

}  // namespace

extern "C" {

int nvmlInit_v2() { return says("MADE_NVML_REFUSES") ? 15 : 0; }
int nvmlShutdown() { return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  if (index >= 2) return 2;
  *device = &devices[index];
  return 0;
}
int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) {
  if (uuid[0] != 'G') return 2;
  *device = &devices[1];
  return 0;
}
int nvmlDeviceGetTotalEnergyConsumption(void*, unsigned long long* millijoules) {
  if (says("MADE_NVML_HAS_NO_COUNTER")) return 3;
  const double step = 0.1, time = step * static_cast<double>(static_cast<long>(seconds() / step));
  *millijoules = static_cast<unsigned long long>(5e9 + 1000 * joules_at(time));
  return says("MADE_NVML_GOES") && seconds() > 0.5 ? 15 : 0;
}
int nvmlDeviceGetPowerUsage(void*, unsigned* milliwatts) {
  *milliwatts = 300'000;
  return 0;
}
int nvmlDeviceGetEnforcedPowerLimit(void*, unsigned* milliwatts) {
  *milliwatts = 700'000;
  return 0;
}
}
