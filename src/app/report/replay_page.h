#pragma once
#include <string>

#include "trace/diagnosis.h"

namespace mindpipe {

/// A page that shows a diagnosis, whole in itself: a step as measured, replayed and with all ranks alike;
/// where a step goes; how fast ranks are; the steps one after the other; how much slower stages may be.
/// `name`: the run; `text`: what the terminal gets.
std::string replay_page(const Diagnosis& diagnosis, const StepTrace& trace, const ReplayGraph& graph,
                        const std::string& name, const std::string& text);

}  // namespace mindpipe
