#pragma once
#include <string>

#include "program/outline.h"

namespace mindpipe {

struct Config;
class PricedBlocks;

/// A table of the schedules that the configuration's pipeline can have: how long a step of each is on paper,
/// and how large its tapes and all its memory are on the rank that has the most; or why it cannot be. Empty
/// where there is one stage; a sentence where that takes long. `blocks`: what is planned already is not
/// planned again.
std::string schedules_text(const Config& config, const Outline& outline, PricedBlocks& blocks);

}  // namespace mindpipe
