#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <baton/kv_client.h>

#include "cli/base/command.h"
#include "cli/base/output.h"

/// What the verbs of `baton kv` share.
namespace baton::cli {

struct BucketFlags : ClientFlags {
  std::string bucket;
};
struct KeyFlags : BucketFlags {
  std::string key;
};

/// The bucket as the first argument; the second also adds the key; and the flags of every client.
void add_bucket_argument(CLI::App& command, BucketFlags& flags);
void add_key_arguments(CLI::App& command, KeyFlags& flags);

/// "kv put leases k": the subject of an error.
std::string about_kv(std::string_view verb, std::string_view bucket, std::string_view key = {});

/// Reads the flag's value: any revision.
Result<std::uint64_t> read_revision(std::string_view text);

/// Runs `use` with a client; fails as `what` if there cannot be one.
template <class Use>
ExitCode with_kv(const ClientFlags& flags, std::string_view what, Use use) {
  const Output out = flags.output();
  auto client = client::KvClient::connect(flags.connection());
  if (!client) return out.fail(what, client.error());
  return use(*client, out);
}

}  // namespace baton::cli
