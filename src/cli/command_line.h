#pragma once

#include <CLI/CLI.hpp>

#include "cli/base/command.h"

/// The program: each noun adds its commands to the line.
namespace baton::cli {

/// Adds every command to `app`, the whole tree. What the line asks for is left in `action`. Both
/// must live as long as the tree is used.
void add_commands(CLI::App& app, Action& action);

/// Reads the line and does what it asks for.
ExitCode run(int argc, const char* const* argv);

}  // namespace baton::cli
