#pragma once
#include <CLI/CLI.hpp>

#include "app/verbs/arguments.h"

namespace mindpipe {

/// Why a text is no integer as a configuration has them (010 is neither ten nor eight); empty: it is one.
std::string refuse_unless_plain(const std::string& text);
const CLI::Validator& plain_integer();

// Options that several verbs have, and those of plan.
void declare_config(CLI::App& app, Arguments& a);
void declare_ranks(CLI::App& app, Arguments& a);
/// Adds --foreign-profile.
void declare_foreign_profile(CLI::App& app, Arguments& a);
void declare_plan(CLI::App& app, Arguments& a);

}  // namespace mindpipe
