#include "pipeline/kafka/kafka_letter_store.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/parse.h"
#include "pipeline/engine/gate.h"
#include "pipeline/kafka/kafka_lookup.h"

namespace baton::pipeline {
namespace {

constexpr Duration kPollTime = std::chrono::milliseconds(100);
constexpr Duration kSilence = std::chrono::seconds(30);

FoundLetter letter_of(const rd_kafka_message_t& message) {
  const std::string id = fmt::format("{}/{}", message.partition, message.offset);
  auto letter = to_letter(to_record(message));
  if (!letter.has_value()) {
    return Error{Errc::malformed, fmt::format("partition {}, offset {}: {}", message.partition,
                                              message.offset, letter.error().text)};
  }
  letter->id = id;
  return letter;
}

/// The offsets that are done when all of `taken` is removed except the refused letters. Each
/// refused letter leaves a gap; a letter behind it that finds no room in the note is sent once
/// more.
RedrivenOffsets without(const std::set<std::size_t>& refused,
                        const std::vector<std::pair<std::int64_t, std::int64_t>>& taken,
                        RedrivenOffsets gone) {
  for (std::size_t i = 0; i < taken.size(); ++i) {
    const auto& [begin, end] = taken[i];
    if (!refused.contains(i) && gone.has_room_for(begin, end)) gone.add(begin, end);
  }
  return gone;
}

}  // namespace

Result<std::unique_ptr<KafkaLetterStore>> KafkaLetterStore::open(KafkaLetterStoreOptions options) {
  std::unique_ptr<KafkaLetterStore> store(new KafkaLetterStore(std::move(options)));
  BATON_TRY_STATUS(store->connect());
  return store;
}

Status KafkaLetterStore::connect() {
  KafkaConfParts parts;
  parts.defaults = {{"client.id", "baton-pipeline"},
                    {"queued.max.messages.kbytes", "8192"},
                    {"allow.auto.create.topics", "false"}};
  parts.wanted = options_.properties;
  parts.security = options_.security;
  parts.fixed = {brokers_property(options_.brokers), {"group.id", options_.group},
                 {"enable.auto.commit", "false"},    {"enable.auto.offset.store", "false"},
                 {"enable.partition.eof", "true"},   {"auto.offset.reset", "error"}};
  BATON_TRY(KafkaConf conf, make_conf(parts));
  note_errors(*conf);
  BATON_TRY(handle_, make_handle(RD_KAFKA_CONSUMER, std::move(conf)));
  const auto partitions = find_topic(
      *handle_,
      {.brokers = options_.brokers, .topic = options_.topic, .security = options_.security},
      kAnswerTime);
  if (!partitions.has_value()) return partitions.error();
  partitions_ = *partitions;
  (void)rd_kafka_poll_set_consumer(handle_.get());
  return {};
}

Result<std::vector<KafkaLetterStore::Part>> KafkaLetterStore::parts() {
  std::vector<std::uint32_t> all(partitions_);
  for (std::uint32_t i = 0; i < partitions_; ++i) all[i] = i;
  BATON_TRY(const KafkaCommits commits, commits_of(*handle_, options_.topic, all, kAnswerTime));
  std::vector<Part> result;
  for (const auto& [partition, commit] : commits) {
    BATON_TRY(const KafkaRange range, range_of(*handle_, options_.topic, partition, kAnswerTime));
    Part part{.partition = partition,
              .begin = range.first,
              .end = range.next,
              .redriven = RedrivenOffsets(range.first)};
    // An offset past the end is of an earlier topic with this name.
    if (commit.has_value() && commit->next <= range.next) {
      part.redriven = RedrivenOffsets::of(commit->next, commit->note);
      part.redriven.add(part.redriven.next(), range.first);  // The topic has already deleted these.
      part.begin = part.redriven.next();
    }
    if (part.begin < part.end) result.push_back(std::move(part));
  }
  return result;
}

Status KafkaLetterStore::assign(const Part& part) {
  const KafkaPartitionList list(rd_kafka_topic_partition_list_new(1));
  rd_kafka_topic_partition_list_add(list.get(), options_.topic.c_str(),
                                    static_cast<std::int32_t>(part.partition))
      ->offset = part.begin;
  const rd_kafka_resp_err_t error = rd_kafka_assign(handle_.get(), list.get());
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) return reading_failed(part, error);
  return {};
}

Result<KafkaLetterStore::End> KafkaLetterStore::scan(const Part& part, const See& see) {
  BATON_TRY_STATUS(assign(part));
  auto result = poll(part, see);
  (void)rd_kafka_assign(handle_.get(), nullptr);
  return result;
}

Result<KafkaLetterStore::End> KafkaLetterStore::poll(const Part& part, const See& see) {
  for (Instant heard = boot_time(); boot_time() - heard < kSilence;) {
    const KafkaMessage message(rd_kafka_consumer_poll(handle_.get(), milliseconds_of(kPollTime)));
    if (message == nullptr) continue;
    // The end of a partition may have offsets without a record (of transactions, or compacted
    // away), and offsets that will get one, of open transactions.
    if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
      return std::min(message->offset, part.end);
    }
    if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR) return reading_failed(part, message->err);
    if (message->offset >= part.end) return part.end;
    BATON_TRY(const bool more, see(message->offset, letter_of(*message)));
    if (!more) return std::nullopt;
    if (message->offset + 1 == part.end) return part.end;
    heard = boot_time();
  }
  return reading_failed(part, RD_KAFKA_RESP_ERR__TIMED_OUT);
}

Error KafkaLetterStore::reading_failed(const Part& part, rd_kafka_resp_err_t error) const {
  return to_error(error,
                  fmt::format("reading topic '{}', partition {}", options_.topic, part.partition));
}

Status KafkaLetterStore::read(const std::function<bool(FoundLetter)>& see) {
  BATON_TRY(const std::vector<Part> parts, this->parts());
  bool more = true;
  for (const Part& part : parts) {
    if (!more) break;
    BATON_TRY_STATUS(scan(part, [&](std::int64_t offset, FoundLetter letter) -> Result<bool> {
      if (!part.redriven.contains(offset)) more = see(std::move(letter));
      return more;
    }));
  }
  return {};
}

Result<StoredLetter> KafkaLetterStore::find(const std::string& id) {
  const std::size_t slash = std::min(id.find('/'), id.size());
  const auto partition = parse_number(std::string_view(id).substr(0, slash), 0, 0x7fffffff);
  const auto offset = parse_number(std::string_view(id).substr(std::min(slash + 1, id.size())), 0,
                                   std::uint64_t{1} << 62U);
  if (!partition.has_value() || !offset.has_value()) {
    return Error{Errc::invalid_argument,
                 fmt::format("'{}' is not the id of a letter in a topic: PARTITION/OFFSET", id)};
  }
  const Error missing{Errc::not_found,
                      fmt::format("topic '{}' has no record {}", options_.topic, id)};
  if (*partition >= partitions_) return missing;
  Part part{.partition = static_cast<std::uint32_t>(*partition),
            .begin = static_cast<std::int64_t>(*offset)};
  part.end = part.begin + 1;
  BATON_TRY(const KafkaRange range,
            range_of(*handle_, options_.topic, part.partition, kAnswerTime));
  if (part.begin < range.first || part.begin >= range.next) return missing;
  FoundLetter found = missing;
  BATON_TRY_STATUS(scan(part, [&](std::int64_t /*offset*/, FoundLetter letter) -> Result<bool> {
    found = std::move(letter);
    return false;
  }));
  return found;
}

Result<std::uint64_t> KafkaLetterStore::take(LetterTaker& taker) {
  BATON_TRY(std::vector<Part> parts, this->parts());
  std::uint64_t not_reached = 0;
  for (Part& part : parts) {
    if (!taker.wants_more()) break;
    BATON_TRY(const std::uint64_t left, take_from(part, taker));
    not_reached += left;
  }
  return not_reached;
}

Status KafkaLetterStore::commit_changes(const Part& part, RedrivenOffsets& committed) {
  if (part.redriven == committed) return {};
  committed = part.redriven;
  return commit(part);
}

Result<std::uint64_t> KafkaLetterStore::take_from(Part& part, LetterTaker& taker) {
  RedrivenOffsets committed = part.redriven;
  // Begin and end of each, since the last confirmation.
  std::vector<std::pair<std::int64_t, std::int64_t>> taken;
  std::int64_t looked_at = part.begin;  // Examined up to here.
  std::uint64_t not_offered = 0;
  const auto settle = [&]() -> Status {
    BATON_TRY(const auto refused, taker.confirm());
    if (!refused.empty()) part.redriven = without(refused, taken, committed);
    taken.clear();
    return commit_changes(part, committed);
  };
  const auto see = [&](std::int64_t offset, FoundLetter letter) -> Result<bool> {
    if (!taker.wants_more()) return false;
    // There are no records between this one and the one before it.
    const std::int64_t begin = std::exchange(looked_at, offset + 1);
    if (part.redriven.contains(offset)) return true;
    if (!part.redriven.has_room_for(begin, offset + 1)) {
      ++not_offered;
      return true;
    }
    BATON_TRY(const bool is_taken, taker.offer(std::move(letter)));
    if (is_taken) {
      part.redriven.add(begin, offset + 1);
      taken.emplace_back(begin, offset + 1);
    }
    if (taker.is_due()) BATON_TRY_STATUS(settle());
    return true;
  };
  BATON_TRY(const End end, scan(part, see));
  BATON_TRY_STATUS(settle());
  if (end.has_value() && part.redriven.contains(looked_at - 1)) {
    part.redriven.add(looked_at, *end);
    BATON_TRY_STATUS(settle());
  }
  return not_offered;
}

Status KafkaLetterStore::commit(const Part& part) {
  std::string note = part.redriven.note();
  const KafkaPartitionList list(rd_kafka_topic_partition_list_new(1));
  auto* const one = rd_kafka_topic_partition_list_add(list.get(), options_.topic.c_str(),
                                                      static_cast<std::int32_t>(part.partition));
  one->offset = part.redriven.next();
  // The list frees it with free().
  one->metadata = note.empty() ? nullptr : ::strdup(note.c_str());
  one->metadata_size = note.size();
  const rd_kafka_resp_err_t error = rd_kafka_commit(handle_.get(), list.get(), 0);
  if (error == RD_KAFKA_RESP_ERR_NO_ERROR) return {};
  return to_error(error, fmt::format("committing for group '{}', partition {}", options_.group,
                                     part.partition));
}

}  // namespace baton::pipeline
