#include "core/stream/catalog.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "base/names.h"

namespace baton {

Result<std::pair<const StreamInfo*, bool>> StreamCatalog::create(
    std::string_view name, std::uint32_t partitions, const StreamSettingsPatch& settings,
    Instant now) {
  const StreamSettings wanted = patched({}, settings);
  BATON_TRY_STATUS(validate_stream_name(name));
  BATON_TRY_STATUS(validate(wanted));
  if (partitions == 0 || partitions > limits::kPartitionsPerStreamMax) {
    return Error{Errc::invalid_argument, fmt::format("partitions is {}; it may be 1 to {}",
                                                     partitions, limits::kPartitionsPerStreamMax)};
  }
  if (const auto there = find(name); there.has_value()) {
    const StreamInfo& stream = **there;
    if (stream.settings == wanted && stream.partitions() == partitions) {
      return std::pair(&stream, false);
    }
    return Error{Errc::stream_exists,
                 fmt::format("stream '{}' exists with {} partitions or other settings; update it, "
                             "or delete it first",
                             name, stream.partitions())};
  }
  BATON_TRY_STATUS(validate_new_name("stream name", name));
  if (streams_.size() >= limits::kStreamsPerShard) {
    return Error{
        Errc::resource_exhausted,
        fmt::format("there are {} streams in this shard, which is the limit", streams_.size())};
  }
  const StreamId id = next_stream_;
  commit(StreamCreated{.stream = id,
                       .name = std::string(name),
                       .partitions = partitions,
                       .settings = wanted,
                       .at = now});
  return std::pair(find(id), true);
}

Result<const StreamInfo*> StreamCatalog::update(std::string_view name,
                                                const StreamSettingsPatch& settings) {
  BATON_TRY(const StreamInfo* const stream, find(name));
  const StreamSettings wanted = patched(stream->settings, settings);
  BATON_TRY_STATUS(validate(wanted));
  if (wanted != stream->settings) commit(StreamUpdated{stream->id, wanted});
  return stream;
}

Result<StreamInfo> StreamCatalog::remove(std::string_view name) {
  BATON_TRY(const StreamInfo* const stream, find(name));
  StreamInfo gone = *stream;
  commit(StreamDeleted{gone.id});
  return gone;
}

Result<StreamInfo::Producer> StreamCatalog::start_producer(std::string_view stream_name,
                                                           std::string_view name) {
  BATON_TRY(const StreamInfo* const stream, find(stream_name));
  ProducerStarted fact{
      .stream = stream->id, .name = std::string(name), .id = next_producer_, .epoch = {}};
  if (!name.empty()) {
    BATON_TRY_STATUS(validate_name("producer", name, limits::kProducerNameBytesMax));
    const auto known = stream->producers.find(name);
    // An epoch that would overflow begins again under a new id, of which nobody has sent anything.
    if (known != stream->producers.end() &&
        known->second.epoch.value < std::numeric_limits<std::int16_t>::max()) {
      fact.id = known->second.id;
      fact.epoch = ProducerEpoch{static_cast<std::int16_t>(known->second.epoch.value + 1)};
    } else if (known == stream->producers.end() &&
               stream->producers.size() >= limits::kProducerNamesPerStream) {
      return Error{Errc::resource_exhausted,
                   fmt::format("stream '{}' remembers {} producer names, which is the limit",
                               stream_name, stream->producers.size())};
    }
  }
  commit(fact);
  return StreamInfo::Producer{fact.id, fact.epoch};
}

void StreamCatalog::note_synced(StreamId stream, PartitionNumber partition, Offset end) {
  const StreamInfo* const info = find(stream);
  if (info == nullptr || info->synced.at(partition.value) >= end) return;
  commit(PartitionSynced{.stream = stream, .partition = partition, .end = end});
}

Result<const StreamInfo*> StreamCatalog::find(std::string_view name) const {
  const auto entry = names_.find(name);
  if (entry == names_.end()) {
    return Error{Errc::stream_not_found, fmt::format("there is no stream '{}'", name)};
  }
  return find(entry->second);
}

const StreamInfo* StreamCatalog::find(StreamId id) const {
  const auto entry = streams_.find(id);
  return entry == streams_.end() ? nullptr : &entry->second;
}

void StreamCatalog::commit(const StreamFact& fact) {
  if (recorder_ != nullptr) recorder_(fact);
  apply(fact);
}

void StreamCatalog::apply(const StreamFact& fact) {
  std::visit([this](const auto& known) { on(known); }, fact);
}

StreamInfo* StreamCatalog::known(StreamId id) {
  const auto entry = streams_.find(id);
  return entry == streams_.end() ? nullptr : &entry->second;
}

void StreamCatalog::on(const StreamCreated& fact) {
  StreamInfo& stream = streams_[fact.stream];
  stream = {.id = fact.stream,
            .name = fact.name,
            .settings = fact.settings,
            .created_at = fact.at,
            .synced = std::vector<Offset>(fact.partitions),
            .producers = {}};
  names_[fact.name] = fact.stream;
  next_stream_ = std::max(next_stream_, StreamId{fact.stream.value + 1});
  changed_.insert(fact.stream);
}

void StreamCatalog::on(const StreamUpdated& fact) {
  StreamInfo* const stream = known(fact.stream);
  if (stream == nullptr) return;
  stream->settings = fact.settings;
  changed_.insert(fact.stream);
}

void StreamCatalog::on(const StreamDeleted& fact) {
  const StreamInfo* const stream = known(fact.stream);
  if (stream == nullptr) return;
  for (const auto& [name, producer] : stream->producers) {
    changed_producers_.emplace(fact.stream, name);
  }
  deleted_[fact.stream] = stream->partitions();
  names_.erase(stream->name);
  streams_.erase(fact.stream);
  changed_.erase(fact.stream);
}

void StreamCatalog::on(const ProducerStarted& fact) {
  next_producer_ = std::max(next_producer_, ProducerId{fact.id.value + 1});
  StreamInfo* const stream = known(fact.stream);
  if (stream == nullptr || fact.name.empty()) return;
  stream->producers[fact.name] = {fact.id, fact.epoch};
  changed_producers_.emplace(fact.stream, fact.name);
}

void StreamCatalog::on(const PartitionSynced& fact) {
  StreamInfo* const stream = known(fact.stream);
  if (stream == nullptr || fact.partition.value >= stream->partitions()) return;
  Offset& end = stream->synced[fact.partition.value];
  end = std::max(end, fact.end);
  changed_.insert(fact.stream);
}

}  // namespace baton
