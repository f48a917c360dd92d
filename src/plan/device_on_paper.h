#pragma once
#include <string>

#include "device_description.h"

namespace mindpipe {

struct Config;

/// The bundled device that plans are priced for, or that a file of device.description is like: the named one,
/// else an H200 for cuda and a server's core for cpu.
std::string device_on_paper(const Config& config);
/// What it costs; a file of device.description says what is otherwise. Products have the share of a described
/// GPU that device.reserved_multiprocessors leaves to them.
DeviceDescription description_of(const Config& config);
/// How to name it: the bundled device, or the file.
std::string device_name(const Config& config);

}  // namespace mindpipe
