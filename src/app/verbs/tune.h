#pragma once
#include <string>
#include <vector>

#include "operations/products.h"

namespace mindpipe {

/// The products that a GPU is asked for in a step of a configuration file with these settings, whatever
/// device.kind they name.
std::vector<ProductCall> products_to_tune(const std::string& file, std::vector<std::string> settings);

}  // namespace mindpipe
