#include "server/shard/kv_shard.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "base/assert.h"
#include "server/shard/machines.h"

namespace baton {
namespace {

/// The bytes that the expiry of a key adds to the journal.
constexpr std::size_t kExpiryBytes = kCommandBytes + limits::kKvKeyBytes;

std::size_t put_bytes(const KvCommand& command) {
  const auto* put = std::get_if<KvPutCommand>(&command);
  return put == nullptr ? 0 : put->request.key.size() + put->request.value.size();
}

/// The number of keys that the command may look at.
std::size_t keys_of(const KvCommand& command) {
  if (const auto* list = std::get_if<KvListCommand>(&command)) return list->request.entries_max;
  if (const auto* watch = std::get_if<KvWatchCommand>(&command)) return watch->page_entries_max;
  if (const auto* page = std::get_if<KvSnapshotCommand>(&command)) return page->request.entries_max;
  return 1;
}

/// The most bytes that the command adds to the journal: reads also record the expiries that they
/// find.
std::size_t fact_bytes_max(const KvCommand& command) {
  const std::size_t keys = std::min(keys_of(command), limits::kKvPageEntries);
  return 2 * kCommandBytes + limits::kBucketNameBytes + put_bytes(command) + keys * kExpiryBytes;
}

/// Whether the command needs room that a full disk does not have. Removals use the reserve.
bool adds_data(const KvCommand& command) {
  return std::holds_alternative<KvPutCommand>(command) ||
         std::holds_alternative<CreateBucketCommand>(command);
}

/// Stores the value in `place`, or the error in `error`.
template <class Value, class Place>
void take(Result<Value> result, Place& place, std::optional<Error>& error) {
  if (result.has_value()) {
    place = *std::move(result);
  } else {
    error = std::move(result).error();
  }
}

}  // namespace

KvShard::KvShard(const MachineOptions& options, ShardLog& /*log*/)
    : machine_(options.kv, [this](const KvFact& fact) {
        // Every fact is synced in every fsync mode.
        facts_->add(fact, true);
      }) {}

std::string_view KvShard::name_of(const KvCommand& command) {
  return std::visit(
      [](const auto& wanted) {
        if constexpr (requires { wanted.request; }) {
          return std::string_view(wanted.request.bucket);
        } else {
          return std::string_view(wanted.bucket);
        }
      },
      command);
}

std::size_t KvShard::bytes_of(const KvCommand& command) {
  return 2 * kCommandBytes + limits::kKvKeyBytes + put_bytes(command);
}

std::span<const Table> KvShard::tables() const {
  static constexpr std::array kLoaded{tables::kKvBuckets, tables::kKvEntries};
  return kLoaded;
}

std::span<const FactSet* const> KvShard::facts() const {
  static constexpr std::array kSets{&kKvFacts};
  return kSets;
}

Status KvShard::apply(const FactFrame& frame, AppliedRows& /*rows*/, Instant /*now*/) {
  BATON_TRY(KvFact fact, decode_kv_fact(frame));
  machine_.apply(std::move(fact));
  return {};
}

Status KvShard::apply_1(FactOwner /*owner*/, Decoder& in, AppliedRows& /*rows*/, Instant /*now*/) {
  BATON_TRY(KvFact fact, decode_kv_fact_1(in));
  machine_.apply(std::move(fact));
  return {};
}

Status KvShard::start(std::uint64_t /*boot*/, RoundFacts& facts, Instant /*now*/) {
  facts_ = &facts;
  recovered_ = machine_.totals();
  return {};
}

Demand KvShard::demand(const Command& command) const {
  const auto& wanted = std::get<KvCommand>(command);
  return {.room = adds_data(wanted) ? Demand::Room::addition : Demand::Room::reserve,
          .bytes = fact_bytes_max(wanted)};
}

void KvShard::refuse(Command& command, const Error& error) const {
  auto& refused = std::get<KvCommand>(command);
  if (auto* put = std::get_if<KvPutCommand>(&refused)) put->error = error;
  if (auto* create = std::get_if<CreateBucketCommand>(&refused)) create->error = error;
}

Progress KvShard::execute(Command& command, Instant now) {
  std::visit([&](auto& wanted) { on(wanted, now); }, std::get<KvCommand>(command));
  return {};
}

void KvShard::on(CreateBucketCommand& command, Instant now) {
  auto created = machine_.create_bucket(command.bucket, command.settings, now);
  if (created.has_value()) {
    command.description = std::move(created->first);
  } else {
    command.error = created.error();
  }
}

void KvShard::on(DeleteBucketCommand& command, Instant /*now*/) {
  const auto deleted = machine_.delete_bucket(command.bucket);
  if (!deleted.has_value()) command.error = deleted.error();
}

void KvShard::on(DescribeBucketCommand& command, Instant /*now*/) {
  take(machine_.describe(command.bucket), command.description, command.error);
}

void KvShard::on(ListBucketsCommand& command, Instant /*now*/) {
  std::tie(command.descriptions, command.more) = machine_.list_buckets(
      {.prefix = command.bucket, .after = command.after}, command.buckets_max);
}

void KvShard::on(KvGetCommand& command, Instant now) {
  take(machine_.get(command.bucket, command.key, now), command.entry, command.error);
}

void KvShard::on(KvPutCommand& command, Instant now) {
  take(machine_.put(std::move(command.request), now), command.outcome, command.error);
}

void KvShard::on(KvRemoveCommand& command, Instant now) {
  take(machine_.remove(command.request, now), command.outcome, command.error);
}

void KvShard::on(KvListCommand& command, Instant now) {
  take(machine_.list(command.request, now), command.page, command.error);
}

void KvShard::on(KvWatchCommand& command, Instant now) {
  const Status begun = begin_watch(command, now);
  if (begun.has_value()) {
    sinks_[command.request.watch] = command.sink;
  } else {
    command.error = begun.error();
  }
}

Status KvShard::begin_watch(KvWatchCommand& command, Instant now) {
  KvWatchRequest request = command.request;
  BATON_TRY(const KvBucketDescription bucket, machine_.describe(request.bucket));
  const bool resumes = request.after.has_value() && *request.after >= bucket.history_floor &&
                       *request.after <= bucket.revision;
  command.snapshot = !resumes;
  command.compacted = request.after.has_value() && !resumes;
  if (command.snapshot) {
    BATON_TRY(command.page, first_page(command, now));
    request.after = command.page.revision;
    // Until the last page the watch only keeps a place in the history: nothing is collected for it.
    if (!command.page.next.empty()) request.credit = 0;
  }
  BATON_TRY_STATUS(machine_.watch(request));
  if (command.compacted) ++compacted_total_;
  return {};
}

Result<KvPage> KvShard::first_page(const KvWatchCommand& command, Instant now) {
  const KvFilter& filter = command.request.filter;
  if (!filter.exact) {
    return machine_.list({.bucket = command.request.bucket,
                          .prefix = filter.text,
                          .after = {},
                          .entries_max = command.page_entries_max,
                          .bytes_max = command.page_bytes_max},
                         now);
  }
  KvPage page;
  BATON_TRY(KvEntryRef entry, machine_.get(command.request.bucket, filter.text, now));
  if (entry != nullptr) page.entries.push_back(std::move(entry));
  // Asked after the read: finding an expired key takes a revision.
  BATON_TRY(const KvBucketDescription bucket, machine_.describe(command.request.bucket));
  page.revision = bucket.revision;
  return page;
}

void KvShard::on(KvSnapshotCommand& command, Instant now) {
  if (!machine_.has_watch(command.watch)) return;
  take(machine_.list(command.request, now), command.page, command.error);
  if (command.error.has_value() || !command.page.next.empty()) return;
  machine_.grant(command.watch, command.credit, 0);
  // The session that assembles the snapshot must be told when all changes up to this page have
  // arrived.
  machine_.report(command.watch);
}

void KvShard::on(KvGrantCommand& command, Instant /*now*/) {
  machine_.grant(command.watch, command.changes, command.bytes);
}

void KvShard::on(KvUnwatchCommand& command, Instant now) {
  if (command.broken) {
    machine_.watch_broken(command.watch, now);
  } else {
    machine_.unwatch(command.watch);
  }
  sinks_.erase(command.watch);
}

bool KvShard::tick(Instant now) {
  return machine_.expire(now, kExpiriesPerRound) == kExpiriesPerRound;
}

void KvShard::take_effects(Held& held) {
  if (!machine_.has_effects()) return;
  std::vector<std::pair<std::shared_ptr<KvWatchSink>, KvWatchEffect>> told;
  for (KvWatchEffect& effect : machine_.take_effects()) {
    const auto sink = sinks_.find(effect.watch);
    BATON_ASSERT(sink != sinks_.end());
    const bool ended = effect.end.has_value();
    told.emplace_back(sink->second, std::move(effect));
    if (ended) sinks_.erase(sink);
  }
  hold_told(std::move(told), held);
}

void KvShard::add_stats(ShardStats& stats) const {
  stats.kv = {.totals = machine_.totals(), .watches = machine_.watches()};
  stats.kv.totals.changes_total -= recovered_.changes_total;
  stats.kv.totals.expired_total -= recovered_.expired_total;
  stats.kv.totals.fell_behind_total += compacted_total_;
}

}  // namespace baton
