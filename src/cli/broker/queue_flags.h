#pragma once

#include <string>
#include <string_view>

#include "cli/base/command.h"
#include "cli/base/output.h"
#include "cli/broker/with_broker.h"  // IWYU pragma: export

/// What the verbs of `baton queue` share.
namespace baton::cli {

struct QueueFlags : ClientFlags {
  std::string queue;
};

/// The queue's name as the first argument, and the flags of every client.
void add_queue_argument(CLI::App& command, QueueFlags& flags);

/// "queue send jobs": the subject of an error.
std::string about(std::string_view verb, std::string_view queue);

}  // namespace baton::cli
