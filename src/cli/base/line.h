#pragma once

#include <span>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

/// The words of a command line, arranged in the order that the parser needs. Pure.
namespace baton::cli {

struct Line {
  std::vector<std::string> words;     // Without the program's name.
  const CLI::App* command = nullptr;  // The deepest command that the words name.
  std::string problem;                // Why there is no such command; empty if there is.
};

/// Finds the command that `words` name and moves connection flags that stand before its last word
/// behind it. `root` is the whole tree. For a word that is not a command, `problem` names the
/// nearest one.
Line arrange(const CLI::App& root, std::span<const char* const> words);

/// Whether the words ask for JSON, even if the rest of them is wrong.
bool wants_json(std::span<const char* const> words);

/// What is wrong with the line, in our words instead of the parser's. `command` is the command that
/// the line names.
std::string usage_problem(const CLI::App& command, const CLI::ParseError& problem);

}  // namespace baton::cli
