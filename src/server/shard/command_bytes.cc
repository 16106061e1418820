#include "server/shard/queue_shard.h"
#include "server/shard/shard.h"

/// The sizes of commands: for the bounds of what waits, and of what a round writes.
namespace baton {
namespace {

std::size_t bytes_of(const std::optional<std::string>& field) {
  return field.has_value() ? field->size() : 0;
}

std::size_t record_bytes(const NewRecord& record) {
  std::size_t bytes = 2 * kCommandBytes + bytes_of(record.key) + bytes_of(record.value);
  for (const auto& [name, value] : record.headers) {
    bytes += kCommandBytes + name.size() + bytes_of(value);
  }
  return bytes;
}

}  // namespace

std::size_t command_bytes(const Command& command) {
  if (const auto* queue = std::get_if<QueueCommand>(&command)) return command_bytes(*queue);
  if (const auto* kv = std::get_if<KvCommand>(&command)) return command_bytes(*kv);
  const auto* append = std::get_if<AppendCommand>(&std::get<StreamCommand>(command));
  std::size_t bytes = kCommandBytes;
  if (append == nullptr) return bytes;
  for (const NewBatch& batch : append->batches) bytes += kCommandBytes + batch.bytes.size();
  for (const NewRecord& record : append->records) bytes += record_bytes(record);
  return bytes;
}

std::size_t command_bytes(const QueueCommand& command) {
  if (const auto* transfer = std::get_if<TransferCommand>(&command)) {
    return kCommandBytes + transfer->message->bytes().size();
  }
  const auto* enqueue = std::get_if<EnqueueCommand>(&command);
  if (enqueue == nullptr) return kCommandBytes;
  std::size_t bytes = 0;
  for (const NewMessage& message : enqueue->messages) {
    bytes += 2 * kCommandBytes + message.payload.size() + message.fairness_key.size();
    for (const auto& [name, value] : message.headers) bytes += name.size() + value.size() + 8;
    for (const std::string& key : message.throttle_keys) bytes += key.size() + 4;
  }
  return bytes;
}

}  // namespace baton
