#pragma once
#include "program/action.h"
#include "program/check/findings.h"

namespace mindpipe {

/// Finds where both ends of a message, or all calls of a collective, are not alike: the k-th send of a
/// channel and its k-th receive, the k-th calls of a group's members; and tickets that are given twice.
void check_partners(const Program& program, Findings& findings);

/// Says of lists in which something is wrong where they stand still, with free channels or in the order of
/// tickets, if they do.
void explain_standstill(const Program& program, Findings& findings);

}  // namespace mindpipe
