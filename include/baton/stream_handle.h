#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <baton/connection.h>
#include <baton/numbers.h>
#include <baton/result.h>
#include <baton/stream.h>
#include <baton/stream_consumer.h>
#include <baton/stream_producer.h>

namespace baton::client {

/// Which part of one partition to read.
struct ReadOptions {
  PartitionNumber partition{};
  StartFrom from{};
  std::uint64_t records_max = 0;  // 0 = no limit.
  bool follow = false;            // At the end, wait for further records.
};

/// Reads a range of one partition, without a group; Stream::read() opens one. A reader that follows
/// reconnects by itself after a broken connection, and continues where it was.
///
/// next() is for one thread at a time; close() and position() may be called from any. Movable; a
/// moved-from reader may only be destroyed or assigned to.
class StreamReader {
 public:
  /// The next records, at least one; nullopt at the end of the range and after close(). Blocks
  /// until there are some. After an error it returns the same error again.
  Result<std::optional<std::vector<Record>>> next();
  /// Ends a next() that waits, and every later one.
  void close();
  /// The offset to continue from; kNoOffset until something was read.
  [[nodiscard]] Offset position() const;

  StreamReader(StreamReader&&) noexcept;
  StreamReader& operator=(StreamReader&&) noexcept;
  StreamReader(const StreamReader&) = delete;
  StreamReader& operator=(const StreamReader&) = delete;
  /// No next() may be running.
  ~StreamReader();

 private:
  friend class Stream;
  struct State;
  explicit StreamReader(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

/// Where to move a group.
struct SetOffsetOptions {
  StartFrom to = StartFrom::first();
  std::vector<PartitionNumber> partitions{};  // [all]
  bool dry_run = false;
};
struct GroupOffsetChange {
  PartitionNumber partition{};
  std::optional<Offset> before{};  // Absent: no offset was stored.
  Offset after{};
};

/// A group of a stream's consumers, by its name: made by Stream::group().
///
/// Thread-safe. A value: a copy uses the same connection.
class Group {
 public:
  [[nodiscard]] const std::string& name() const { return name_; }

  /// One entry per partition.
  Result<std::vector<GroupInfo>> describe() const;
  /// Drops consumers that are not connected, and gives their seats to others.
  Result<std::vector<GroupInfo>> evaluate() const;
  /// Forgets the group, which must have no consumers, and its offsets.
  Status drop() const;

  Result<StoredOffset> offset(PartitionNumber partition) const;
  /// For groups without consumers and for groups that are not single-active.
  Status store_offset(PartitionNumber partition, Offset offset) const;
  /// Moves the offsets of a group that has no consumers, in all partitions or in those named: to
  /// the first record, after the last one (next), to an offset, or to the first record that is not
  /// older than a time. Changes all of them, or none. A dry run checks and changes nothing.
  Result<std::vector<GroupOffsetChange>> set_offsets(const SetOffsetOptions& options) const;

 private:
  friend class Stream;
  Group(ConnectionPointer connection, std::string_view stream, std::string_view name)
      : connection_(std::move(connection)), stream_(stream), name_(name) {}

  ConnectionPointer connection_;
  std::string stream_;
  std::string name_;
};

/// A stream of a Broker, by its name: made by Broker::stream(). For many records use a producer
/// and, to work on them in a group, a consumer.
///
/// Thread-safe. A value: a copy uses the same connection.
class Stream {
 public:
  [[nodiscard]] const std::string& name() const { return name_; }

  // The stream itself.

  /// Succeeds if the stream exists with the same partitions and settings; fails with stream_exists
  /// if they differ.
  Result<StreamInfo> create(std::uint32_t partitions = 1,
                            const StreamSettings& settings = {}) const;
  /// Changes the settings that are present; takes effect at once. The number of partitions stays.
  Result<StreamInfo> update(const StreamSettings& settings) const;
  /// Removes the stream, its groups and every byte in it.
  Status drop() const;
  Result<StreamInfo> describe() const;

  // Groups.

  [[nodiscard]] Group group(std::string_view name) const { return {connection_, name_, name}; }
  /// One entry per group and partition.
  Result<std::vector<GroupInfo>> groups() const { return list_groups(connection_, name_); }

  // Records. A producer and a consumer have a connection of their own.

  /// Checks the options, asks the broker for the stream's partitions and for an identity. Waits for
  /// the broker up to the connection's `deadline`.
  Result<StreamProducer> producer(StreamProducerOptions options = {}) const;
  /// Checks the options, asks the broker about the stream (waiting for the broker up to the
  /// connection's `deadline`), and starts.
  Result<StreamConsumer> consumer(StreamConsumerOptions options,
                                  StreamConsumer::Handler handler) const;
  /// Does not wait for the broker: the reader's first next() does.
  [[nodiscard]] StreamReader read(ReadOptions options = {}) const;
  /// The easy path: the broker makes the batches. One result per record, in order; a bad record
  /// never fails its neighbours. An Error of the whole call leaves the outcome of the records
  /// unknown, and appending them again may store them twice, which a producer avoids.
  Result<std::vector<AppendResult>> append(std::span<const NewRecord> records) const;

 private:
  friend class Broker;
  friend class Group;
  Stream(ConnectionPointer connection, std::string_view name)
      : connection_(std::move(connection)), name_(name) {}
  static Result<std::vector<StreamInfo>> list(const ConnectionPointer& connection,
                                              std::string_view prefix);
  static Result<std::vector<GroupInfo>> list_groups(const ConnectionPointer& connection,
                                                    std::string_view stream);
  /// The offset that `to` names in one partition.
  [[nodiscard]] Result<Offset> place_in(const PartitionInfo& partition, const StartFrom& to) const;

  ConnectionPointer connection_;
  std::string name_;
};

}  // namespace baton::client
