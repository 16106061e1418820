#pragma once

#include <string_view>

#include <baton/result.h>

namespace baton::cli {

/// How a command ended, for scripts. Stable: documented in `baton --help` and docs/operating.md.
enum class ExitCode : int {  // NOLINT(performance-enum-size): as exit() takes it.
  ok = 0,
  failure = 1,
  usage = 2,
  not_found = 3,
  already_exists = 4,
  unreachable = 5,
  limit = 6,
  partial = 7,
  nothing_to_lease = 8,
  folder_in_use = 9,
  folder_damaged = 10,
  folder_too_new = 11,
  folder_unusable = 12,
  revision_mismatch = 13,
  outage = 75,  // EX_TEMPFAIL: starting it again is right.
};

/// The exit code of a command that fails with an error of this code, met here or at the broker.
ExitCode exit_code_of(Errc code);

/// The table of the codes, a line each, for `--help`.
std::string_view exit_code_help();

}  // namespace baton::cli
