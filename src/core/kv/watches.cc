#include "core/kv/watches.h"

#include <algorithm>

#include "base/assert.h"

namespace baton {

bool KvWatches::add(KvWatchId id, BucketId bucket, Watch watch, const KvHistory& history,
                    Revision after) {
  BATON_ASSERT(!buckets_of_.contains(id));
  // Past the end: a client that saw that revision saw it in another life of the data.
  if (after < history.floor() || after > history.last()) {
    end(id, KvWatchEnd::fell_behind, history.last());
    return false;
  }
  OfBucket& place = buckets_[bucket];
  place.revision = history.last();
  place.watches.emplace(id, std::move(watch));
  buckets_of_.emplace(id, bucket);
  effect_of(id);  // Even with nothing to send: it confirms the watch, and from where.
  catch_up(place, id, history, next(after));
  return true;
}

void KvWatches::remove(KvWatchId id) {
  effects_.erase(id);
  const auto known = buckets_of_.find(id);
  if (known == buckets_of_.end()) return;
  const auto bucket = buckets_.find(known->second);
  set_waiting(bucket->second, id, std::nullopt);
  bucket->second.watches.erase(id);
  if (bucket->second.watches.empty()) buckets_.erase(bucket);
  buckets_of_.erase(known);
}

void KvWatches::grant(KvWatchId id, std::uint64_t changes, std::int64_t bytes,
                      const KvHistory& history) {
  const auto known = buckets_of_.find(id);
  if (known == buckets_of_.end()) return;
  OfBucket& bucket = buckets_.at(known->second);
  Watch& watch = bucket.watches.at(id);
  const std::uint64_t room = limits::kKvWatchCreditMax - watch.credit;
  watch.credit += std::min(changes, room);
  const std::int64_t bytes_room = limits::kKvWatchCreditBytesMax - watch.credit_bytes;
  watch.credit_bytes += std::min(bytes, bytes_room);
  if (watch.waiting.has_value()) catch_up(bucket, id, history, *watch.waiting);
}

void KvWatches::report(KvWatchId id) {
  if (buckets_of_.contains(id)) effect_of(id);
}

std::size_t KvWatches::changed(BucketId bucket, const KvHistory& history) {
  const auto place = buckets_.find(bucket);
  if (place == buckets_.end()) return 0;
  place->second.revision = history.last();
  const KvChange& change = history.at(history.last());
  for (auto& [id, watch] : place->second.watches) {
    // One that waits finds it in the history, after what comes before it.
    if (watch.waiting.has_value() || !watch.filter.matches(change.entry->key)) continue;
    if (!watch.has_credit()) {
      set_waiting(place->second, id, change.entry->revision);
    } else {
      send(id, watch, change);
    }
  }
  return end_forgotten(place->second, history);
}

std::size_t KvWatches::end_forgotten(OfBucket& bucket, const KvHistory& history) {
  std::size_t ended = 0;
  while (!bucket.waiting.empty() && bucket.waiting.begin()->first <= history.floor()) {
    const KvWatchId id = bucket.waiting.begin()->second;
    bucket.waiting.erase(bucket.waiting.begin());
    end(id, KvWatchEnd::fell_behind, history.last());
    // The bucket's place stays until its last watch is removed or the bucket goes: erasing it here
    // would pull it from under the caller.
    bucket.watches.erase(id);
    buckets_of_.erase(id);
    ++ended;
  }
  return ended;
}

void KvWatches::bucket_deleted(BucketId bucket, Revision last) {
  const auto place = buckets_.find(bucket);
  if (place == buckets_.end()) return;
  for (const auto& [id, watch] : place->second.watches) {
    end(id, KvWatchEnd::bucket_deleted, last);
    buckets_of_.erase(id);
  }
  buckets_.erase(place);
}

void KvWatches::session_lost(BucketId bucket, const KvSessionLost& lost) {
  const auto place = buckets_.find(bucket);
  if (place == buckets_.end()) return;
  const auto names_it = [&](const auto& each) { return each.second.session == lost.key; };
  if (std::ranges::any_of(place->second.watches, names_it)) return;
  for (const auto& [id, watch] : place->second.watches) {
    if (watch.filter.matches(lost.key)) effect_of(id).sessions_lost.push_back(lost);
  }
}

std::optional<BucketId> KvWatches::bucket_of(KvWatchId id) const {
  const auto known = buckets_of_.find(id);
  return known == buckets_of_.end() ? std::nullopt : std::optional(known->second);
}

const KvWatches::Watch* KvWatches::find(KvWatchId id) const {
  const auto known = buckets_of_.find(id);
  return known == buckets_of_.end() ? nullptr : &buckets_.at(known->second).watches.at(id);
}

std::size_t KvWatches::size(BucketId bucket) const {
  const auto place = buckets_.find(bucket);
  return place == buckets_.end() ? 0 : place->second.watches.size();
}

std::vector<KvWatchEffect> KvWatches::take_effects() {
  std::vector<KvWatchEffect> taken;
  taken.reserve(effects_.size());
  for (auto& [id, effect] : effects_) {
    if (!effect.end.has_value()) {
      const OfBucket& bucket = buckets_.at(buckets_of_.at(id));
      const std::optional<Revision>& waiting = bucket.watches.at(id).waiting;
      effect.complete_to = waiting.has_value() ? Revision{waiting->value - 1} : bucket.revision;
    }
    taken.push_back(std::move(effect));
  }
  effects_.clear();
  return taken;
}

void KvWatches::send(KvWatchId id, Watch& watch, const KvChange& change) {
  BATON_ASSERT(watch.has_credit());
  --watch.credit;
  watch.credit_bytes -= static_cast<std::int64_t>(change.entry->key.size()) +
                        static_cast<std::int64_t>(change.entry->value.size());
  effect_of(id).changes.push_back(change);
}

void KvWatches::catch_up(OfBucket& bucket, KvWatchId id, const KvHistory& history, Revision from) {
  Watch& watch = bucket.watches.at(id);
  for (Revision at = from; at <= history.last(); at = next(at)) {
    const KvChange& change = history.at(at);
    if (!watch.filter.matches(change.entry->key)) continue;
    if (!watch.has_credit()) return set_waiting(bucket, id, at);
    send(id, watch, change);
  }
  set_waiting(bucket, id, std::nullopt);
}

KvWatchEffect& KvWatches::effect_of(KvWatchId id) {
  KvWatchEffect& effect = effects_[id];
  effect.watch = id;
  return effect;
}

void KvWatches::end(KvWatchId id, KvWatchEnd why, Revision complete_to) {
  KvWatchEffect& effect = effect_of(id);
  effect.end = why;
  effect.complete_to = complete_to;
}

void KvWatches::set_waiting(OfBucket& bucket, KvWatchId id, std::optional<Revision> at) {
  std::optional<Revision>& waiting = bucket.watches.at(id).waiting;
  if (waiting.has_value()) bucket.waiting.erase({*waiting, id});
  waiting = at;
  if (at.has_value()) bucket.waiting.emplace(*at, id);
}

}  // namespace baton
