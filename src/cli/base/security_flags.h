#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <baton/security.h>

#include "base/secure/settings.h"

/// TLS and logins on the command line: the same flags and variables for every server.
namespace baton::cli {

/// The group of flags that say who logs in.
inline constexpr const char* kLoginGroup = "Login";

/// `settings` must live as long as `command`.
void add_tls_flags(CLI::App& command, secure::Settings& settings);
/// For servers other than Baton, which has no logins.
void add_login_flags(CLI::App& command, secure::Settings& settings);
/// The same settings as flags, for another process of this program, which has our environment.
std::vector<std::string> to_flags(const secure::Settings& settings);

}  // namespace baton::cli
