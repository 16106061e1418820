#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/growing.h"
#include "base/result.h"
#include "base/rows.h"
#include "base/time.h"
#include "core/stream/settings.h"
#include "core/stream/types.h"

/// Which streams a shard has, and what of them the journal must know. docs/storage-format.md draws
/// the bytes of facts and rows.
namespace baton {

/// The number of a stream, never given twice in a shard: its folders carry it.
using StreamId = Strong<struct StreamIdTag>;

struct StreamCreated {
  StreamId stream;
  std::string name;
  std::uint32_t partitions = 1;
  StreamSettings settings;
  Instant at;
};
struct StreamUpdated {
  StreamId stream;
  StreamSettings settings;
};
struct StreamDeleted {
  StreamId stream;
};
/// A producer got its id, or, coming again under its name, a new epoch.
struct ProducerStarted {
  StreamId stream;
  std::string name;  // Empty: one without a name, of which only the id counts.
  ProducerId id;
  ProducerEpoch epoch;
};
/// Every record before `end` was on the disk: its loss is damage, not a torn tail.
struct PartitionSynced {
  StreamId stream;
  PartitionNumber partition;
  Offset end;
};

/// The number of a kind is its place here: the list only grows at its end.
using StreamFact =
    std::variant<StreamCreated, StreamUpdated, StreamDeleted, ProducerStarted, PartitionSynced>;
extern const FactSet kStreamFacts;
void encode(Encoder& out, const StreamFact& fact);
/// Fails with malformed, or store_too_new.
Result<StreamFact> decode_stream_fact(const FactFrame& frame);
Result<StreamFact> decode_stream_fact(Decoder& in);
/// Reads one fact of format 1; fails with malformed.
Result<StreamFact> decode_stream_fact_1(Decoder& in);

namespace tables {
inline constexpr Table kStreams{12};
inline constexpr Table kStreamProducers{13};
inline constexpr std::array<TableName, 2> kStream{
    {{kStreams, "streams"}, {kStreamProducers, "stream_producers"}}};
}  // namespace tables

/// A stream as the shard knows it.
struct StreamInfo {
  struct Producer {
    ProducerId id;
    ProducerEpoch epoch;
    bool operator==(const Producer&) const = default;
  };
  StreamId id;
  std::string name;
  StreamSettings settings;
  Instant created_at;
  std::vector<Offset> synced;                              // One for each partition.
  std::map<std::string, Producer, std::less<>> producers;  // Those with a name.

  [[nodiscard]] std::uint32_t partitions() const {
    return static_cast<std::uint32_t>(synced.size());
  }
};

/// The streams of one shard. Pure. Owned by the shard; not thread-safe. Its state changes only in
/// apply().
class StreamCatalog {
 public:
  /// Takes each fact as it happens, before it is applied: the journal.
  using Recorder = std::function<void(const StreamFact&)>;
  void start(Recorder recorder) { recorder_ = std::move(recorder); }

  // Decide. Each records and applies the fact that follows.
  /// Creating it again with the same settings is fine: `false` then.
  Result<std::pair<const StreamInfo*, bool>> create(std::string_view name, std::uint32_t partitions,
                                                    const StreamSettingsPatch& settings,
                                                    Instant now);
  Result<const StreamInfo*> update(std::string_view name, const StreamSettingsPatch& settings);
  /// Answers what is no more.
  Result<StreamInfo> remove(std::string_view name);
  Result<StreamInfo::Producer> start_producer(std::string_view stream, std::string_view name);
  /// Notes a synced end, if it is news.
  void note_synced(StreamId stream, PartitionNumber partition, Offset end);

  // Look.
  [[nodiscard]] Result<const StreamInfo*> find(std::string_view name) const;
  [[nodiscard]] const StreamInfo* find(StreamId id) const;
  [[nodiscard]] const std::map<StreamId, StreamInfo>& all() const { return streams_; }
  [[nodiscard]] const std::map<std::string, StreamId, std::less<>>& names() const { return names_; }

  /// Streams deleted since the last checkpoint, with their numbers of partitions: their files may
  /// still be there.
  [[nodiscard]] const std::map<StreamId, std::uint32_t>& deleted() const { return deleted_; }

  // Recover.
  void apply(const StreamFact& fact);
  Status load(Table table, const Row& row);
  /// Puts and erases the rows that changed since the last call. O(changed).
  void append_changed_rows(RowBatch& batch);
  /// About the bytes of those rows.
  [[nodiscard]] std::size_t changed_bytes() const;

 private:
  void commit(const StreamFact& fact);
  void on(const StreamCreated& fact);
  void on(const StreamUpdated& fact);
  void on(const StreamDeleted& fact);
  void on(const ProducerStarted& fact);
  void on(const PartitionSynced& fact);
  StreamInfo* known(StreamId id);
  void load_stream(StreamId id, const Row& row, Decoder& in);

  Recorder recorder_;
  std::map<StreamId, StreamInfo> streams_;
  std::map<std::string, StreamId, std::less<>> names_;
  StreamId next_stream_{1};
  ProducerId next_producer_{1};
  std::set<StreamId> changed_;
  std::map<StreamId, std::uint32_t> deleted_;
  std::set<std::pair<StreamId, std::string>> changed_producers_;
};

}  // namespace baton
