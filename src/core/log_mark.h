#pragma once
#include <string>

namespace mindpipe {

/// Sets what stands before every line of news from now on: "emulated: " in a run that computes nothing.
void set_log_mark(std::string mark);
/// `text` with the log's mark before each line that is not empty.
std::string marked(const std::string& text);

}  // namespace mindpipe
