// More than 500 lines: one shard with streams, whose claims share the fixture below.

#include "server/shard/stream_shard.h"

#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/stream/records.h"
#include "server/shard/shard_fixture.h"

namespace baton {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr ConnectionId kConnection{NodeId{1}, ConnectionNumber{1}};

class Sink final : public SeatSink {
 public:
  void told(const CoordinatorEffects::Effect& effect) override { effects.push_back(effect); }
  std::vector<CoordinatorEffects::Effect> effects;
};

/// The streams of a shard on a fake disk, with rounds and a clock that the test drives.
class StreamShardTest : public ShardOnFakes {
 protected:
  void SetUp() override { start(); }

  void round() {
    Held held = shard_->round(calls_, {}, now_);
    for (const auto& partition : held.unsynced) ASSERT_TRUE(partition->sync().has_value());
    ASSERT_TRUE(log_->sync().has_value());
    held.release();
    for (const PartitionName& name : held.removed) {
      ASSERT_TRUE(log_->remove_partition(name).has_value());
    }
    ASSERT_TRUE(log_->prepare().has_value());
  }
  void pass(Duration time) {
    now_ = now_ + time;
    round();
  }
  template <class Wanted>
  Wanted execute(Wanted command) {
    calls_.push_back(
        std::make_unique<DoneCall<StreamCommand>>(StreamCommand(std::move(command)), done_));
    round();
    Wanted result = std::get<Wanted>(std::move(done_.back()));
    done_.clear();
    return result;
  }

  void create(std::uint32_t partitions, const StreamSettingsPatch& settings = {}) {
    const auto done = execute(CreateStreamCommand{.stream = "s",
                                                  .partitions = partitions,
                                                  .settings = settings,
                                                  .error = {},
                                                  .description = {}});
    ASSERT_FALSE(done.error.has_value()) << to_string(*done.error);
  }
  static std::string batch(std::size_t bytes = 10,
                           const std::optional<ProducerStamp>& stamp = std::nullopt) {
    BatchBuilder builder;
    const std::string value(bytes, 'v');
    EXPECT_TRUE(builder
                    .add({.key = std::nullopt,
                          .value = value,
                          .headers = {},
                          .timestamp = TimestampMs{1'700'000'000'000}})
                    .has_value());
    return *builder.finish(Compression::none, stamp);
  }
  static ProducerStamp stamp(const StreamInfo::Producer& producer, std::int32_t sequence) {
    return {.id = producer.id, .epoch = producer.epoch, .sequence = Sequence32{sequence}};
  }
  BatchOutcome append(const std::string& bytes, std::uint32_t partition = 0) {
    AppendCommand command;
    command.stream = "s";
    command.batches.push_back({PartitionNumber{partition}, bytes});
    return execute(std::move(command)).outcomes.at(0);
  }
  std::vector<BatchOutcome> append_records(std::vector<NewRecord> records) {
    AppendCommand command;
    command.stream = "s";
    command.records = std::move(records);
    return execute(std::move(command)).record_outcomes;
  }
  static NewRecord record(std::size_t bytes = 10) {
    NewRecord record;
    record.value = std::string(bytes, 'v');
    return record;
  }
  StreamDescription describe() {
    return execute(DescribeStreamCommand{.stream = "s", .error = {}, .description = {}})
        .description;
  }
  PartitionDescription partition(std::uint32_t number = 0) {
    return describe().partitions.at(number).log;
  }
  StreamInfo::Producer start_producer(const std::string& name) {
    return execute(
               StartProducerCommand{.stream = "s", .producer = name, .error = {}, .started = {}})
        .started;
  }
  SubscribeCommand subscribe(const std::string& group, bool single_active,
                             std::vector<PartitionNumber> partitions = {}) {
    SubscribeCommand command;
    command.stream = "s";
    command.partitions = std::move(partitions);
    command.group = group;
    command.single_active = single_active;
    command.member = {kConnection, SubscriptionId{++subscriptions_}};
    command.ticket = Ticket{subscriptions_};
    command.sink = sink_;
    return execute(std::move(command));
  }
  std::optional<Error> store_offset(std::uint64_t offset, std::uint32_t partition = 0) {
    StoreOffsetCommand command;
    command.stream = "s";
    command.request = {.group = {"s", partition, "g"},
                       .holder = {},
                       .offset = GroupOffset{offset},
                       .may_rewind = true};
    return execute(std::move(command)).error;
  }
  QueryOffsetCommand query_offset(std::uint32_t partition = 0) {
    QueryOffsetCommand command;
    command.stream = "s";
    command.partition = PartitionNumber{partition};
    command.group = "g";
    return execute(std::move(command));
  }
  static StreamSettingsPatch with_fsync(FsyncMode::Kind kind, Duration interval = {}) {
    StreamSettingsPatch settings;
    settings.fsync = FsyncMode{.kind = kind, .interval = interval};
    return settings;
  }
  static Errc code(const std::optional<Error>& error) {
    return error.has_value() ? error->code : Errc{};
  }
  static std::string folder(std::uint32_t number) { return fmt::format("streams/1-{}", number); }

  std::vector<StreamCommand> done_;
  std::shared_ptr<Sink> sink_ = std::make_shared<Sink>();
  std::uint64_t subscriptions_ = 0;
};

TEST_F(StreamShardTest, RecordsOffsetsAndGenerationsSurviveACrash) {
  create(2);
  EXPECT_EQ(append(batch(), 1).offset, Offset{0});
  EXPECT_EQ(append(batch(), 1).offset, Offset{1});
  const auto subscribed = subscribe("g", true);
  ASSERT_FALSE(subscribed.error.has_value());
  ASSERT_EQ(subscribed.subscribed.size(), 2U);
  EXPECT_EQ(sink_->effects.size(), 2U) << "it has both seats";
  const Generation generation = query_offset(1).generation;
  EXPECT_GT(generation, Generation{});
  execute(ConnectionDownCommand{.stream = "s", .connection = kConnection});
  EXPECT_FALSE(store_offset(1, 1).has_value());
  crash();
  EXPECT_EQ(partition(1).next, Offset{2});
  EXPECT_EQ(query_offset(1).offset, GroupOffset{1});
  EXPECT_GE(query_offset(1).generation, generation);
  EXPECT_EQ(append(batch(), 1).offset, Offset{2});
}

// Under `never` a power cut may take the tail that the group's offset refers to.
TEST_F(StreamShardTest, OffsetsPastTheRecoveredEndAreTakenBackToIt) {
  create(1, with_fsync(FsyncMode::Kind::never));
  for (int i = 0; i < 20; ++i) append(batch(5000));
  EXPECT_FALSE(store_offset(20).has_value());
  crash();
  const Offset next = partition().next;
  ASSERT_LT(next, Offset{20}) << "the crash took nothing; the test shows nothing";
  EXPECT_EQ(query_offset().offset, GroupOffset{static_cast<std::uint64_t>(next.value)});
}

TEST_F(StreamShardTest, OffsetsPastTheEndAndWrongPartitionsAreRefused) {
  create(1);
  append(batch());
  EXPECT_EQ(code(store_offset(2)), Errc::offset_out_of_range);
  EXPECT_EQ(code(store_offset(0, ~std::uint32_t{0})), Errc::partition_not_found);
  EXPECT_EQ(code(query_offset(1).error), Errc::partition_not_found);
  EXPECT_EQ(code(append(batch(), ~std::uint32_t{0}).error), Errc::partition_not_found);
  EXPECT_EQ(code(subscribe("g", true, {PartitionNumber{0}, PartitionNumber{1}}).error),
            Errc::partition_not_found);
  EXPECT_EQ(shard_->stats().streams.groups.consumers, 0U) << "all of it, or none";
}

TEST_F(StreamShardTest, ADeletedStreamTakesItsFilesAndItsGroupsAlong) {
  create(2);
  append(batch(), 0);
  append(batch(), 1);
  store_offset(1);
  const auto opened = subscribe("g2", false).subscribed.at(0).opened;
  ASSERT_FALSE(disk_.list(folder(0))->empty());
  EXPECT_FALSE(execute(DeleteStreamCommand{.stream = "s", .error = {}}).error.has_value());
  EXPECT_TRUE(disk_.list(folder(0))->empty());
  EXPECT_TRUE(disk_.list(folder(1))->empty());
  EXPECT_TRUE(opened->closed());
  EXPECT_EQ(code(append(batch()).error), Errc::stream_not_found);
  crash();
  create(1);
  EXPECT_EQ(partition().next, Offset{0});
  EXPECT_FALSE(query_offset().offset.has_value());
}

TEST_F(StreamShardTest, AListIsBoundedByStreamsAndByTheirPartitions) {
  for (const char* const name : {"c", "a", "b"}) {
    const auto done = execute(CreateStreamCommand{
        .stream = name, .partitions = 2, .settings = {}, .error = {}, .description = {}});
    ASSERT_FALSE(done.error.has_value());
  }
  const auto list = [&](const std::string& after, std::size_t streams, std::size_t partitions) {
    ListStreamsCommand wanted;
    wanted.after = after;
    wanted.streams_max = streams;
    wanted.partitions_max = partitions;
    std::string names;
    const ListStreamsCommand done = execute(std::move(wanted));
    for (const StreamDescription& stream : done.descriptions) names += stream.name;
    return names + (done.more ? "..." : "");
  };
  EXPECT_EQ(list("", 9, 99), "abc");
  EXPECT_EQ(list("", 2, 99), "ab...");
  EXPECT_EQ(list("b", 2, 99), "c");
  EXPECT_EQ(list("", 9, 3), "ab...");
  EXPECT_EQ(list("", 9, 1), "a...");
}

TEST_F(StreamShardTest, AListOfGroupsSaysWhetherItHasMore) {
  create(3);
  for (const std::uint32_t partition : {0U, 1U, 2U}) {
    StoreOffsetCommand store;
    store.stream = "s";
    store.request.group = {"s", partition, "g"};
    ASSERT_FALSE(execute(std::move(store)).error.has_value());
  }
  ListGroupsCommand wanted;
  wanted.groups_max = 2;
  const ListGroupsCommand first = execute(wanted);
  ASSERT_EQ(first.groups.size(), 2U);
  EXPECT_TRUE(first.more);
  wanted.after = first.groups.back().description.group;
  const ListGroupsCommand second = execute(wanted);
  ASSERT_EQ(second.groups.size(), 1U);
  EXPECT_EQ(second.groups[0].description.group.partition, 2U);
  EXPECT_FALSE(second.more);
  EXPECT_FALSE(execute(ListGroupsCommand{}).more);
}

TEST_F(StreamShardTest, FilesOfADeletedStreamGoAtTheNextStartIfTheyCouldNotBefore) {
  create(1);
  append(batch());
  // The fact is durable, and the power is cut before a file is removed.
  calls_.push_back(std::make_unique<DoneCall<StreamCommand>>(
      StreamCommand(DeleteStreamCommand{.stream = "s", .error = {}}), done_));
  Held held = shard_->round(calls_, {}, now_);
  ASSERT_TRUE(log_->sync().has_value());
  held = {};
  crash();
  round();
  EXPECT_TRUE(disk_.list(folder(0))->empty());
}

TEST_F(StreamShardTest, RetentionBySizeAndByAge) {
  StreamSettingsPatch settings;
  settings.segment_bytes = 4096;
  settings.retention_bytes = 10'000;
  create(1, settings);
  for (int i = 0; i < 20; ++i) append(batch(2000));
  pass(seconds{11});
  EXPECT_GT(partition().first, Offset{10});
  EXPECT_LE(partition().bytes, 15'000U);

  StreamSettingsPatch age;
  age.retention_bytes = 0;
  age.retention = Duration{seconds{60}};
  execute(UpdateStreamCommand{.stream = "s", .settings = age, .error = {}, .description = {}});
  pass(seconds{120});
  EXPECT_EQ(partition().first, Offset{20});
  EXPECT_EQ(partition().next, Offset{20});
}

TEST_F(StreamShardTest, UnderIntervalASyncComesWithinTheInterval) {
  create(1, with_fsync(FsyncMode::Kind::interval, milliseconds{100}));
  const auto opened = subscribe("", false).subscribed.at(0).opened;
  append(batch());
  EXPECT_EQ(opened->synced_end(), Offset{0});
  EXPECT_EQ(opened->reader().next(), Offset{1}) << "readers see it at once";
  EXPECT_LE(shard_->next_deadline(), now_ + milliseconds{100});
  pass(milliseconds{99});
  EXPECT_EQ(opened->synced_end(), Offset{0});
  pass(milliseconds{1});
  EXPECT_EQ(opened->synced_end(), Offset{1});
}

// There is nothing to note, so there is no reason to wake up.
TEST_F(StreamShardTest, UnderNeverNobodyWaitsForASync) {
  create(1, with_fsync(FsyncMode::Kind::never));
  append(batch());
  EXPECT_GE(shard_->next_deadline(), now_ + seconds{5});
}

TEST_F(StreamShardTest, ADamagedPartitionIsReadOnlyAndTheOthersGoOn) {
  create(2);
  append(batch(3000), 0);
  append(batch(3000), 0);
  store_offset(2);
  pass(seconds{2});  // The synced end is noted.
  const auto files = disk_.list(folder(0));
  ASSERT_TRUE(files.has_value());
  for (const std::string& name : *files) {
    if (name.ends_with(".log")) disk_.flip_bit(folder(0) + "/" + name, 8 * 3200);
  }
  crash();
  EXPECT_TRUE(partition(0).read_only.has_value());
  EXPECT_EQ(shard_->stats().streams.partitions_read_only, 1U);
  EXPECT_EQ(code(append(batch(), 0).error), Errc::read_only);
  EXPECT_EQ(append(batch(), 1).offset, Offset{0});
  EXPECT_EQ(query_offset().offset, GroupOffset{2}) << "damage says nothing about the group";
}

TEST_F(StreamShardTest, AFullDiskRefusesAppendsUntilThereIsRoom) {
  create(1);
  append(batch());
  disk_.set_capacity(disk_.bytes_used());
  EXPECT_EQ(code(append(batch(1000)).error), Errc::disk_full);
  const auto outcomes = append_records({record(), record(), record()});
  for (const BatchOutcome& outcome : outcomes) {
    EXPECT_EQ(code(outcome.error), Errc::disk_full);
    EXPECT_EQ(outcome.offset, Offset{-1});
  }
  disk_.set_capacity(~std::uint64_t{0});
  EXPECT_EQ(append(batch()).offset, Offset{1});
}

TEST_F(StreamShardTest, DuplicatesGapsAndOldEpochsAreToldApart) {
  create(1);
  const StreamInfo::Producer producer = start_producer("p");
  EXPECT_EQ(append(batch(10, stamp(producer, 0))).offset, Offset{0});
  BatchOutcome outcome = append(batch(10, stamp(producer, 0)));
  EXPECT_TRUE(outcome.duplicate);
  EXPECT_EQ(outcome.offset, Offset{0});
  EXPECT_FALSE(outcome.error.has_value());
  outcome = append(batch(10, stamp(producer, 5)));
  EXPECT_EQ(code(outcome.error), Errc::sequence_gap);
  EXPECT_FALSE(outcome.duplicate);
  EXPECT_EQ(outcome.offset, Offset{-1});
  const StreamStats stats = shard_->stats().streams;
  EXPECT_EQ(stats.batches, 1U);
  EXPECT_EQ(stats.duplicates, 1U);
  EXPECT_EQ(stats.refused, 1U);
}

TEST_F(StreamShardTest, AProducerThatStartedAgainIsFencedAlsoAfterARestart) {
  create(2);
  const StreamInfo::Producer old = start_producer("p");
  append(batch(10, stamp(old, 0)));
  const StreamInfo::Producer again = start_producer("p");
  EXPECT_EQ(again.id, old.id);
  EXPECT_GT(again.epoch, old.epoch);
  EXPECT_EQ(code(append(batch(10, stamp(old, 1))).error), Errc::producer_fenced);
  crash();
  EXPECT_EQ(code(append(batch(10, stamp(old, 1))).error), Errc::producer_fenced);
  // Also in a partition where the producer has never been.
  EXPECT_EQ(code(append(batch(10, stamp(old, 0)), 1).error), Errc::producer_fenced);
  EXPECT_EQ(append(batch(10, stamp(again, 0)), 1).offset, Offset{0});
}

TEST_F(StreamShardTest, BrokenBatchesAreRefusedAndTheOthersOfTheRequestAreNot) {
  create(1);
  AppendCommand command;
  command.stream = "s";
  std::string broken = batch();
  broken.back() = static_cast<char>(broken.back() ^ 1);
  for (const std::string& bytes : {batch(), broken, std::string(), batch()}) {
    command.batches.push_back({PartitionNumber{0}, bytes});
  }
  const auto outcomes = execute(std::move(command)).outcomes;
  EXPECT_EQ(outcomes.at(0).offset, Offset{0});
  EXPECT_TRUE(outcomes.at(1).error.has_value());
  EXPECT_TRUE(outcomes.at(2).error.has_value());
  EXPECT_EQ(outcomes.at(3).offset, Offset{1});
}

TEST_F(StreamShardTest, PlainRecordsBecomeBatchesAndKnowTheirOffsets) {
  StreamSettingsPatch settings;
  settings.batch_bytes_max = 4096;
  create(1, settings);
  std::vector<NewRecord> records(10, record(1000));
  records[4] = record(5000);  // No batch can hold it.
  const auto outcomes = append_records(records);
  std::int64_t next = 0;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    if (i == 4) {
      EXPECT_EQ(code(outcomes[i].error), Errc::invalid_argument);
      EXPECT_EQ(outcomes[i].offset, Offset{-1});
    } else {
      EXPECT_FALSE(outcomes[i].error.has_value());
      EXPECT_EQ(outcomes[i].offset, Offset{next++});
    }
  }
  EXPECT_EQ(partition().next, Offset{9});
  EXPECT_EQ(shard_->stats().streams.batches, 3U);
}

// The records would share a batch, and be refused with it.
TEST_F(StreamShardTest, ARecordThatIsRefusedDoesNotTakeTheOthersAlong) {
  create(2);
  std::vector<NewRecord> records(4, record());
  for (NewRecord& each : records) each.key = "k";
  records[0].timestamp = to_timestamp(now_ + std::chrono::hours{2});
  records[1].timestamp = TimestampMs{-1};
  records[2].partition = PartitionNumber{~std::uint32_t{0}};
  const auto outcomes = append_records(records);
  EXPECT_EQ(code(outcomes[0].error), Errc::invalid_argument);
  EXPECT_EQ(code(outcomes[1].error), Errc::invalid_argument);
  EXPECT_EQ(code(outcomes[2].error), Errc::partition_not_found);
  EXPECT_FALSE(outcomes[3].error.has_value());
  EXPECT_EQ(outcomes[3].offset, Offset{0});
}

// Records count like batches for the limit on calls that wait for a shard.
TEST_F(StreamShardTest, RecordsThatWaitAreCounted) {
  AppendCommand command;
  command.records.push_back(record(1'000'000));
  EXPECT_GT(command_bytes(Command(StreamCommand(command))), 1'000'000U);
}

TEST_F(StreamShardTest, ManyPartitionsAreMadeWithoutTouchingTheDisk) {
  const std::uint64_t before = disk_.syncs();
  create(1024);
  EXPECT_LT(disk_.syncs() - before, 100U);
  EXPECT_TRUE(disk_.list(folder(77))->empty());
  append(batch(), 77);
  EXPECT_FALSE(disk_.list(folder(77))->empty());
  crash();
  EXPECT_EQ(describe().partitions.size(), 1024U);
  EXPECT_EQ(partition(77).next, Offset{1});
}

TEST_F(StreamShardTest, AGroupIsOneOrTheOtherAndARefusalLeavesNobody) {
  create(2);
  EXPECT_FALSE(subscribe("g", true, {PartitionNumber{1}}).error.has_value());
  EXPECT_TRUE(subscribe("g", false).error.has_value());
  EXPECT_EQ(shard_->stats().streams.groups.consumers, 1U);
}

TEST_F(StreamShardTest, AGroupIsForgottenAtAllPartitionsOrAtNone) {
  create(2);
  store_offset(0, 0);
  subscribe("g", false, {PartitionNumber{1}});
  GroupCommand forget{.stream = "s",
                      .group = "g",
                      .what = GroupCommand::What::forget,
                      .error = {},
                      .partitions = {}};
  EXPECT_EQ(code(execute(forget).error), Errc::failed_precondition);
  EXPECT_EQ(query_offset(0).offset, GroupOffset{0}) << "half of it is gone";
  execute(ConnectionDownCommand{.stream = "s", .connection = kConnection});
  EXPECT_FALSE(execute(forget).error.has_value());
  EXPECT_FALSE(query_offset(0).offset.has_value());
  EXPECT_EQ(code(execute(forget).error), Errc::not_found);
}

TEST_F(StreamShardTest, AConnectionThatIsDownIsToldNothingMore) {
  create(1);
  subscribe("g", true);
  ASSERT_EQ(sink_->effects.size(), 1U);
  execute(ConnectionDownCommand{.stream = "s", .connection = kConnection});
  execute(ConnectionDownCommand{.stream = "s", .connection = kConnection});
  execute(DeleteStreamCommand{.stream = "s", .error = {}});
  EXPECT_EQ(sink_->effects.size(), 1U);
}

// The shard stops within the second before the regular note.
TEST_F(StreamShardTest, AShardThatStopsInOrderTellsWhereItsPartitionsEnd) {
  create(1);
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(append(batch(100)).error.has_value());
  ASSERT_TRUE(shard_->finish(now_).has_value());
  disk_.flip_bit(folder(0) + "/00000000000000000000.log", 8 * (2 * batch(100).size() + 80));
  start();
  EXPECT_TRUE(partition(0).read_only.has_value());
  EXPECT_EQ(partition(0).next, Offset{4});
}

// Opening made everything durable: from then on its loss is damage.
TEST_F(StreamShardTest, AStartNotesWhereItsPartitionsEnd) {
  create(1);
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(append(batch(100)).error.has_value());
  start();
  start();
  disk_.flip_bit(folder(0) + "/00000000000000000000.log", 8 * (2 * batch(100).size() + 80));
  start();
  EXPECT_TRUE(partition(0).read_only.has_value());
}

TEST_F(StreamShardTest, WithoutDescriptorsAnAppendIsRefusedAndSaysSo) {
  create(1, {.retention = {},
             .retention_bytes = {},
             .segment_bytes = 16384,
             .fsync = {},
             .batch_bytes_max = {}});
  for (int i = 0; i < 2; ++i) ASSERT_FALSE(append(batch(6000)).error.has_value());
  // The next append begins a new segment.
  disk_.set_opens_left(0);
  AppendCommand command;
  command.stream = "s";
  command.batches.push_back({PartitionNumber{0}, batch(6000)});
  calls_.push_back(
      std::make_unique<DoneCall<StreamCommand>>(StreamCommand(std::move(command)), done_));
  Held held = shard_->round(calls_, {}, now_);
  held.release();
  const auto refused = std::get<AppendCommand>(std::move(done_.back())).outcomes.at(0);
  done_.clear();
  ASSERT_TRUE(refused.error.has_value());
  EXPECT_EQ(refused.error->code, Errc::unavailable);
  EXPECT_NE(refused.error->text.find("too many open files"), std::string::npos);
  disk_.set_opens_left(std::nullopt);
  EXPECT_EQ(append(batch(6000)).offset, Offset{2});
}

}  // namespace
}  // namespace baton
