#pragma once

#include <CLI/CLI.hpp>

#include "cli/base/command.h"

/// The commands of worker processes, which run in this process.
namespace baton::cli {

void add_worker_commands(CLI::App& app, Action& action);

}  // namespace baton::cli
