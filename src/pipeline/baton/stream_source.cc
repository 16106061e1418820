#include "pipeline/baton/stream_source.h"

#include <algorithm>
#include <thread>
#include <utility>

#include <baton/broker.h>
#include <fmt/format.h>

#include "sdk/base/channel.h"

namespace baton::pipeline {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kHandlersMax = 64;
constexpr milliseconds kCommitTimeout{5'000};
constexpr milliseconds kReadAgain{200};
constexpr milliseconds kPatience{4'000};  // The broker waits 10 s.
constexpr milliseconds kForEver = std::chrono::hours(24 * 365);
constexpr milliseconds kLookAgain{100};
constexpr milliseconds kLookAtEnds{2'000};
constexpr milliseconds kLookTimeout{1'000};

Record to_record(client::Record record) {
  Record result;
  result.partition = record.partition.value;
  result.offset = record.offset.value;
  result.key = std::move(record.key).value_or("");
  result.tombstone = !record.value.has_value();
  result.value = std::move(record.value).value_or("");
  result.timestamp =
      std::chrono::duration_cast<std::chrono::milliseconds>(record.timestamp.time_since_epoch());
  for (client::RecordHeader& header : record.headers) {
    result.headers.emplace_back(std::move(header.name), std::move(header.value).value_or(""));
  }
  return result;
}

/// The records from `begin` on.
std::vector<Record> to_records(std::vector<client::Record> records, Offset begin) {
  std::vector<Record> result;
  result.reserve(records.size());
  for (client::Record& record : records) {
    if (record.offset >= begin) result.push_back(to_record(std::move(record)));
  }
  return result;
}

}  // namespace

Result<client::StreamInfo> StreamSource::describe() {
  if (stream_ == nullptr) {
    BATON_TRY(const client::Broker broker, client::Broker::open(options_.connection));
    stream_ = std::make_unique<client::Stream>(broker.stream(options_.stream));
  }
  auto info = stream_->describe();
  if (info.has_value()) return *std::move(info);
  Error error = client::explain(options_.connection, info.error());
  if (error.code == Errc::stream_not_found) {
    error.text +=
        fmt::format("; create it with 'baton stream create {} --partitions 4'", options_.stream);
  }
  return error;
}

Result<Findings> StreamSource::check() {
  BATON_TRY(const client::StreamInfo info, describe());
  return Findings{
      fact(fmt::format("reads stream {} at {}, {} partitions, as group {}", options_.stream,
                       options_.connection.address, info.partitions, options_.group))};
}

Status StreamSource::start(SourceListener& listener) {
  listener_ = &listener;
  BATON_TRY(const client::StreamInfo info, describe());
  auto consumer = stream_->consumer(consumer_options(info.partitions),
                                    [this](client::RecordBatch& batch) { handle(batch); });
  if (!consumer.has_value()) return consumer.error();
  consumer_ = std::make_unique<client::StreamConsumer>(*std::move(consumer));
  watch_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
  return {};
}

/// Lost records never come back: an operator must decide that they may be skipped.
Error StreamSource::with_advice(const Error& problem) const {
  Error error = problem;
  if (error.code == Errc::offset_out_of_range) {
    error.text += fmt::format(
        ". The next record does not exist (retention, or a stream created again). To go on with "
        "what is there: 'baton group delete {} {}', and with exactly_once_effect another name for "
        "the pipeline",
        options_.stream, options_.group);
  }
  return error;
}

/// A consumer ends by itself if it would have to skip records, or if the stream is gone.
void StreamSource::watch(const std::stop_token& stop) {
  client::ConnectionOptions connection = options_.connection;
  connection.deadline = kLookTimeout;  // A stop waits for this call.
  auto broker = client::Broker::open(connection);
  auto looked_at = std::chrono::steady_clock::now();
  while (!stop.stop_requested()) {
    const auto ended = consumer_->wait(kLookAgain);
    if (ended.has_value()) {
      if (!ended->has_value() && !stopping_) listener_->failed(with_advice(ended->error()));
      return;
    }
    if (!broker.has_value() || std::chrono::steady_clock::now() - looked_at < kLookAtEnds) continue;
    look_at_ends(broker->stream(options_.stream));
    looked_at = std::chrono::steady_clock::now();
  }
}

/// Batches tell the end of the stream, too, but none arrive while the window is full.
void StreamSource::look_at_ends(const client::Stream& stream) {
  const auto info = stream.describe();
  if (!info.has_value()) {
    const Error& error = info.error();
    return set_trouble(may_pass(error) ? std::optional(error.text) : std::nullopt);
  }
  set_trouble(std::nullopt);
  for (const client::PartitionInfo& one : info->details) set_end(one.partition, one.next_offset);
}

void StreamSource::set_trouble(std::optional<std::string> why) {
  const std::scoped_lock lock(mutex_);
  unanswered_ = why.has_value() ? unanswered_ + 1 : 0;
  trouble_ = std::move(why).value_or("");
}

std::optional<std::string> StreamSource::trouble() const {
  const std::scoped_lock lock(mutex_);
  return unanswered_ < 2 ? std::nullopt : std::optional(trouble_);
}

void StreamSource::set_end(PartitionNumber partition, Offset end) {
  const std::scoped_lock lock(mutex_);
  // A batch may have waited long, so its end may be older.
  ends_[partition] = std::max(ends_[partition], end);
}

client::StreamConsumerOptions StreamSource::consumer_options(std::size_t partitions) {
  client::StreamConsumerOptions options;
  options.group = options_.group;
  options.single_active = true;
  options.owner = "pipeline";
  options.storing.automatic = false;
  // A handler that waits for room must not block the handlers of other partitions.
  options.concurrency = std::clamp<std::size_t>(partitions, 1, kHandlersMax);
  options.ask_offset = [this](const client::StreamPosition& seat) { return begin(seat); };
  options.on_losing = [this](PartitionNumber partition) { lose(partition); };
  options.on_step_down = [this](PartitionNumber partition) { give_up(partition); };
  return options;
}

Offset StreamSource::begin(const client::StreamPosition& seat) {
  end_late_claim(seat.partition);
  {
    const std::scoped_lock lock(mutex_);
    seats_[seat.partition] = {.epoch = seat.epoch};
  }
  const Claim claimed = claim(seat, kPatience);
  if (claimed.begin.has_value()) {
    set_claimed(seat, *claimed.begin);
    return *claimed.begin;
  }
  const std::scoped_lock lock(mutex_);
  late_claims_[seat.partition] =
      std::jthread([this, seat, claimed] { claim_late(seat, claimed.stored); });
  return claimed.stored;
}

StreamSource::Claim StreamSource::claim(const client::StreamPosition& seat, milliseconds patience) {
  std::optional<Offset> stored;
  const auto began = std::chrono::steady_clock::now();
  for (bool again = false; is_ours(seat); again = true) {
    // A call to an unavailable sink may itself take long.
    const bool is_late = std::chrono::steady_clock::now() - began > patience;
    if (again && is_late && stored.has_value()) break;
    if (again) std::this_thread::sleep_for(kReadAgain);
    if (!stored.has_value()) stored = stored_offset(seat.partition);
    if (!stored.has_value()) continue;
    const auto begin = listener_->assigned(seat.partition.value, seat.epoch.value, stored->value);
    if (begin.has_value()) return {.stored = *stored, .begin = Offset{*begin}};
  }
  return {.stored = stored.value_or(Offset{0})};
}

void StreamSource::claim_late(const client::StreamPosition& seat, Offset delivered) {
  const std::optional<Offset> begin = claim(seat, kForEver).begin;
  if (!begin.has_value()) return;
  // The group has committed more than the sink holds: the sink may have been restored from a
  // backup.
  if (*begin < delivered && !read_again(seat, *begin, delivered)) return;
  set_claimed(seat, *begin);
}

bool StreamSource::read_again(const client::StreamPosition& seat, Offset begin, Offset end) {
  while (begin < end && is_ours(seat)) {
    client::StreamReader reader =
        stream_->read({.partition = seat.partition,
                       .from = client::StartFrom::at(begin),
                       .records_max = static_cast<std::uint64_t>(end.value - begin.value)});
    const Result<bool> wanted = pass_on(reader, seat.partition, begin);
    if (wanted.has_value() && !*wanted) return false;
    if (!wanted.has_value() && wanted.error().code == Errc::offset_out_of_range) {
      listener_->failed(wanted.error());
      return false;
    }
    if (begin < end) std::this_thread::sleep_for(kReadAgain);
  }
  return begin >= end;
}

Result<bool> StreamSource::pass_on(client::StreamReader& reader, PartitionNumber partition,
                                   Offset& begin) {
  while (true) {
    auto read = reader.next();
    if (!read.has_value()) return read.error();
    std::optional<std::vector<client::Record>> records = *std::move(read);
    if (!records.has_value()) return true;
    const Offset next{records->back().offset.value + 1};
    if (!listener_->deliver(partition.value, to_records(*std::move(records), Offset{0})))
      return false;
    begin = next;
  }
}

void StreamSource::set_claimed(const client::StreamPosition& seat, Offset begin) {
  const std::scoped_lock lock(mutex_);
  const auto found = seats_.find(seat.partition);
  if (found == seats_.end() || found->second.epoch != seat.epoch) return;
  found->second.begin = begin;
  found->second.claimed = true;
}

void StreamSource::end_late_claim(PartitionNumber partition) {
  std::jthread late;  // Joined outside the lock.
  const std::scoped_lock lock(mutex_);
  late = std::exchange(late_claims_[partition], {});
}

std::optional<Offset> StreamSource::stored_offset(PartitionNumber partition) {
  const auto stored = stream_->group(options_.group).offset(partition);
  if (!stored.has_value()) return std::nullopt;
  if (stored->offset.has_value()) return stored->offset;
  const auto info = stream_->describe();
  if (!info.has_value()) return std::nullopt;
  for (const client::PartitionInfo& one : info->details) {
    if (one.partition != partition) continue;
    const bool at_end = options_.from.kind == client::StartFrom::Kind::next;
    return at_end ? one.next_offset : one.first_offset;
  }
  return std::nullopt;
}

bool StreamSource::is_ours(const client::StreamPosition& seat) const {
  const std::scoped_lock lock(mutex_);
  const auto found = seats_.find(seat.partition);
  return !stopping_ && found != seats_.end() && found->second.epoch == seat.epoch &&
         !found->second.losing;
}

void StreamSource::lose(PartitionNumber partition) {
  {
    const std::scoped_lock lock(mutex_);
    const auto seat = seats_.find(partition);
    if (seat != seats_.end()) seat->second.losing = true;
  }
  listener_->revoking(partition.value);
}

std::optional<Offset> StreamSource::wait_for_claim(const client::StreamPosition& seat) const {
  for (; is_ours(seat); std::this_thread::sleep_for(kLookAgain)) {
    const std::scoped_lock lock(mutex_);
    const auto found = seats_.find(seat.partition);
    if (found != seats_.end() && found->second.claimed) return found->second.begin;
  }
  return std::nullopt;
}

void StreamSource::handle(client::RecordBatch& batch) {
  const client::StreamPosition seat = batch.position();
  set_end(batch.partition, batch.end_offset);
  const std::optional<Offset> begin = wait_for_claim(seat);
  if (!begin.has_value()) return;
  // Records that are not taken are not committed either, so the next holder of the seat gets them.
  listener_->deliver(batch.partition.value, to_records(std::move(batch.records), *begin));
}

void StreamSource::give_up(PartitionNumber partition) {
  Epoch epoch;
  {
    const std::scoped_lock lock(mutex_);
    const auto seat = seats_.find(partition);
    if (seat == seats_.end()) return;
    epoch = seat->second.epoch;
    seats_.erase(seat);
  }
  end_late_claim(partition);
  const std::optional<std::int64_t> mark = listener_->revoked(partition.value, false);
  // If another consumer has the seat by now, the broker refuses the commit, as it should.
  if (mark.has_value()) (void)commit(partition.value, epoch.value, *mark);
}

Status StreamSource::commit(std::uint32_t partition, std::uint64_t epoch, std::int64_t next) {
  const auto stored = consumer_->store_offset(
      {.partition = PartitionNumber{partition}, .epoch = Epoch{epoch}, .offset = Offset{next}},
      kCommitTimeout);
  if (!stored.has_value()) return stored.error();
  return {};
}

Status StreamSource::stop(std::chrono::milliseconds timeout) {
  if (consumer_ == nullptr) return {};
  stopping_ = true;
  std::vector<PartitionNumber> held;
  {
    const std::scoped_lock lock(mutex_);
    held.reserve(seats_.size());
    for (const auto& [partition, seat] : seats_) held.push_back(partition);
  }
  for (const PartitionNumber partition : held) listener_->revoking(partition.value);
  for (const PartitionNumber partition : held) give_up(partition);
  const auto stopped = consumer_->close(timeout);
  watch_ = {};
  if (!stopped.has_value()) return stopped.error();
  return {};
}

std::vector<PartitionLag> StreamSource::ends() const {
  const std::scoped_lock lock(mutex_);
  std::vector<PartitionLag> result;
  result.reserve(ends_.size());
  for (const auto& [partition, end] : ends_) result.push_back({partition.value, end.value});
  return result;
}

std::string StreamSource::name() const { return fmt::format("baton-stream:{}", options_.stream); }

Result<std::string> StreamSource::origin() {
  BATON_TRY(const client::StreamInfo info, describe());
  return fmt::format("{}@{}", name(), info.created_at.time_since_epoch().count());
}

}  // namespace baton::pipeline
