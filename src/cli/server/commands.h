#pragma once

#include <CLI/CLI.hpp>

#include "cli/base/command.h"

/// The commands that open a data folder in this process: the broker, and `store inspect`; and those
/// that found a cluster.
namespace baton::cli {

void add_server_command(CLI::App& app, Action& action);
void add_cluster_commands(CLI::App& app, Action& action);
void add_store_commands(CLI::App& app, Action& action);

}  // namespace baton::cli
