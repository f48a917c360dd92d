#pragma once
#include <string>
#include <string_view>

namespace mindpipe {

/// Sets what stands before every line of news from now on: "emulated: " in a run that computes nothing.
void set_log_mark(std::string mark);
/// `text` with the log's mark before each line that is not empty.
std::string marked(const std::string& text);
/// A sentence as a terminal may show it: it may repeat any bytes of a file, any number of them.
std::string legible(std::string_view sentence);

}  // namespace mindpipe
