#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cli/base/command.h"
#include "cli/base/output.h"
#include "cli/broker/with_broker.h"  // IWYU pragma: export

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

}  // namespace baton::cli
