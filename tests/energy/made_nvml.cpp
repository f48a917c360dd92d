// A library with NVML's functions for tests: GPUs of a known power that count as the driver does, in steps of
// 100 ms; or, where MADE_NVML_WORK names a file, devices whose power goes by what they do, and that count at
// once.
#include <fcntl.h>
#include <sys/mman.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "energy/made_work.h"

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

int devices[mindpipe::MadeWork::most_devices];
/// Instances of device 0 where MADE_NVML_MIG is set, of three and four slices.
int instances[2];

const mindpipe::MadeWork* work() {
  static const mindpipe::MadeWork* mapped = [] {
    const char* path = std::getenv("MADE_NVML_WORK");
    if (path == nullptr) return static_cast<mindpipe::MadeWork*>(nullptr);
    return static_cast<mindpipe::MadeWork*>(
        mmap(nullptr, sizeof(mindpipe::MadeWork), PROT_READ, MAP_SHARED, open(path, O_RDONLY), 0));
  }();
  return mapped;
}

double joules_of_work(const void* device) {
  using mindpipe::MadeWork;
  const double busy = work()->busy_seconds[static_cast<const int*>(device) - devices];
  return MadeWork::busy_watts * busy + MadeWork::waiting_watts * (seconds() - busy);
}

int number_in(const char* name, int otherwise) {
  return says(name) ? std::atoi(std::getenv(name)) : otherwise;
}

int device_count() {
  return number_in("MADE_NVML_GPUS", work() != nullptr ? mindpipe::MadeWork::most_devices : 2);
}
int number_of(const void* device) { return static_cast<int>(static_cast<const int*>(device) - devices); }
bool is_instance(const void* device) { return device == &instances[0] || device == &instances[1]; }

/// Whether a process may reach a device: all, or, as in a job step that fences GPUs off, the one that
/// MADE_NVML_FENCE says.
bool is_reached(int number) { return !says("MADE_NVML_FENCE") || number == number_in("MADE_NVML_FENCE", 0); }

/// "GPU-2f3a0001-made"; the first two begin alike.
void write_uuid(const void* device, char* text, unsigned size) {
  if (is_instance(device))
    std::snprintf(text, size, "MIG-77aa%04d-made",
                  static_cast<int>(static_cast<const int*>(device) - instances));
  else
    std::snprintf(text, size, "GPU-%s%04d-made", number_of(device) < 2 ? "2f3a" : "90bc", number_of(device));
}

/// Gives what has been asked for as a list of so many processes.
int list_of(int length, unsigned* count, const void* infos) {
  const bool fits = infos == nullptr ? length == 0 : static_cast<int>(*count) >= length;
  *count = static_cast<unsigned>(length);
  return fits ? 0 : 7;
}

}  // namespace

extern "C" {

int nvmlInit_v2() { return says("MADE_NVML_REFUSES") ? 15 : 0; }
int nvmlShutdown() { return 0; }
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = says("MADE_NVML_FENCE") ? 1 : static_cast<unsigned>(device_count());
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  if (says("MADE_NVML_FENCE")) index += static_cast<unsigned>(number_in("MADE_NVML_FENCE", 0));
  if (index >= static_cast<unsigned>(device_count()) || !is_reached(static_cast<int>(index))) return 2;
  *device = &devices[index];
  return 0;
}
int nvmlDeviceGetUUID(void* device, char* text, unsigned size) {
  write_uuid(device, text, size);
  return 0;
}
int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) {
  char text[96];
  const auto is_it = [&](int& candidate) {
    write_uuid(&candidate, text, sizeof text);
    *device = &candidate;
    return std::strcmp(text, uuid) == 0;
  };
  for (int number = 0; number < device_count(); ++number)
    if (is_reached(number) && is_it(devices[number])) return 0;
  if (says("MADE_NVML_MIG"))
    for (int& instance : instances)
      if (is_it(instance)) return 0;
  return 6;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char* place, void** device) {
  unsigned domain = 0, bus = 0;
  if (std::sscanf(place, "%x:%x:", &domain, &bus) != 2 || bus < 0x10) return 2;
  return nvmlDeviceGetHandleByIndex_v2(bus - 0x10, device);
}
int nvmlDeviceGetIndex(void* device, unsigned* index) {
  *index = static_cast<unsigned>(number_of(device));
  return 0;
}
int nvmlDeviceGetMigMode(void* device, unsigned* now, unsigned* later) {
  *now = *later = says("MADE_NVML_MIG") && device == &devices[0] ? 1 : 0;
  return 0;
}
int nvmlDeviceGetMaxMigDeviceCount(void*, unsigned* count) {
  *count = 7;
  return 0;
}
int nvmlDeviceGetMigDeviceHandleByIndex(void*, unsigned index, void** instance) {
  if (index == 0 || index > 2) return 6;  // the first place is free
  *instance = &instances[index - 1];
  return 0;
}
int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(void* instance, void** device) {
  if (!is_instance(instance)) return 2;
  *device = &devices[0];
  return 0;
}
int nvmlDeviceGetAttributes_v2(void* instance, unsigned* attributes) {
  attributes[6] = attributes[7] = instance == &instances[0] ? 3 : 4;
  return 0;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void*, unsigned* count, void* infos) {
  if (says("MADE_NVML_HIDES_PROCESSES")) return 4;
  return list_of(number_in("MADE_NVML_PROCESSES", 1), count, infos);
}
int nvmlDeviceGetMPSComputeRunningProcesses_v3(void*, unsigned* count, void* infos) {
  return list_of(number_in("MADE_NVML_CLIENTS", 0), count, infos);
}
int nvmlDeviceGetTotalEnergyConsumption(void* device, unsigned long long* millijoules) {
  if (is_instance(device)) return 3;
  if (work() != nullptr) {
    *millijoules = static_cast<unsigned long long>(5e9 + 1000 * joules_of_work(device));
    return 0;
  }
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
  *milliwatts = static_cast<unsigned>(number_in("MADE_NVML_CAP", 700'000));
  return says("MADE_NVML_HIDES_CAPS") ? 4 : 0;
}
}
