#include "app/run/version.h"

#include <fmt/core.h>
#include <CLI/Version.hpp>
#include <nlohmann/detail/abi_macros.hpp>

#include "app/run/build.h"
#include "comm/device_transports.h"
#include "comm/mpi.h"
#include "hardware.h"

namespace mindpipe {

std::string version() { return fmt::format("{} (commit {})", build::version, commit); }

std::string graphics_built_with() {
  std::string text = gpu_libraries_built_with();
  if (nccl_built_with() != 0) text += ", NCCL " + nccl_version_text(nccl_built_with());
  return text.empty() ? "none" : text;
}

std::string graphics_found() {
  if (gpu_libraries_built_with().empty()) return "none: this build has no CUDA";
  std::string text = gpu_libraries_found();
  if (nccl_built_with() != 0)
    text += ", NCCL " + (nccl_found() == 0 ? "not found" : nccl_version_text(nccl_found()));
  return text;
}

std::string version_text() {
  return fmt::format(
      "mindpipe-train {}\n  build          {}, g++ {}\n  messages       {}\n  libraries      fmt {}.{}.{}, "
      "yaml-cpp {}, CLI11 {}, "
      "nlohmann-json {}.{}.{}\n  this processor {}\n  graphics       {}\n  its libraries  built with {}\n",
      version(), build::type, __VERSION__, mpi_library(), FMT_VERSION / 10000, FMT_VERSION / 100 % 100,
      FMT_VERSION % 100, build::yaml_cpp, CLI11_VERSION, NLOHMANN_JSON_VERSION_MAJOR,
      NLOHMANN_JSON_VERSION_MINOR, NLOHMANN_JSON_VERSION_PATCH, instruction_sets(), gpu_devices(),
      graphics_built_with());
}

}  // namespace mindpipe
