#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "program/action.h"
#include "program/check/checked_stretch.h"
#include "program/outline.h"
#include "program/place.h"

namespace mindpipe {

/// Proves that the lists of all ranks of a step, or of an evaluation, are sound before anything runs; returns
/// what is wrong with them, one readable line each, empty when all is well: "rank 2, action 17 (receive
/// activation of micro-batch 3 from rank 1): ...".
///
/// Proved: both ends of a channel list the same messages and all members of a group the same calls; tickets
/// agree and ascend, so that the lists run to their end, with free channels and in strict ticket order; every
/// pass has its inputs, what it makes leaves, every tape is opened once and closed once, backwards of a block
/// ascend in (shard, micro-batch); sharded values are gathered before forwards read them; every gradient is
/// summed, exchanged and updated after its last backward; gradients start from zero; no arena, buffer or
/// gradient slab is used again before its last reader, a send or a sum over data included, has ended.
std::vector<std::string> check(const Program& program, const Outline& outline);
/// Proves the list of one rank of a step, whose other ranks were checked with it, or throws.
CheckedStretch prove_list(ListStretch list, const Outline& outline, int rank);

/// Throws the first of the errors as a mistake of ours.
void require_sound(const std::vector<std::string>& errors);

}  // namespace mindpipe
