#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <baton/connection.h>
#include <baton/result.h>
#include <baton/stream.h>

namespace baton::client {

/// Which part of one partition to read.
struct ReadOptions {
  std::string stream{};
  std::uint32_t partition = 0;
  StartFrom from{};
  std::uint64_t records_max = 0;  // 0 = no limit.
  bool follow = false;            // At the end, wait for further records.
};

/// Reads a range of one partition, without a group. A reader that follows reconnects by itself
/// after a broken connection, and continues where it was.
///
/// next() is for one thread at a time; stop() and position() may be called from any.
class StreamReader {
 public:
  /// The next records, at least one; nullopt at the end of the range and after stop(). Blocks until
  /// there are some. After an error it returns the same error again.
  Result<std::optional<std::vector<Record>>> next();
  /// Ends a next() that waits, and every later one.
  void stop();
  /// The offset to continue from; -1 until something was read.
  [[nodiscard]] std::int64_t position() const;

  StreamReader(const StreamReader&) = delete;
  StreamReader& operator=(const StreamReader&) = delete;
  StreamReader(StreamReader&&) = delete;
  StreamReader& operator=(StreamReader&&) = delete;
  /// No next() may be running.
  ~StreamReader();

 private:
  friend class StreamClient;
  struct State;
  explicit StreamReader(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

/// Where to move a group.
struct SetOffsetOptions {
  StartFrom to = StartFrom::first();
  std::vector<std::uint32_t> partitions{};  // [all]
  bool dry_run = false;
};
struct GroupOffsetChange {
  std::uint32_t partition = 0;
  std::optional<std::int64_t> before{};  // Absent: no offset was stored.
  std::int64_t after = 0;
};

/// Plain calls to a broker: streams, groups and their administration, one-off appends and reads.
/// Each call blocks until the answer or the deadline, and is tried once. For many records use
/// StreamProducer and, to work on them in a group, StreamConsumer.
///
/// Thread-safe: any number of threads may call at once. Movable; a moved-from client may only be
/// destroyed or assigned to. No call may be running when it is destroyed; its readers may live on.
class StreamClient {
 public:
  /// Checks the address and reads the TLS files. Does not wait for the broker: the first call does.
  static Result<StreamClient> connect(ConnectionOptions options);

  StreamClient(StreamClient&&) noexcept;
  StreamClient& operator=(StreamClient&&) noexcept;
  StreamClient(const StreamClient&) = delete;
  StreamClient& operator=(const StreamClient&) = delete;
  ~StreamClient();

  /// Waits until the broker is connected, retrying until `timeout`.
  Status wait_until_ready(std::chrono::milliseconds timeout);

  // Streams.

  Result<StreamInfo> create_stream(std::string_view name, std::uint32_t partitions = 1,
                                   const StreamSettings& settings = {});
  /// Changes the settings that are present; takes effect at once. The number of partitions stays.
  Result<StreamInfo> update_stream(std::string_view name, const StreamSettings& settings);
  /// Removes the stream, its groups and every byte in it.
  Status delete_stream(std::string_view name);
  Result<std::vector<StreamInfo>> list_streams(std::string_view prefix = {});
  Result<StreamInfo> describe_stream(std::string_view name);

  // Records.

  /// The easy path: the broker makes the batches. One result per record, in order; a bad record
  /// never fails its neighbours. An Error of the whole call leaves the outcome of the records
  /// unknown, and appending them again may store them twice, which StreamProducer avoids.
  Result<std::vector<AppendResult>> append(std::string_view stream,
                                           std::span<const NewRecord> records);
  /// Does not wait for the broker: the reader's first next() does.
  std::unique_ptr<StreamReader> read(ReadOptions options);

  // Groups.

  /// For groups without consumers and for groups that are not single-active.
  Status store_offset(std::string_view stream, std::uint32_t partition, std::string_view group,
                      std::int64_t offset);
  Result<StoredOffset> query_offset(std::string_view stream, std::uint32_t partition,
                                    std::string_view group);
  /// One entry per group and partition; of all streams when `stream` is empty.
  Result<std::vector<GroupInfo>> list_groups(std::string_view stream = {});
  /// One entry per partition.
  Result<std::vector<GroupInfo>> describe_group(std::string_view stream, std::string_view group);
  /// Drops consumers that are not connected, and gives their seats to others.
  Result<std::vector<GroupInfo>> evaluate_group(std::string_view stream, std::string_view group);
  /// Moves the offsets of a group that has no consumers, in all partitions or in those named: to
  /// the first record, after the last one (next), to an offset, or to the first record that is not
  /// older than a time. Changes all of them, or none. A dry run checks and changes nothing.
  Result<std::vector<GroupOffsetChange>> set_group_offsets(std::string_view stream,
                                                           std::string_view group,
                                                           const SetOffsetOptions& options);
  /// Forgets a group without consumers, and its offsets.
  Status delete_group(std::string_view stream, std::string_view group);

 private:
  struct State;
  explicit StreamClient(std::unique_ptr<State> state);
  Result<std::int64_t> place_in(std::string_view stream, const PartitionInfo& partition,
                                const StartFrom& to);

  std::unique_ptr<State> state_;
};

}  // namespace baton::client
