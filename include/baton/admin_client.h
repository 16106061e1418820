#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <baton/connection.h>
#include <baton/result.h>

namespace baton::client {

/// A table of a shard's checkpoint.
struct TableInfo {
  std::string name{};
  std::uint64_t rows = 0;
  std::uint64_t bytes = 0;
};

/// What one shard's store holds. Positions are those of rounds in its journal.
struct ShardInfo {
  std::uint64_t boot = 0;
  std::uint32_t format_version = 0;
  std::vector<TableInfo> tables{};
  std::uint64_t checkpoint_position = 0;
  std::uint64_t journal_first = 0;
  std::uint64_t journal_next = 0;
  std::uint64_t journal_durable = 0;
  std::uint64_t journal_bytes = 0;
};

/// What an operator asks of a running broker's store. Blocks until the answer or the deadline.
/// Thread-safe; owns its connection.
class AdminClient {
 public:
  /// Checks the address and reads the TLS files. Does not wait for the broker: the first call does.
  static Result<AdminClient> connect(ConnectionOptions options);

  AdminClient(AdminClient&&) noexcept;
  AdminClient& operator=(AdminClient&&) noexcept;
  AdminClient(const AdminClient&) = delete;
  AdminClient& operator=(const AdminClient&) = delete;
  ~AdminClient();

  /// Makes a checkpoint of every shard, and waits until it is durable.
  Status checkpoint();
  /// What each shard's store holds, as of its last checkpoint.
  Result<std::vector<ShardInfo>> inspect();

 private:
  struct State;
  explicit AdminClient(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace baton::client
