#pragma once
#include <cstdint>
#include <vector>

#include "program/outline.h"

namespace mindpipe {

struct Config;

/// The first block of each chunk, and the end: as the configuration says, or balanced. `slower`: how many
/// times what they cost blocks take on each stage; empty: once.
std::vector<int> cuts_of(const Config& config, const std::vector<std::int64_t>& costs,
                         const std::vector<double>& slower = {});

/// Says how the priced blocks of an outline lie on the configuration's grid, and how a batch is divided.
void lay_out(Outline& outline, const Config& config);

}  // namespace mindpipe
