#include "server/shard/stream_shard.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "base/assert.h"
#include "base/name_range.h"
#include "server/shard/machines.h"

namespace baton {
namespace {

/// The error of a batch that was not stored; nullopt for one that was.
std::optional<Error> refusal_of(const AppendOutcome& outcome) {
  switch (outcome.verdict) {
    case ProducerVerdict::append:
    case ProducerVerdict::duplicate:
    case ProducerVerdict::old_duplicate: return std::nullopt;
    case ProducerVerdict::gap: return Error{Errc::sequence_gap, outcome.text};
    case ProducerVerdict::stale_epoch: return Error{Errc::producer_fenced, outcome.text};
    case ProducerVerdict::table_full: return Error{Errc::resource_exhausted, outcome.text};
  }
  return Error{Errc::internal, "a verdict without a meaning"};
}

/// A temporary error: descriptors are freed when connections end.
Error too_many_files(const Error& error) {
  return {Errc::unavailable,
          "the broker has as many files open as it may (too many open files): " + error.text};
}

/// The error for the producer. Ends the process if the contents of the disk are unknown.
Error refusal_of_append(const Error& error) {
  switch (error.code) {
    case Errc::resource_exhausted: return too_many_files(error);
    case Errc::read_only:
    case Errc::disk_full:
    case Errc::invalid_argument: return error;
    default: fatal("a partition cannot be written", error);
  }
}

bool is_duplicate(const AppendOutcome& outcome) {
  return outcome.verdict == ProducerVerdict::duplicate ||
         outcome.verdict == ProducerVerdict::old_duplicate;
}

/// The valid batches among those at `places`, and their places; fills in errors for the others.
std::pair<std::vector<CheckedBatch>, std::vector<std::size_t>> check_batches(
    AppendCommand& command, std::span<const std::size_t> places, const BatchRules& rules,
    Instant now) {
  std::pair<std::vector<CheckedBatch>, std::vector<std::size_t>> good;
  for (const std::size_t place : places) {
    auto batch = check_batch(command.batches[place].bytes, rules, now);
    if (batch.has_value()) {
      good.first.push_back(*batch);
      good.second.push_back(place);
    } else {
      command.outcomes[place].error = batch.error();
    }
  }
  return good;
}

}  // namespace

StreamShard::StreamShard(const MachineOptions& options, ShardLog& log)
    : log_(log),
      options_(options.streams),
      coordinator_({}, [this](const CoordinatorFact& fact) { facts_->add(fact, true); }) {}

Error StreamShard::no_such_partition(const StreamInfo& stream, PartitionNumber number) {
  return {Errc::partition_not_found,
          fmt::format("stream '{}' has no partition {}; it has {}, numbered from 0", stream.name,
                      number.value, stream.partitions())};
}

std::span<const Table> StreamShard::tables() const {
  static constexpr std::array kLoaded{tables::kStreams, tables::kStreamProducers, tables::kGroups};
  return kLoaded;
}

std::span<const FactSet* const> StreamShard::facts() const {
  static constexpr std::array kSets{&kStreamFacts, &kCoordinatorFacts, &kRecordFacts};
  return kSets;
}

Status StreamShard::load(Table table, const Row& row) {
  return table == tables::kGroups ? coordinator_.load(row) : catalog_.load(table, row);
}

Status StreamShard::apply(const FactFrame& frame, AppliedRows& /*rows*/, Instant now) {
  if (frame.owner == kRecordFacts.owner) {
    BATON_TRY(const BatchAppended fact, decode_batch_appended(frame));
    return store(fact, now);
  }
  if (frame.owner == kCoordinatorFacts.owner) {
    BATON_TRY(const CoordinatorFact fact, decode_coordinator_fact(frame));
    coordinator_.apply(fact);
    return {};
  }
  BATON_TRY(const StreamFact fact, decode_stream_fact(frame));
  catalog_.apply(fact);
  return {};
}

Status StreamShard::apply_1(FactOwner owner, Decoder& in, AppliedRows& /*rows*/, Instant /*now*/) {
  if (owner == kCoordinatorFacts.owner) {
    BATON_TRY(const CoordinatorFact fact, decode_coordinator_fact_1(in));
    coordinator_.apply(fact);
    return {};
  }
  BATON_TRY(const StreamFact fact, decode_stream_fact_1(in));
  catalog_.apply(fact);
  return {};
}

/// Stores what another node appended: the same bytes at the same offset, or the copy is wrong.
Status StreamShard::store(const BatchAppended& fact, Instant now) {
  const StreamInfo* const stream = catalog_.find(fact.stream);
  if (stream == nullptr) return Error{Errc::store_corrupt, "records of a stream that is unknown"};
  BATON_TRY(const auto partition, open(*stream, fact.partition, now));
  const Offset end = partition->log().next();
  // The files may be ahead of the checkpoint to which the rounds are applied.
  if (fact.base_offset < end) return {};
  BATON_TRY(const CheckedBatch batch,
            check_batch(fact.bytes, {.bytes_max = stream->settings.batch_bytes_max}, now));
  BATON_TRY(const auto outcomes, partition->log().append({&batch, 1}, fact.epoch, now));
  if (outcomes.front().verdict != ProducerVerdict::append ||
      outcomes.front().base_offset != fact.base_offset) {
    return Error{
        Errc::store_corrupt,
        fmt::format("partition {} of stream '{}' ends at offset {}, but the log puts the "
                    "next record at {}",
                    fact.partition.value, stream->name, end.value, fact.base_offset.value)};
  }
  partition->publish_all();
  return {};
}

Status StreamShard::start(std::uint64_t boot, RoundFacts& facts, Instant now) {
  facts_ = &facts;
  epoch_ = LeaderEpoch{static_cast<std::int32_t>(boot & 0x7fffffffU)};
  catalog_.start([this](const StreamFact& fact) {
    const bool must_sync = !std::holds_alternative<PartitionSynced>(fact);
    facts_->add(fact, must_sync);
  });
  for (const auto& [id, stream] : catalog_.all()) {
    for (std::uint32_t number = 0; number < stream.partitions(); ++number) {
      const PartitionNumber partition{number};
      BATON_TRY(const bool used, log_.has_partition({id, partition}));
      // An unused partition is created by its first use.
      if (!used && stream.synced[number] == Offset{0}) continue;
      BATON_TRY(const auto opened, open(stream, partition, now));
      // Everything found at opening is durable now: from here on, its loss is damage.
      note_synced({id, partition}, opened->synced_end());
    }
  }
  for (const auto& [id, partitions] : catalog_.deleted()) remove_files(id, partitions);
  coordinator_.become_leader(now);
  clamp_offsets(now);
  retention_at_ = now + options_.retention_interval;
  return {};
}

void StreamShard::remove_files(StreamId stream, std::uint32_t partitions) {
  for (std::uint32_t number = 0; number < partitions; ++number) {
    removed_.push_back({stream, PartitionNumber{number}});
  }
}

/// A group can be ahead of a log that lost its unsynced tail, which `interval` and `never` allow.
/// At its old offset it would skip the next records.
void StreamShard::clamp_offsets(Instant now) {
  for (const GroupDescription& group : coordinator_.list("")) {
    const auto stream = catalog_.find(group.group.stream);
    if (!stream.has_value() || !group.offset.has_value()) continue;
    const auto partition = open(**stream, PartitionNumber{group.group.partition}, now);
    // What is left of a damaged log says nothing about the group's progress.
    if (!partition.has_value() || (*partition)->log().describe().read_only.has_value()) continue;
    const auto next = static_cast<std::uint64_t>((*partition)->log().next().value);
    if (group.offset->value <= next) continue;
    spdlog::warn("event=offset_clamped group=\"{}\" stored={} end={}", to_string(group.group),
                 group.offset->value, next);
    static_cast<void>(coordinator_.store_offset(
        {.group = group.group, .holder = {}, .offset = GroupOffset{next}, .may_rewind = true},
        now));
  }
}

Result<std::shared_ptr<StreamPartition>> StreamShard::open(const StreamInfo& stream,
                                                           PartitionNumber number, Instant now) {
  if (number.value >= stream.partitions()) return no_such_partition(stream, number);
  const PartitionName key{stream.id, number};
  if (const auto known = partitions_.find(key); known != partitions_.end()) return known->second;
  PartitionLog::Opening opening;
  opening.options.segment_bytes = stream.settings.segment_bytes;
  opening.options.retention = stream.settings.retention_rules();
  opening.synced_end = stream.synced[number.value];
  opening.now = now;
  opening.damage_found = [damages = damages_, name = stream.name, number](const std::string& text) {
    ++*damages;
    spdlog::error("event=records_damaged stream=\"{}\" partition={} where=\"{}\"", name,
                  number.value, text);
  };
  BATON_TRY(auto log, log_.open_partition(key, opening));
  for (const auto& [name, producer] : stream.producers)
    log->fence(producer.id, producer.epoch, now);
  if (const auto damage = log->describe().read_only; damage.has_value()) {
    spdlog::error("event=partition_read_only stream=\"{}\" partition={} reason=\"{}\"", stream.name,
                  number.value, *damage);
    ++stats_.partitions_read_only;
  }
  auto partition = std::make_shared<StreamPartition>(stream.id, number, std::move(log));
  partitions_[key] = partition;
  return partition;
}

Progress StreamShard::execute(Command& command, Instant now) {
  std::visit([&](auto& wanted) { on(wanted, now); }, std::get<StreamCommand>(command));
  return {};
}

void StreamShard::on(CreateStreamCommand& command, Instant now) {
  if (!options_.refusal.empty()) {
    command.error = Error{Errc::failed_precondition, options_.refusal};
    return;
  }
  const auto created = catalog_.create(command.stream, command.partitions, command.settings, now);
  if (!created.has_value()) {
    command.error = created.error();
    return;
  }
  command.description = describe(*created->first);
}

void StreamShard::on(UpdateStreamCommand& command, Instant /*now*/) {
  const auto updated = catalog_.update(command.stream, command.settings);
  if (!updated.has_value()) {
    command.error = updated.error();
    return;
  }
  const StreamInfo& stream = **updated;
  for (std::uint32_t number = 0; number < stream.partitions(); ++number) {
    const auto known = partitions_.find({stream.id, PartitionNumber{number}});
    if (known == partitions_.end()) continue;
    known->second->log().set_retention(stream.settings.retention_rules());
  }
  command.description = describe(stream);
}

void StreamShard::on(DeleteStreamCommand& command, Instant /*now*/) {
  const auto removed = catalog_.remove(command.stream);
  if (!removed.has_value()) {
    command.error = removed.error();
    return;
  }
  coordinator_.delete_stream(command.stream);
  for (std::uint32_t number = 0; number < removed->partitions(); ++number) {
    const PartitionName key{removed->id, PartitionNumber{number}};
    const auto known = partitions_.find(key);
    if (known == partitions_.end()) continue;
    known->second->close();
    partitions_.erase(known);
    to_note_.erase(key);
    sync_at_.erase(key);
  }
  remove_files(removed->id, removed->partitions());
}

void StreamShard::on(DescribeStreamCommand& command, Instant /*now*/) {
  const auto stream = catalog_.find(command.stream);
  if (stream.has_value()) {
    command.description = describe(**stream);
  } else {
    command.error = stream.error();
  }
}

void StreamShard::on(ListStreamsCommand& command, Instant /*now*/) {
  std::size_t partitions = 0;
  command.more = take_names(catalog_.names(), {.prefix = command.stream, .after = command.after},
                            [&](const std::string& /*name*/, StreamId id) {
                              if (command.descriptions.size() == command.streams_max ||
                                  partitions >= command.partitions_max) {
                                return false;
                              }
                              command.descriptions.push_back(describe(*catalog_.find(id)));
                              partitions += command.descriptions.back().partitions.size();
                              return true;
                            });
}

void StreamShard::on(StartProducerCommand& command, Instant now) {
  const auto started = catalog_.start_producer(command.stream, command.producer);
  if (!started.has_value()) {
    command.error = started.error();
    return;
  }
  command.started = *started;
  const StreamInfo& stream = **catalog_.find(command.stream);
  for (std::uint32_t number = 0; number < stream.partitions(); ++number) {
    const auto known = partitions_.find({stream.id, PartitionNumber{number}});
    if (known != partitions_.end()) known->second->log().fence(started->id, started->epoch, now);
  }
}

void StreamShard::on(AppendCommand& command, Instant now) {
  command.outcomes.resize(command.batches.size());
  command.record_outcomes.resize(command.records.size());
  const auto stream = catalog_.find(command.stream);
  if (!stream.has_value()) {
    for (BatchOutcome& outcome : command.outcomes) outcome.error = stream.error();
    for (BatchOutcome& outcome : command.record_outcomes) outcome.error = stream.error();
    return;
  }
  append_batches(**stream, command, now);
  if (!command.records.empty()) append_records(**stream, command, now);
}

void StreamShard::append_batches(const StreamInfo& stream, AppendCommand& command, Instant now) {
  std::map<PartitionNumber, std::vector<std::size_t>> places;
  for (std::size_t place = 0; place < command.batches.size(); ++place) {
    command.outcomes[place].partition = command.batches[place].partition;
    places[command.batches[place].partition].push_back(place);
  }
  for (const auto& [number, mine] : places) append_to(stream, number, mine, command, now);
  for (const BatchOutcome& outcome : command.outcomes) {
    if (outcome.error.has_value()) ++stats_.refused;
    if (outcome.duplicate) ++stats_.duplicates;
  }
}

void StreamShard::append_to(const StreamInfo& stream, PartitionNumber number,
                            std::span<const std::size_t> places, AppendCommand& command,
                            Instant now) {
  const auto refuse = [&](const Error& error) {
    for (const std::size_t place : places) {
      command.outcomes[place].error = command.outcomes[place].error.value_or(error);
    }
  };
  const auto partition = open(stream, number, now);
  if (!partition.has_value()) {
    const bool files = partition.error().code == Errc::resource_exhausted;
    return refuse(files ? too_many_files(partition.error()) : partition.error());
  }
  const auto [checked, good] =
      check_batches(command, places, {.bytes_max = stream.settings.batch_bytes_max}, now);
  if (checked.empty()) return;
  const auto appended = (*partition)->log().append(checked, epoch_, now);
  if (!appended.has_value()) return refuse(refusal_of_append(appended.error()));
  for (std::size_t i = 0; i < good.size(); ++i) {
    const AppendOutcome& outcome = (*appended)[i];
    command.outcomes[good[i]] = {.partition = number,
                                 .offset = outcome.base_offset,
                                 .duplicate = is_duplicate(outcome),
                                 .error = refusal_of(outcome)};
    if (outcome.verdict != ProducerVerdict::append) continue;
    ++stats_.batches;
    stats_.bytes += checked[i].bytes().size();
    if (log_.rounds_carry_records()) {  // For the followers.
      carry({stream.id, number, outcome.base_offset, epoch_, checked[i].bytes()});
    }
  }
  mark_unsynced(*partition, stream, now);
}

void StreamShard::carry(const BatchAppended& fact) { facts_->add(fact, false); }

/// A duplicate waits for the sync as well: the first copy may still be on its way to the disk.
void StreamShard::mark_unsynced(const std::shared_ptr<StreamPartition>& partition,
                                const StreamInfo& stream, Instant now) {
  const PartitionName key{stream.id, partition->number()};
  const FsyncMode& mode = stream.settings.fsync;
  // Under `never` nothing is synced: there is nothing to wait for and note.
  if (mode.kind != FsyncMode::Kind::never) {
    if (to_note_.empty()) note_at_ = now + options_.synced_note_interval;
    to_note_[key] = partition;
  }
  if (mode.kind == FsyncMode::Kind::always) {
    const bool known = std::ranges::find(unsynced_, partition) != unsynced_.end();
    if (!known) unsynced_.push_back(partition);
    return;
  }
  partition->publish_all();
  if (mode.kind == FsyncMode::Kind::interval) sync_at_.try_emplace(key, now + mode.interval);
}

void StreamShard::on(OpenPartitionCommand& command, Instant now) {
  const auto stream = catalog_.find(command.stream);
  if (!stream.has_value()) {
    command.error = stream.error();
    return;
  }
  auto opened = open(**stream, command.partition, now);
  if (opened.has_value()) {
    command.opened = *std::move(opened);
  } else {
    command.error = opened.error();
  }
}

bool StreamShard::tick(Instant now) {
  coordinator_.expire(now);
  sync_due(now);
  if (now >= note_at_) note_synced(now);
  if (now >= retention_at_) drop_old_segments(now);
  return false;
}

void StreamShard::sync_due(Instant now) {
  for (auto due = sync_at_.begin(); due != sync_at_.end();) {
    if (due->second > now) {
      ++due;
      continue;
    }
    const auto known = partitions_.find(due->first);
    if (known != partitions_.end()) unsynced_.push_back(known->second);
    due = sync_at_.erase(due);
  }
}

/// Where rounds carry the records, the rounds are what is durable, and each node's files are its
/// own.
void StreamShard::note_synced(const PartitionName& name, Offset end) {
  if (!log_.rounds_carry_records()) catalog_.note_synced(name.stream, name.partition, end);
}

void StreamShard::note_synced(Instant now) {
  for (auto entry = to_note_.begin(); entry != to_note_.end();) {
    const Offset end = entry->second->synced_end();
    note_synced(entry->first, end);
    const bool all = end >= entry->second->log().next();
    entry = all ? to_note_.erase(entry) : std::next(entry);
  }
  note_at_ = to_note_.empty() ? Instant::never() : now + options_.synced_note_interval;
}

Status StreamShard::finish() {
  for (const auto& [key, partition] : partitions_) {
    BATON_TRY_STATUS(partition->sync());
    note_synced(key, partition->synced_end());
  }
  return {};
}

void StreamShard::drop_old_segments(Instant now) {
  retention_at_ = now + options_.retention_interval;
  for (const auto& [key, partition] : partitions_) {
    const StreamInfo* const stream = catalog_.find(key.stream);
    BATON_ASSERT(stream != nullptr);
    // Also for a partition that keeps everything, because this forgets old producers.
    const auto dropped = partition->log().drop_old_segments(now);
    if (!dropped.has_value()) {
      spdlog::warn("event=retention_failed stream=\"{}\" partition={} error=\"{}\"", stream->name,
                   key.partition.value, to_string(dropped.error()));
    } else if (!dropped->empty()) {
      spdlog::info("event=segments_dropped stream=\"{}\" partition={} segments={} first={}",
                   stream->name, key.partition.value, dropped->size(), dropped->back().next.value);
    }
  }
}

Instant StreamShard::next_deadline() const {
  Instant next = std::min({coordinator_.next_deadline(), note_at_,
                           partitions_.empty() ? Instant::never() : retention_at_});
  for (const auto& [key, due] : sync_at_) next = std::min(next, due);
  return next;
}

void StreamShard::take_effects(Held& held) {
  collect_seats();
  held.unsynced = std::exchange(unsynced_, {});
  held.removed = std::exchange(removed_, {});
  hold_told(std::exchange(told_, {}), held);
}

void StreamShard::seal(CheckpointJob& job) {
  catalog_.append_changed_rows(job.rows);
  coordinator_.append_changed_rows(job.rows);
}

std::uint64_t StreamShard::changed_bytes() const {
  constexpr std::size_t kGroupRowBytes = 128;
  return catalog_.changed_bytes() + kGroupRowBytes * coordinator_.changed_groups().size();
}

void StreamShard::add_stats(ShardStats& stats) const {
  stats.streams = stats_;
  stats.streams.streams = catalog_.all().size();
  stats.streams.damages = *damages_;
  stats.streams.groups = coordinator_.totals();
}

}  // namespace baton
