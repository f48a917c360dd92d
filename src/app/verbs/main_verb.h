#pragma once
#include <string>

#include "app/verbs/arguments.h"

namespace mindpipe {

/// Answers the command line, or reads the configuration and calls the verb. Returns the exit code.
int run_verb(const Arguments& arguments);

/// Writes to stdout and fails when it cannot be written (a full disk, a closed pipe).
void print(const std::string& text);

}  // namespace mindpipe
