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
/// Lays an outline out as lay_out does, but with the cuts of a V balanced by time alone, at once.
void lay_out_roughly(Outline& outline, const Config& config);
/// Whether the cuts of lay_out are not those of lay_out_roughly.
bool cuts_know_tapes(const Config& config);

}  // namespace mindpipe
