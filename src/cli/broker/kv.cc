#include <limits>
#include <memory>
#include <string>
#include <utility>

#include <baton/client.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/base/parse.h"
#include "cli/base/terminal.h"
#include "cli/broker/commands.h"
#include "cli/broker/kv_flags.h"
#include "cli/broker/kv_output.h"
#include "core/kv/types.h"

namespace baton::cli {
namespace {

using client::Broker;
using client::BucketInfo;

struct CreateFlags : BucketFlags {
  client::BucketSettings settings;
};

struct BucketDeleteFlags : BucketFlags {
  bool yes = false;
};

struct BucketListFlags : ClientFlags {
  std::string prefix;
};

std::string about_bucket(std::string_view verb, std::string_view bucket) {
  return about_kv(fmt::format("bucket {}", verb), bucket);
}

ExitCode run_create_bucket(const CreateFlags& flags) {
  const std::string what = about_bucket("create", flags.bucket);
  return with_broker(flags, what, [&](const Broker& broker, const Output& out) {
    // Only for the message: two processes that create it at the same time may both be told that
    // they did.
    const bool existed = broker.bucket(flags.bucket).describe().has_value();
    const auto bucket = broker.bucket(flags.bucket).create(flags.settings);
    if (!bucket) return out.fail(what, bucket.error());
    if (out.json()) {
      Output::object(to_json(*bucket));
    } else {
      Output::text(existed
                       ? fmt::format("bucket {} exists already, with these settings, at revision "
                                     "{}",
                                     bucket->name, bucket->revision)
                       : fmt::format("created bucket {}", bucket->name));
    }
    return ExitCode::ok;
  });
}

ExitCode run_delete_bucket(const BucketDeleteFlags& flags) {
  const std::string what = about_bucket("delete", flags.bucket);
  return with_broker(flags, what, [&](const Broker& broker, const Output& out) {
    const auto bucket = broker.bucket(flags.bucket).describe();
    if (!bucket) return out.fail(what, bucket.error());
    if (!confirmed(flags.yes, fmt::format("Delete bucket {} and its {}?", bucket->name,
                                          counted(bucket->keys, "key")))) {
      return out.not_confirmed(what);
    }
    const auto status = broker.bucket(flags.bucket).drop();
    if (!status) return out.fail(what, status.error());
    if (out.json()) {
      Output::object(Json{{"name", flags.bucket}, {"deleted", true}});
    } else {
      Output::text(fmt::format("deleted bucket {}", flags.bucket));
    }
    return ExitCode::ok;
  });
}

ExitCode run_describe_bucket(const BucketFlags& flags) {
  const std::string what = about_bucket("describe", flags.bucket);
  return with_broker(flags, what, [&](const Broker& broker, const Output& out) {
    const auto bucket = broker.bucket(flags.bucket).describe();
    if (!bucket) return out.fail(what, bucket.error());
    if (out.json()) {
      Output::object(to_json(*bucket));
    } else {
      Output::text(describe(*bucket));
    }
    return ExitCode::ok;
  });
}

ExitCode run_list_buckets(const BucketListFlags& flags) {
  return with_broker(flags, "kv bucket list", [&](const Broker& broker, const Output& out) {
    const auto buckets = broker.buckets(flags.prefix);
    if (!buckets) return out.fail("kv bucket list", buckets.error());
    if (out.json()) {
      for (const BucketInfo& bucket : *buckets) Output::object(to_json(bucket));
    } else {
      Output::text(list_text(*buckets));
    }
    return ExitCode::ok;
  });
}

Result<std::uint64_t> read_value_max(std::string_view text) {
  return parse_size_between(text, 1, limits::kKvValueBytesMax);
}

void add_bucket_settings(CLI::App& command, client::BucketSettings& settings) {
  constexpr const char* kBucketSettings = "Settings";
  add_parsed(
      command, "--value-max", read_value_max,
      [&settings](std::uint64_t bytes) { settings.value_bytes_max = bytes; },
      "The largest value, up to 16MiB [1MiB].")
      ->type_name("SIZE")
      ->group(kBucketSettings);
  add_parsed(
      command, "--keys-max", parse_count,
      [&settings](std::uint64_t count) { settings.keys_max = count; },
      "The most keys the bucket may hold [1000000].")
      ->group(kBucketSettings);
  add_parsed(
      command, "--history", parse_count,
      [&settings](std::uint64_t count) { settings.history_changes_max = count; },
      "Changes kept for watches that reconnect [10000].")
      ->group(kBucketSettings);
  add_parsed(
      command, "--history-size", parse_size,
      [&settings](std::uint64_t bytes) { settings.history_bytes_max = bytes; },
      "The most bytes of changes kept [16MiB].")
      ->type_name("SIZE")
      ->group(kBucketSettings);
}

void add_name(CLI::App& command, BucketFlags& flags) {
  command.add_option("BUCKET", flags.bucket, "The name of the bucket.")->required()->type_name("");
  add_client_flags(command, flags);
}

void add_bucket_verbs(CLI::App& kv, Action& action) {
  CLI::App* bucket = add_noun(kv, {.name = "bucket",
                                   .help = "Create, show and delete buckets.",
                                   .example = "baton kv bucket create leases"});

  const auto created = std::make_shared<CreateFlags>();
  CLI::App* create = add_verb(*bucket,
                              {.name = "create",
                               .help = "Create a bucket. A bucket that exists with the same "
                                       "settings is left as it is.",
                               .example = "baton kv bucket create leases --value-max 64KiB"},
                              created, run_create_bucket, action);
  add_name(*create, *created);
  add_bucket_settings(*create, created->settings);

  const auto listed = std::make_shared<BucketListFlags>();
  CLI::App* list = add_verb(*bucket,
                            {.name = "list",
                             .help = "List buckets.",
                             .example = "baton kv bucket list --json | jq .revision"},
                            listed, run_list_buckets, action);
  list->add_option("PREFIX", listed->prefix, "Only buckets whose names begin with this.")
      ->type_name("");
  add_client_flags(*list, *listed);

  const auto described = std::make_shared<BucketFlags>();
  add_name(*add_verb(*bucket,
                     {.name = "describe",
                      .help = "Show the settings and counts of a bucket.",
                      .example = "baton kv bucket describe leases"},
                     described, run_describe_bucket, action),
           *described);

  const auto deleted = std::make_shared<BucketDeleteFlags>();
  CLI::App* del = add_verb(*bucket,
                           {.name = "delete",
                            .help = "Delete a bucket and every key in it, which ends its watches. "
                                    "Asks first, on a terminal.",
                            .example = "baton kv bucket delete leases"},
                           deleted, run_delete_bucket, action);
  add_name(*del, *deleted);
  add_yes_flag(*del, deleted->yes);
}

}  // namespace

std::string about_kv(std::string_view verb, std::string_view bucket, std::string_view key) {
  constexpr std::size_t kShown = 64;
  std::string what =
      fmt::format("kv {} {}", verb, bucket.empty() ? "''" : printable(bucket.substr(0, kShown)));
  if (!key.empty()) what += " " + printable(key.substr(0, kShown));
  return what;
}

void add_bucket_argument(CLI::App& command, BucketFlags& flags) {
  command.add_option("BUCKET", flags.bucket, "The name of the bucket.")->required()->type_name("");
  add_client_flags(command, flags);
}

void add_key_arguments(CLI::App& command, KeyFlags& flags) {
  add_bucket_argument(command, flags);
  command
      .add_option("KEY", flags.key, "The key, of letters, digits and the characters . _ - / and :.")
      ->required()
      ->type_name("");
}

Result<std::uint64_t> read_revision(std::string_view text) {
  return parse_number(text, 0, std::numeric_limits<std::uint64_t>::max());
}

void add_kv_commands(CLI::App& app, Action& action) {
  CLI::App* kv = add_noun(
      app,
      {.name = "kv",
       .help = "Keys with revisions: read, write, compare-and-set and watch them.",
       .example = "baton kv bucket create leases\n  baton kv cas leases leader me --revision 0"});
  add_bucket_verbs(*kv, action);
  add_kv_keys(*kv, action);
  add_kv_watch(*kv, action);
}

}  // namespace baton::cli
