#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <baton/client.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/base/parse.h"
#include "cli/base/terminal.h"
#include "cli/broker/commands.h"
#include "cli/broker/kv_flags.h"
#include "cli/broker/kv_output.h"
#include "cli/broker/payloads.h"
#include "core/kv/types.h"

namespace baton::cli {
namespace {

using client::Broker;
using client::KvEntry;
using client::KvOutcome;

constexpr PayloadWords kKeyWords{.verb = "put", .item = "value", .payload = "value", .done = "put"};

struct PutFlags : KeyFlags {
  std::optional<std::string> value;
  std::string file;
  client::PutOptions options;
  std::string_view verb = "put";
};
struct GetFlags : KeyFlags {
  bool raw = false;
};
struct KeyDeleteFlags : KeyFlags {
  client::RemoveOptions options;
};
struct KeyListFlags : BucketFlags {
  std::string prefix;
  std::uint64_t max = 0;
};

Result<std::string> value_of(const PutFlags& flags) {
  if (flags.value.has_value() == !flags.file.empty()) {
    return Error{Errc::invalid_argument,
                 "give one of VALUE, --file F, or - to read standard input"};
  }
  if (!flags.file.empty()) return read_payload_file(flags.file, kKeyWords);
  if (flags.value != "-") return flags.value.value_or("");
  return std::string{std::istreambuf_iterator<char>(std::cin), {}};
}

Error no_such_key() { return {Errc::not_found, "there is no such key"}; }

/// For a refusal, also shows what is there instead.
ExitCode refused(const Output& out, const std::string& what, const KvOutcome& outcome,
                 bool removal) {
  const Error error = outcome.error.value_or(Error{});
  if (!out.json()) return out.fail(what, error);
  Output::object(to_json(outcome, removal));
  return exit_code_of(error.code);
}

ExitCode run_put(const PutFlags& flags) {
  const std::string what = about_kv(flags.verb, flags.bucket, flags.key);
  const Result<std::string> value = value_of(flags);
  if (!value) return flags.output().fail_here(what, value.error());
  return with_broker(flags, what, [&](const Broker& broker, const Output& out) {
    const auto outcome = broker.bucket(flags.bucket).put(flags.key, *value, flags.options);
    if (!outcome) return out.fail(what, outcome.error());
    if (!outcome->done) return refused(out, what, *outcome, false);
    if (out.json()) {
      Output::object(to_json(*outcome, false));
    } else {
      Output::text(fmt::format("revision {}", outcome->revision));
    }
    return ExitCode::ok;
  });
}

/// In a pipe, the bytes unchanged. On a terminal, nothing that would move its cursor or change its
/// colours.
std::string shown_value(const std::string& value) {
  return is_terminal(STDOUT_FILENO) ? terminal_text(value) : value;
}

ExitCode run_get(const GetFlags& flags) {
  const std::string what = about_kv("get", flags.bucket, flags.key);
  return with_broker(flags, what, [&](const Broker& broker, const Output& out) {
    const auto found = broker.bucket(flags.bucket).get(flags.key);
    if (!found) return out.fail(what, found.error());
    const std::optional<KvEntry>& entry = *found;
    if (!entry) return out.fail(what, no_such_key());
    if (out.json()) {
      Output::object(to_json(*entry));
    } else {
      const std::string shown = flags.raw ? entry->value : shown_value(entry->value);
      std::fwrite(shown.data(), 1, shown.size(), stdout);
      if (!flags.raw) std::fputc('\n', stdout);
    }
    return ExitCode::ok;
  });
}

ExitCode run_delete_key(const KeyDeleteFlags& flags) {
  const std::string what = about_kv("del", flags.bucket, flags.key);
  return with_broker(flags, what, [&](const Broker& broker, const Output& out) {
    const auto outcome = broker.bucket(flags.bucket).remove(flags.key, flags.options);
    if (!outcome) return out.fail(what, outcome.error());
    if (!outcome->done) return refused(out, what, *outcome, true);
    if (outcome->unchanged) return out.fail(what, no_such_key());
    if (out.json()) {
      Output::object(to_json(*outcome, true));
    } else {
      Output::text(fmt::format("deleted, revision {}", outcome->revision));
    }
    return ExitCode::ok;
  });
}

void print(const Output& out, const std::vector<KvEntry>& entries) {
  if (!out.json()) return Output::text(list_text(entries));
  for (const KvEntry& entry : entries) Output::object(to_json(entry));
}

/// Reads page by page: a bucket may be larger than memory.
ExitCode run_list_keys(const KeyListFlags& flags) {
  const std::string what = about_kv("list", flags.bucket);
  return with_broker(flags, what, [&](const Broker& broker, const Output& out) {
    constexpr std::uint64_t kPage = 1000;
    client::ListKeysOptions options;
    options.prefix = flags.prefix;
    std::uint64_t left = flags.max == 0 ? std::numeric_limits<std::uint64_t>::max() : flags.max;
    do {
      options.keys_max = static_cast<std::uint32_t>(std::min(kPage, left));
      const auto page = broker.bucket(flags.bucket).list(options);
      if (!page) return out.fail(what, page.error());
      print(out, page->entries);
      left -= page->entries.size();
      options.after = page->next;
    } while (!options.after.empty() && left > 0);
    return ExitCode::ok;
  });
}

Result<Milliseconds> read_ttl(std::string_view text) {
  return parse_milliseconds(text, std::chrono::ceil<Milliseconds>(limits::kKvTtlMin),
                            std::chrono::floor<Milliseconds>(limits::kKvTtlMax));
}
Result<std::uint64_t> read_expected(std::string_view text) {
  return parse_number(text, 1, std::numeric_limits<std::uint64_t>::max());
}

void add_value_flags(CLI::App& command, PutFlags& flags) {
  add_key_arguments(command, flags);
  command.add_option("VALUE", flags.value, "The value; - reads it from standard input.")
      ->type_name("");
  command.add_option("--file", flags.file, "Take the value from this file.")->type_name("FILE");
  add_parsed(
      command, "--ttl", read_ttl, [&flags](Milliseconds value) { flags.options.ttl = value; },
      "Remove the key after this long, unless it is written again [never].");
}

void add_put(CLI::App& kv, Action& action) {
  const auto flags = std::make_shared<PutFlags>();
  CLI::App* put = add_verb(kv,
                           {.name = "put",
                            .help = "Write a key, whatever its value is now. Prints its revision.",
                            .example = "baton kv put settings colour blue\n"
                                       "  baton kv put sessions s1 - --ttl 30s < session.json"},
                           flags, run_put, action);
  add_value_flags(*put, *flags);
  add_parsed(
      *put, "--revision", read_revision,
      [flags = flags.get()](std::uint64_t value) { flags->options.expected_revision = value; },
      "Write only if the key is at this revision; 0: only if there is no such key.");
}

void add_cas(CLI::App& kv, Action& action) {
  const auto flags = std::make_shared<PutFlags>();
  flags->verb = "cas";
  CLI::App* cas = add_verb(kv,
                           {.name = "cas",
                            .help = "Write a key only if it is at a revision. Otherwise ends with "
                                    "13, and shows where the key is.",
                            .example = "baton kv cas leases leader me --revision 0 --ttl 5s\n"
                                       "  baton kv cas leases leader me --revision 7 --ttl 5s"},
                           flags, run_put, action);
  add_value_flags(*cas, *flags);
  add_parsed(
      *cas, "--revision", read_revision,
      [flags = flags.get()](std::uint64_t value) { flags->options.expected_revision = value; },
      "The key's revision as it was read; 0: there must be no such key.")
      ->required();
}

}  // namespace

void add_kv_keys(CLI::App& kv, Action& action) {
  add_put(kv, action);
  add_cas(kv, action);

  const auto got = std::make_shared<GetFlags>();
  CLI::App* get = add_verb(kv,
                           {.name = "get",
                            .help = "Print the value of a key; with --json also its revision.",
                            .example = "baton kv get settings colour\n"
                                       "  baton kv get leases leader --json | jq .revision"},
                           got, run_get, action);
  add_key_arguments(*get, *got);
  get->add_flag("--raw", got->raw,
                "Write the bytes as they are: no newline, and binary values also to a terminal.");

  const auto deleted = std::make_shared<KeyDeleteFlags>();
  CLI::App* del = add_verb(kv,
                           {.name = "del",
                            .help = "Delete a key.",
                            .example = "baton kv del leases leader --revision 7"},
                           deleted, run_delete_key, action);
  add_key_arguments(*del, *deleted);
  add_parsed(
      *del, "--revision", read_expected,
      [flags = deleted.get()](std::uint64_t value) { flags->options.expected_revision = value; },
      "Delete only if the key is at this revision.");

  const auto listed = std::make_shared<KeyListFlags>();
  CLI::App* list = add_verb(kv,
                            {.name = "list",
                             .help = "List the keys of a bucket, in order.",
                             .example = "baton kv list leases worker. --json"},
                            listed, run_list_keys, action);
  add_bucket_argument(*list, *listed);
  list->add_option("PREFIX", listed->prefix, "Only keys that begin with this.")->type_name("");
  add_parsed(
      *list, "-n,--max", read_expected,
      [flags = listed.get()](std::uint64_t value) { flags->max = value; },
      "The most keys to list [no limit].");
}

}  // namespace baton::cli
