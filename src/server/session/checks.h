#pragma once

#include <cstddef>
#include <string_view>

#include "base/result.h"
#include "core/queue/commands.h"
#include "server/session/subscription_talk.h"
#include "server/session/watch_session.h"
#include "server/shard/kv_commands.h"
#include "server/shard/stream_commands.h"

/// The limits of what clients may ask for, in any protocol. A protocol converts a request to a
/// command, and has the command checked before the broker gets it. An error is invalid_argument,
/// and names the field and its limit. What only a machine can know (whether a queue exists, whether
/// settings fit together with its present ones) is not checked here.
namespace baton {

// Items of a request are checked one by one: an invalid item does not fail its neighbours.
Status check_items(std::string_view field, std::size_t count);
Status check_item(const NewMessage& message);
Status check_item(const NackItem& item);
Status check_item(const ExtendItem& item);

// Queues.
Status check(const CreateQueueCommand& command);
Status check(const UpdateQueueCommand& command);
Status check(const ListQueuesCommand& command);
Status check(const AttachCommand& command);
Status check(const LeaveCommand& command);
Status check(const PeekCommand& command);
Status check(const RedriveCommand& command);

// Streams and groups. The protocol checks that offsets are not negative: these commands have
// unsigned offsets.
Status check(const ListStreamsCommand& command);
Status check(const ListGroupsCommand& command);
Status check(const StoreOffsetCommand& command);
Status check(const QueryOffsetCommand& command);
Status check(const SetGroupOffsetsCommand& command);
Status check(const GroupCommand& command);
Status check(const AppendCommand& command);
Status check(const subscription::Wanted& wanted);

// Buckets and keys.
Status check(const CreateBucketCommand& command);
Status check(const ListBucketsCommand& command);
Status check(const KvGetCommand& command);
Status check(const KvPutCommand& command);
Status check(const KvRemoveCommand& command);
Status check(const KvListCommand& command);
Status check(const WatchWanted& wanted);

/// For commands of which only the name must be checked.
template <class Command>
Status check(const Command& command) {
  if constexpr (requires { command.queue; }) {
    return validate_queue_name(command.queue);
  } else if constexpr (requires { command.stream; }) {
    return validate_stream_name(command.stream);
  } else {
    return validate_bucket_name(command.bucket);
  }
}

}  // namespace baton
