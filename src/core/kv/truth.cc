// The durable part: facts and rows.

#include <algorithm>

#include <fmt/format.h>

#include "base/assert.h"
#include "core/kv/machine.h"
#include "core/kv/rows.h"

namespace baton {
namespace {

/// About what a row takes beside its key and value.
constexpr std::size_t kRowBytes = 64;

std::size_t bytes_of(const KvEntry& entry) { return entry.key.size() + entry.value.size(); }

Error bad_row(std::string_view what) {
  return {Errc::store_corrupt, fmt::format("the rows of the buckets disagree: {}", what)};
}

}  // namespace

void KvMachine::apply(KvFact fact) {
  std::visit([this](auto& happened) { on(std::move(happened)); }, fact);
}

KvMachine::Bucket& KvMachine::known(BucketId id) {
  const auto bucket = buckets_.find(id);
  BATON_ASSERT(bucket != buckets_.end());
  return bucket->second;
}

void KvMachine::on(KvBucketCreated&& fact) {
  // A bucket that went on from less could give a revision twice under one name: a compare-and-set
  // from before the deletion would then win.
  BATON_ASSERT(fact.bucket >= next_bucket_ && fact.revision >= next_floor_);
  BATON_ASSERT(!names_.contains(fact.name));
  Bucket& bucket = buckets_[fact.bucket];
  bucket.id = fact.bucket;
  bucket.settings = fact.settings;
  bucket.created_at = fact.at;
  bucket.history.begin(fact.revision);
  bucket.name = fact.name;
  names_.emplace(std::move(fact.name), fact.bucket);
  next_bucket_ = BucketId{fact.bucket.value + 1};
  totals_.buckets = buckets_.size();
  mark_bucket(fact.bucket);
}

void KvMachine::on(KvBucketDeleted&& fact) {
  const Bucket& bucket = known(fact.bucket);
  forget_deadlines(bucket);
  watches_.bucket_deleted(fact.bucket, bucket.revision());
  // The deletion takes a revision too. Without it, a watch that saw the last change here would go
  // on in the next bucket of this name as if no key had gone.
  next_floor_ = std::max(next_floor_, next(bucket.revision()));
  totals_.keys -= bucket.entries.size();
  totals_.bytes -= bucket.bytes;
  names_.erase(bucket.name);
  buckets_.erase(fact.bucket);
  totals_.buckets = buckets_.size();

  // Its rows go by range, whatever has changed in it.
  const auto begin = changed_entries_.lower_bound({fact.bucket, std::string()});
  auto end = begin;
  for (; end != changed_entries_.end() && end->first.first == fact.bucket; ++end) {
    changed_bytes_ -= end->second;
  }
  changed_entries_.erase(begin, end);
  mark_bucket(fact.bucket);
  changed_buckets_.erase(fact.bucket);
  deleted_buckets_.insert(fact.bucket);
}

void KvMachine::on(KvPut&& fact) {
  Bucket& bucket = known(fact.bucket);
  BATON_ASSERT(fact.revision == next(bucket.revision()));
  const KvEntryRef former = take_entry(bucket, fact.key);
  auto entry = std::make_shared<const KvEntry>(
      KvEntry{.key = std::move(fact.key),
              .value = std::move(fact.value),
              .revision = fact.revision,
              .created_revision = former == nullptr ? fact.revision : former->created_revision,
              .version = former == nullptr ? 1 : former->version + 1,
              .expires_at = fact.expires_at});
  add_entry(bucket, entry);
  append_change(bucket, {.kind = KvChange::Kind::put, .entry = std::move(entry)});
}

void KvMachine::on(KvRemoved&& fact) {
  Bucket& bucket = known(fact.bucket);
  BATON_ASSERT(fact.revision == next(bucket.revision()));
  drop_key(bucket, std::move(fact.key), KvChange::Kind::removed);
}

void KvMachine::on(KvExpired&& fact) {
  Bucket& bucket = known(fact.bucket);
  BATON_ASSERT(fact.revision == next(bucket.revision()));
  drop_key(bucket, std::move(fact.key), KvChange::Kind::expired);
  ++totals_.expired_total;
}

void KvMachine::drop_key(Bucket& bucket, std::string key, KvChange::Kind kind) {
  const KvEntryRef former = take_entry(bucket, key);
  BATON_ASSERT(former != nullptr);
  append_change(bucket, {.kind = kind,
                         .entry = std::make_shared<const KvEntry>(
                             KvEntry{.key = std::move(key),
                                     .value = {},
                                     .revision = next(bucket.revision()),
                                     .created_revision = former->created_revision,
                                     .version = former->version,
                                     .expires_at = Instant::never()})});
}

void KvMachine::add_entry(Bucket& bucket, KvEntryRef entry) {
  bucket.bytes += bytes_of(*entry);
  totals_.bytes += bytes_of(*entry);
  ++totals_.keys;
  if (entry->expires_at != Instant::never()) {
    deadlines_.insert({.at = entry->expires_at, .bucket = bucket.id, .key = entry->key});
  }
  bucket.entries.emplace(entry->key, std::move(entry));
}

KvEntryRef KvMachine::take_entry(Bucket& bucket, std::string_view key) {
  const auto place = bucket.entries.find(key);
  if (place == bucket.entries.end()) return nullptr;
  KvEntryRef entry = std::move(place->second);
  bucket.entries.erase(place);
  bucket.bytes -= bytes_of(*entry);
  totals_.bytes -= bytes_of(*entry);
  --totals_.keys;
  deadlines_.erase({.at = entry->expires_at, .bucket = bucket.id, .key = entry->key});
  return entry;
}

void KvMachine::append_change(Bucket& bucket, KvChange change) {
  mark_entry(bucket.id, *change.entry);
  mark_bucket(bucket.id);
  bucket.history.append(std::move(change), bucket.settings);
  totals_.fell_behind_total += watches_.changed(bucket.id, bucket.history);
  ++totals_.changes_total;
}

void KvMachine::forget_deadlines(const Bucket& bucket) {
  for (const auto& [key, entry] : bucket.entries) {
    if (entry->expires_at == Instant::never()) continue;
    deadlines_.erase({.at = entry->expires_at, .bucket = bucket.id, .key = key});
  }
}

void KvMachine::mark_bucket(BucketId id) {
  if (changed_buckets_.insert(id).second) changed_bytes_ += kRowBytes + limits::kBucketNameBytes;
}

void KvMachine::mark_entry(BucketId bucket, const KvEntry& entry) {
  std::size_t& bytes = changed_entries_[{bucket, entry.key}];
  changed_bytes_ -= bytes;
  bytes = kRowBytes + bytes_of(entry);
  changed_bytes_ += bytes;
}

void KvMachine::append_changed_rows(RowBatch& batch) {
  append_bucket_rows(batch);
  for (const auto& [place, bytes] : changed_entries_) {
    const auto& [id, key] = place;
    const Entries& entries = buckets_.at(id).entries;
    const auto entry = entries.find(key);
    if (entry == entries.end()) {
      batch.erase(tables::kKvEntries, entry_row_key(id, key));
    } else {
      batch.put(tables::kKvEntries, entry_row_key(id, key), encode_row(*entry->second));
    }
  }
  changed_buckets_.clear();
  deleted_buckets_.clear();
  changed_entries_.clear();
  changed_bytes_ = 0;
}

void KvMachine::append_bucket_rows(RowBatch& batch) const {
  if (changed_buckets_.empty() && deleted_buckets_.empty()) return;
  batch.put(tables::kKvBuckets, std::string(kKvNextRowKey),
            encode_row(KvNextRow{.bucket = next_bucket_, .revision = next_floor_}));
  for (const BucketId id : changed_buckets_) {
    const Bucket& bucket = buckets_.at(id);
    batch.put(tables::kKvBuckets, bucket_row_key(id),
              encode_row(KvBucketRow{.name = bucket.name,
                                     .settings = bucket.settings,
                                     .revision = bucket.revision(),
                                     .created_at = bucket.created_at}));
  }
  for (const BucketId id : deleted_buckets_) {
    batch.erase(tables::kKvBuckets, bucket_row_key(id));
    batch.erase_range(tables::kKvEntries, bucket_row_key(id),
                      bucket_row_key(BucketId{id.value + 1}));
  }
}

Status KvMachine::load(Table table, const Row& row) {
  if (table == tables::kKvEntries) return load_entry(row);
  if (table == tables::kKvBuckets && row.key != kKvNextRowKey) return load_bucket(row);
  if (table != tables::kKvBuckets) return bad_row("a table that is not theirs");
  BATON_TRY(const KvNextRow next_row, decode_kv_next_row(row.value));
  next_bucket_ = std::max(next_bucket_, next_row.bucket);
  next_floor_ = std::max(next_floor_, next_row.revision);
  return {};
}

Status KvMachine::load_bucket(const Row& row) {
  BATON_TRY(const BucketId id, decode_bucket_row_key(row.key));
  BATON_TRY(KvBucketRow values, decode_bucket_row(row.value));
  if (buckets_.contains(id) || names_.contains(values.name)) return bad_row("a bucket is twice");
  Bucket& bucket = buckets_[id];
  bucket.id = id;
  bucket.name = values.name;
  bucket.settings = values.settings;
  bucket.created_at = values.created_at;
  bucket.history.begin(values.revision);
  // The next checkpoint writes it as it is written today.
  if (values.old) mark_bucket(id);
  names_.emplace(std::move(values.name), id);
  next_bucket_ = std::max(next_bucket_, BucketId{id.value + 1});
  totals_.buckets = buckets_.size();
  return {};
}

Status KvMachine::load_entry(const Row& row) {
  BATON_TRY(KvEntryRowKey place, decode_entry_row_key(row.key));
  BATON_TRY(KvEntry entry, decode_entry_row(row.value));
  const auto bucket = buckets_.find(place.bucket);
  if (bucket == buckets_.end()) return bad_row("a key of no bucket");
  if (entry.revision > bucket->second.revision()) return bad_row("a key is ahead of its bucket");
  if (bucket->second.entries.contains(place.key)) return bad_row("a key is twice");
  entry.key = std::move(place.key);
  add_entry(bucket->second, std::make_shared<const KvEntry>(std::move(entry)));
  return {};
}

}  // namespace baton
