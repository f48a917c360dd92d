#pragma once
#include <string>

namespace mindpipe {

/// What stands before every line of news from now on: "emulated: " in a run that computes nothing.
void set_log_mark(std::string mark);
/// The text with the mark before each of its lines, but empty ones.
std::string marked(const std::string& text);

}  // namespace mindpipe
