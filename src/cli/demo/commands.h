#pragma once

#include <CLI/CLI.hpp>

#include "cli/base/command.h"

/// The commands that start brokers and workers themselves.
namespace baton::cli {

void add_demo_command(CLI::App& app, Action& action);
void add_bench_commands(CLI::App& app, Action& action);

}  // namespace baton::cli
