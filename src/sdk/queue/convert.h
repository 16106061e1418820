#pragma once

#include <baton/message.h>
#include <baton/queue.h>
#include <baton/v1/queues.pb.h>

/// Conversions between the public structs and the wire schema. The hot ones move their strings.
namespace baton::client {

/// The bytes that a message counts against the bounds on bytes.
std::size_t message_bytes(const NewMessage& message);

void to_proto(NewMessage&& message, v1::NewMessage& out);
void to_proto(const NewMessage& message, v1::NewMessage& out);
void to_proto(const Nack& item, v1::NackItem& out);
void to_proto(const Extension& item, v1::ExtendItem& out);
void to_proto(const QueueSettings& settings, v1::QueueSettings& out);

EnqueueResult take(v1::EnqueueResult& result);
void take(v1::LeasedMessage& message, LeasedMessage& out);
PeekedMessage take(v1::PeekedMessage& message);
QueueInfo from_proto(const v1::Queue& queue);
Status from_proto(const v1::ItemResult& result);

}  // namespace baton::client
