#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <baton/connection.h>
#include <baton/queue.h>

#include "base/result.h"
#include "base/secure/settings.h"
#include "cli/base/exit_code.h"
#include "cli/base/output.h"

/// What every command is made of: its own flags, and an action that runs once the whole line is
/// parsed.
namespace baton::cli {

/// What the command line asks for.
using Action = std::function<ExitCode()>;

/// The flags of every command that talks to a broker.
struct ClientFlags {
  std::string address = "127.0.0.1:7470";
  std::chrono::milliseconds timeout{30'000};
  secure::Settings security;
  bool json = false;

  /// Errors of the connection are explained: see client::explain().
  [[nodiscard]] Output output() const;
  /// The options that the flags give, completed by the environment.
  [[nodiscard]] client::ConnectionOptions connection() const;
};
/// `flags` must live as long as `command`.
void add_client_flags(CLI::App& command, ClientFlags& flags);
/// `--json` alone, for commands that talk to no broker.
void add_json_flag(CLI::App& command, bool& json);
/// `--yes`, for commands that ask before they destroy something.
void add_yes_flag(CLI::App& command, bool& yes);

/// Rejects a value with the error text of `parse`.
template <class T>
CLI::Validator parse_validator(Result<T> (*parse)(std::string_view)) {
  return CLI::Validator(
      [parse](std::string& value) {
        const Result<T> result = parse(value);
        return result ? std::string() : result.error().text;
      },
      "");
}

/// What `--help` calls a value of type T.
template <class T>
constexpr std::string_view kValueName = "N";
template <>
inline constexpr std::string_view kValueName<std::chrono::milliseconds> = "DURATION";
template <>
inline constexpr std::string_view kValueName<bool> = "BOOL";
template <>
inline constexpr std::string_view kValueName<double> = "RATE";
template <>
inline constexpr std::string_view kValueName<std::string> = "NAME";
template <>
inline constexpr std::string_view kValueName<client::FairnessCost> = "COST";
template <>
inline constexpr std::string_view kValueName<std::pair<std::string, std::string>> = "NAME=VALUE";
template <>
inline constexpr std::string_view kValueName<std::pair<std::string, std::uint32_t>> = "KEY=W";
template <>
inline constexpr std::string_view kValueName<std::pair<std::string, client::Throttle>> =
    "KEY=RATE/BURST";

/// An option read by `parse`, whose error says what would be right, and stored by `keep`.
template <class T, class Keep>
CLI::Option* add_parsed(CLI::App& command, const std::string& name,
                        Result<T> (*parse)(std::string_view), const Keep& keep,
                        const std::string& help) {
  const CLI::callback_t read = [parse, keep](const CLI::results_t& values) {
    for (const std::string& value : values) keep(*parse(value));
    return true;
  };
  return command.add_option(name, read, help)
      ->type_name(std::string(kValueName<T>))
      ->check(parse_validator(parse));
}

/// The same for an option that may be given many times.
template <class T, class Keep>
CLI::Option* add_parsed_many(CLI::App& command, const std::string& name,
                             Result<T> (*parse)(std::string_view), const Keep& keep,
                             const std::string& help) {
  return add_parsed(command, name, parse, keep, help)
      ->expected(1, CLI::detail::expected_max_vector_size)
      ->allow_extra_args(false);
}

/// What `--help` says about a command.
struct Verb {
  std::string name;
  std::string help;
  std::string example;
};

/// Adds a command that only has commands below it, as `baton queue`.
CLI::App* add_noun(CLI::App& parent, const Verb& noun);
/// Names that people type out of habit: "ls" for "list", "rm" for "delete", "info" for "describe".
std::vector<std::string> aliases_of(std::string_view verb);

/// Adds a command to `parent`. `state` holds its flags and lives as long as it.
template <class State>
CLI::App* add_verb(CLI::App& parent, const Verb& verb, const std::shared_ptr<State>& state,
                   ExitCode (*run_it)(const State&), Action& action) {
  CLI::App* command = parent.add_subcommand(verb.name, verb.help);
  command->footer("Example:\n  " + verb.example);
  for (const std::string& alias : aliases_of(verb.name)) command->alias(alias);
  command->callback(
      [state, run_it, &action] { action = [state, run_it] { return run_it(*state); }; });
  return command;
}

}  // namespace baton::cli
