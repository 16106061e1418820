// The commands: what is checked, and which facts follow.

#include "core/kv/machine.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/names.h"

namespace baton {
namespace {

bool is_due(const KvEntry& entry, Instant now) { return entry.expires_at <= now; }

Revision revision_of(const KvEntryRef& entry) {
  return entry == nullptr ? Revision{} : entry->revision;
}

Status check_ttl(std::optional<Duration> ttl) {
  if (!ttl.has_value() || (*ttl >= limits::kKvTtlMin && *ttl <= limits::kKvTtlMax)) return {};
  return Error{Errc::invalid_argument,
               fmt::format("ttl is {} ns; it may be {} to {}", ttl->count(),
                           format_duration(limits::kKvTtlMin), format_duration(limits::kKvTtlMax))};
}

}  // namespace

KvMachine::KvMachine(Options options, Recorder recorder)
    : options_(options), recorder_(std::move(recorder)) {}

void KvMachine::commit(KvFact fact) {
  recorder_(fact);
  apply(std::move(fact));
}

Result<std::pair<KvBucketDescription, bool>> KvMachine::create_bucket(std::string_view name,
                                                                      const KvSettings& settings,
                                                                      Instant now) {
  BATON_TRY_STATUS(validate_bucket_name(name));
  BATON_TRY_STATUS(validate(settings));
  if (const auto there = find(name); there.has_value()) {
    if ((*there)->settings == settings) return std::pair(description_of(**there), false);
    return Error{Errc::bucket_exists,
                 fmt::format("bucket '{}' exists with other settings; delete it first", name)};
  }
  BATON_TRY_STATUS(validate_new_name("bucket", name));
  if (buckets_.size() >= options_.buckets_max) {
    return Error{
        Errc::resource_exhausted,
        fmt::format("there are {} buckets in this shard, which is the limit", buckets_.size())};
  }
  const BucketId id = next_bucket_;
  commit(KvBucketCreated{.bucket = id,
                         .name = std::string(name),
                         .settings = settings,
                         .revision = next_floor_,
                         .at = now});
  return std::pair(description_of(known(id)), true);
}

Result<KvBucketDescription> KvMachine::delete_bucket(std::string_view name) {
  BATON_TRY(const Bucket* const bucket, find(name));
  KvBucketDescription gone = description_of(*bucket);
  commit(KvBucketDeleted{bucket->id});
  return gone;
}

Result<KvBucketDescription> KvMachine::describe(std::string_view name) const {
  BATON_TRY(const Bucket* const bucket, find(name));
  return description_of(*bucket);
}

std::pair<std::vector<KvBucketDescription>, bool> KvMachine::list_buckets(
    NameRange range, std::size_t buckets_max) const {
  std::vector<KvBucketDescription> found;
  const bool more = take_names(names_, range, [&](const std::string& /*name*/, BucketId id) {
    if (found.size() == buckets_max) return false;
    found.push_back(description_of(buckets_.at(id)));
    return true;
  });
  return {std::move(found), more};
}

KvBucketDescription KvMachine::description_of(const Bucket& bucket) const {
  return {.id = bucket.id,
          .name = bucket.name,
          .settings = bucket.settings,
          .created_at = bucket.created_at,
          .revision = bucket.revision(),
          .history_floor = bucket.history.floor(),
          .keys = bucket.entries.size(),
          .bytes = bucket.bytes,
          .watches = watches_.size(bucket.id)};
}

Result<const KvMachine::Bucket*> KvMachine::find(std::string_view name) const {
  const auto entry = names_.find(name);
  if (entry == names_.end()) {
    return Error{Errc::bucket_not_found, fmt::format("there is no bucket '{}'", name)};
  }
  return &buckets_.at(entry->second);
}

KvEntryRef KvMachine::live_entry(const Bucket& bucket, std::string_view key, Instant now) {
  const auto entry = bucket.entries.find(key);
  if (entry == bucket.entries.end()) return nullptr;
  if (!is_due(*entry->second, now)) return entry->second;
  expire_key(bucket, key);
  return nullptr;
}

void KvMachine::expire_key(const Bucket& bucket, std::string_view key) {
  commit(
      KvExpired{.bucket = bucket.id, .revision = next(bucket.revision()), .key = std::string(key)});
}

Result<KvEntryRef> KvMachine::get(std::string_view bucket_name, std::string_view key, Instant now) {
  BATON_TRY(const Bucket* const bucket, find(bucket_name));
  BATON_TRY_STATUS(validate_kv_key(key));
  return live_entry(*bucket, key, now);
}

Status KvMachine::check(const KvWrite& write, const Bucket& bucket) {
  BATON_TRY_STATUS(validate_kv_key(write.key));
  BATON_TRY_STATUS(check_ttl(write.ttl));
  if (write.value.size() <= bucket.settings.value_bytes_max) return {};
  return too_long("value", write.value.size(), bucket.settings.value_bytes_max);
}

Status KvMachine::check_room(const Bucket& bucket, const KvWrite& write,
                             const KvEntryRef& current) const {
  if (current == nullptr && bucket.entries.size() >= bucket.settings.keys_max) {
    return Error{Errc::resource_exhausted,
                 fmt::format("bucket '{}' has {} keys, which is its limit", bucket.name,
                             bucket.entries.size())};
  }
  const std::uint64_t grown = write.key.size() + write.value.size();
  const std::uint64_t former = current == nullptr ? 0 : current->key.size() + current->value.size();
  // One that shrinks is always fine: it is how an operator makes room.
  if (grown <= former || totals_.bytes - former + grown <= options_.bytes_max) return {};
  return Error{Errc::resource_exhausted,
               fmt::format("the buckets of this shard hold {} bytes, and may hold {}",
                           totals_.bytes, options_.bytes_max)};
}

KvOutcome KvMachine::refuse(const Bucket& bucket, KvEntryRef current) {
  ++totals_.refused_total;
  return {.verdict = KvOutcome::Verdict::refused,
          .revision = bucket.revision(),
          .current = std::move(current)};
}

Result<KvOutcome> KvMachine::put(KvWrite write, Instant now) {
  BATON_TRY(const Bucket* const bucket, find(write.bucket));
  BATON_TRY_STATUS(check(write, *bucket));
  KvEntryRef current = live_entry(*bucket, write.key, now);
  if (write.expected.has_value() && *write.expected != revision_of(current)) {
    return refuse(*bucket, std::move(current));
  }
  BATON_TRY_STATUS(check_room(*bucket, write, current));
  const Revision revision = next(bucket->revision());
  commit(KvPut{.bucket = bucket->id,
               .revision = revision,
               .key = std::move(write.key),
               .value = std::move(write.value),
               .expires_at = write.ttl.has_value() ? now + *write.ttl : Instant::never()});
  return KvOutcome{.verdict = KvOutcome::Verdict::done, .revision = revision, .current = nullptr};
}

Result<KvOutcome> KvMachine::remove(const KvRemoval& removal, Instant now) {
  BATON_TRY(const Bucket* const bucket, find(removal.bucket));
  BATON_TRY_STATUS(validate_kv_key(removal.key));
  if (removal.expected == Revision{}) {
    return Error{Errc::invalid_argument,
                 "expected revision is 0: what is not there needs no removal"};
  }
  KvEntryRef current = live_entry(*bucket, removal.key, now);
  if (removal.expected.has_value() && *removal.expected != revision_of(current)) {
    return refuse(*bucket, std::move(current));
  }
  if (current == nullptr) {
    return KvOutcome{.verdict = KvOutcome::Verdict::unchanged,
                     .revision = bucket->revision(),
                     .current = nullptr};
  }
  const Revision revision = next(bucket->revision());
  commit(KvRemoved{.bucket = bucket->id, .revision = revision, .key = removal.key});
  return KvOutcome{.verdict = KvOutcome::Verdict::done, .revision = revision, .current = nullptr};
}

KvMachine::Entries::const_iterator KvMachine::page_begin(const Bucket& bucket,
                                                         const KvListing& listing) {
  return listing.after >= listing.prefix && !listing.after.empty()
             ? bucket.entries.upper_bound(listing.after)
             : bucket.entries.lower_bound(listing.prefix);
}

Result<KvPage> KvMachine::list(const KvListing& listing, Instant now) {
  BATON_TRY(const Bucket* const bucket, find(listing.bucket));
  const std::size_t looks_max =
      std::clamp<std::size_t>(listing.entries_max, 1, limits::kKvPageEntries);
  KvPage page;
  std::size_t bytes = 0;
  KvEntryRef last;
  auto entry = page_begin(*bucket, listing);
  // What is due counts as looked at: a page full of it must not record without bound.
  for (std::size_t looks = 0;
       entry != bucket->entries.end() && entry->first.starts_with(listing.prefix); ++looks) {
    const std::size_t size = entry->second->key.size() + entry->second->value.size();
    if (looks == looks_max || (looks > 0 && bytes + size > listing.bytes_max)) {
      page.next = last->key;
      break;
    }
    last = entry->second;
    ++entry;
    if (is_due(*last, now)) {
      expire_key(*bucket, last->key);
    } else {
      bytes += size;
      page.entries.push_back(last);
    }
  }
  page.revision = bucket->revision();
  return page;
}

Status KvMachine::watch(const KvWatchRequest& request) {
  BATON_TRY(const Bucket* const bucket, find(request.bucket));
  if (request.filter.text.size() > limits::kKvKeyBytes) {
    return too_long("prefix", request.filter.text.size(), limits::kKvKeyBytes);
  }
  if (!request.session.empty()) BATON_TRY_STATUS(validate_kv_key(request.session));
  if (watches_.bucket_of(request.watch).has_value()) {
    return Error{Errc::already_exists, fmt::format("there is a watch {}", request.watch.value)};
  }
  if (watches_.size() >= options_.watches_max) {
    return Error{
        Errc::resource_exhausted,
        fmt::format("there are {} watches in this shard, which is the limit", watches_.size())};
  }
  KvWatches::Watch watch{
      .filter = request.filter,
      .credit = std::min(request.credit, limits::kKvWatchCreditMax),
      .credit_bytes = std::min(request.credit_bytes, limits::kKvWatchCreditBytesMax),
      .session = request.session,
      .waiting = {}};
  const Revision after = request.after.value_or(bucket->revision());
  if (!watches_.add(request.watch, bucket->id, std::move(watch), bucket->history, after)) {
    ++totals_.fell_behind_total;
  }
  return {};
}

void KvMachine::grant(KvWatchId watch, std::uint64_t changes, std::int64_t bytes) {
  const std::optional<BucketId> bucket = watches_.bucket_of(watch);
  if (bucket.has_value()) watches_.grant(watch, changes, bytes, buckets_.at(*bucket).history);
}

void KvMachine::unwatch(KvWatchId watch) { watches_.remove(watch); }

void KvMachine::watch_broken(KvWatchId watch, Instant now) {
  const std::optional<BucketId> id = watches_.bucket_of(watch);
  if (!id.has_value()) return watches_.remove(watch);
  const std::string session = watches_.find(watch)->session;
  watches_.remove(watch);
  if (session.empty()) return;
  const KvEntryRef entry = live_entry(buckets_.at(*id), session, now);
  if (entry == nullptr) return;
  watches_.session_lost(*id, {.key = session, .revision = entry->revision});
}

Instant KvMachine::next_deadline() const {
  return deadlines_.empty() ? Instant::never() : deadlines_.begin()->at;
}

std::size_t KvMachine::expire(Instant now, std::size_t count) {
  std::size_t expired = 0;
  while (expired < count && !deadlines_.empty() && deadlines_.begin()->at <= now) {
    const Deadline& due = *deadlines_.begin();
    expire_key(known(due.bucket), due.key);
    ++expired;
  }
  return expired;
}

}  // namespace baton
