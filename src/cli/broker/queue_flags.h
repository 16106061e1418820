#pragma once

#include <string>
#include <string_view>

#include <baton/queue_client.h>

#include "cli/base/command.h"
#include "cli/base/output.h"

/// What the verbs of `baton queue` share.
namespace baton::cli {

struct QueueFlags : ClientFlags {
  std::string queue;
};

/// The queue's name as the first argument, and the flags of every client.
void add_queue_argument(CLI::App& command, QueueFlags& flags);

/// "queue send jobs": the subject of an error.
std::string about(std::string_view verb, std::string_view queue);

/// Runs `use` with a client; fails as `what` if there cannot be one.
template <class Use>
ExitCode with_client(const ClientFlags& flags, std::string_view what, Use use) {
  const Output out = flags.output();
  auto client = client::QueueClient::connect(flags.connection());
  if (!client) return out.fail(what, client.error());
  return use(*client, out);
}

}  // namespace baton::cli
