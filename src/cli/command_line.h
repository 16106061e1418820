#pragma once

#include <CLI/CLI.hpp>

#include "cli/base/command.h"

/// The program: each noun adds its commands to the command line.
namespace baton::cli {

/// Adds every command to `app`, the whole tree. The parsed action is left in `action`. Both must
/// live as long as the tree is used.
void add_commands(CLI::App& app, Action& action);

/// Parses the command line and runs its action.
ExitCode run(int argc, const char* const* argv);

}  // namespace baton::cli
