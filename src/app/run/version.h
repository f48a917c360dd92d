#pragma once
#include <string>

namespace mindpipe {

/// The commit that this program was built from, "-dirty" behind it when files had been changed.
extern const char* const commit;

/// This build, its libraries and this processor, a line each: what --version prints.
std::string version_text();
/// "0.3.0 (commit 1a2b3c4)": for logs and for what checkpoints say of their maker.
std::string version();
/// The GPU's libraries by name and version: the build's, and those that can be opened here.
std::string graphics_built_with();
std::string graphics_found();

}  // namespace mindpipe
