#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

/// The pages of `--help` and `baton help`, made from the command tree alone.
namespace baton::cli {

/// Flags of this group are the same for all commands that talk to a broker; their help is a page of
/// its own.
inline constexpr const char* kConnectionGroup = "Connection";

/// Arguments of this group stand behind "--", as the program of a worker does.
inline constexpr const char* kBehindFlags = "Behind the flags";

/// "baton queue send".
std::string command_path(const CLI::App& command);

/// The commands directly below `command` that people may use, in the order of creation.
std::vector<const CLI::App*> visible_commands(const CLI::App& command);

/// The page of one command. No line is longer than `width`, except examples and words that cannot
/// be broken. Ends with a newline.
std::string help_page(const CLI::App& command, std::size_t width);

/// The page of the connection flags.
std::string connection_page(std::size_t width);

/// The candidate that `word` was probably meant to be; empty if none is near.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace baton::cli
