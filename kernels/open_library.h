#pragma once
#include <string>

namespace mindpipe::cuda {

/// Where a function of a shared library begins, or a sentence: what is missing, and what needs it.
void* symbol_of(const std::string& library, const char* name, const char* needed_for);

}  // namespace mindpipe::cuda
