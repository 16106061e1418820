#include "pipeline/nats/nats_partition.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace baton::pipeline {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kWaitForMessages{50};
constexpr milliseconds kWaitForRoom{50};
constexpr milliseconds kAskAgain{200};
constexpr milliseconds kRetry{300};
constexpr milliseconds kLookAtLag{2'000};
constexpr milliseconds kLastAck{1'000};
constexpr int kLastAcksMax = 3;
constexpr const char* kKeyHeader = "baton-key";

struct Free {
  void operator()(const char** names) const {
    std::free(const_cast<char**>(names));  // NOLINT: libnats' way to give it away.
  }
};
using Names = std::unique_ptr<const char*, Free>;

std::vector<std::pair<std::string, std::string>> headers_of(natsMsg* message) {
  std::vector<std::pair<std::string, std::string>> headers;
  const char** raw = nullptr;
  int count = 0;
  if (natsMsgHeader_Keys(message, &raw, &count) != NATS_OK) return headers;
  const Names keys(raw);
  for (int i = 0; i < count; ++i) {
    const char** raw_values = nullptr;
    int values_count = 0;
    if (natsMsgHeader_Values(message, raw[i], &raw_values, &values_count) != NATS_OK) continue;
    const Names values(raw_values);
    for (int j = 0; j < values_count; ++j) headers.emplace_back(raw[i], raw_values[j]);
  }
  // libnats does not keep the order of headers.
  std::ranges::stable_sort(headers, {}, &std::pair<std::string, std::string>::first);
  return headers;
}

}  // namespace

NatsPartition::NatsPartition(const NatsPartitionContext& context, std::uint32_t partition,
                             std::uint64_t epoch)
    : context_(context),
      partition_(partition),
      epoch_(epoch),
      filter_(nats_subject(context.subject, partition)),
      thread_([this] { run(); }) {}

NatsPartition::~NatsPartition() {
  crashed_ = true;
  revoke(true);
  if (thread_.joinable()) thread_.join();
}

void NatsPartition::revoke(bool lost) {
  {
    const std::scoped_lock lock(mutex_);
    if (lost) lost_ = true;
    leaving_ = true;
  }
  changed_.notify_all();
}

void NatsPartition::wait(milliseconds time) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, time, [this] { return is_leaving(); });
}

void NatsPartition::complain(const std::string& what, const Error& error) {
  if (std::exchange(complained_, true)) return;
  context_.log(
      true, fmt::format("partition {}: {}, trying again: {}", partition_, what, to_string(error)));
}

void NatsPartition::run() {
  if (begin()) {
    while (!is_leaving()) step();
  }
  finish();
  over_ = true;
}

bool NatsPartition::begin() {
  std::optional<std::int64_t> found;
  while (!is_leaving()) {
    if (!found.has_value()) {
      const Result<std::int64_t> begin = find_begin();
      if (!begin.has_value()) {
        if (begin.error().code != Errc::not_found)
          complain("it is not known where to begin", begin.error());
        wait(kRetry);
        continue;
      }
      found = *begin;
    }
    const auto answer = context_.listener->assigned(partition_, epoch_, *found);
    if (answer.has_value()) {
      const std::scoped_lock lock(mutex_);
      next_ = committed_ = std::max<std::int64_t>(*answer, 1);
      return assigned_ = true;
    }
    wait(kAskAgain);
  }
  return false;
}

/// The offset behind everything that any earlier owner has acknowledged.
Result<std::int64_t> NatsPartition::find_begin() {
  BATON_TRY(const std::vector<std::string> names, context_.stream->consumers());
  std::optional<std::uint64_t> floor;
  for (const std::string& name : names) {
    if (!parse_nats_consumer(name, context_.group, partition_).has_value()) continue;
    const auto consumer = context_.stream->consumer(name);
    // Not found: another owner has just removed it, and made one that is not among these names.
    if (!consumer.has_value()) return consumer.error();
    floor = std::max(floor.value_or(0), consumer->floor);
  }
  if (!floor.has_value() && context_.from_next) {
    BATON_TRY(const NatsStream::Facts facts, context_.stream->facts());
    floor = facts.last;
  }
  if (floor.has_value()) {
    // With a filter it is unknown which partition the missing messages were of.
    BATON_TRY(const NatsStream::Facts facts, context_.stream->facts());
    if (*floor + 1 < facts.first && !std::exchange(told_of_gap_, true)) {
      context_.log(true, fmt::format("partition {}: {} is due, but the stream begins with {}: what "
                                     "its limits have removed was never read",
                                     partition_, *floor + 1, facts.first));
    }
  }
  return static_cast<std::int64_t>(floor.value_or(0)) + 1;
}

void NatsPartition::step() {
  const bool is_new = pull_ == nullptr || is_broken_ || context_.stream->breaks() != breaks_;
  if (is_new) {
    pull_.reset();
    const Status opened = open_consumer();
    if (!opened.has_value()) {
      complain("no consumer", opened.error());
      return wait(kRetry);
    }
  }
  look_at_lag();
  if (*context_.paused || !context_.listener->has_room()) return wait(kWaitForRoom);
  const Status asked = pull_->ask(context_.fetch);
  auto pulled = asked.has_value() ? pull_->take(context_.fetch, kWaitForMessages) : asked.error();
  if (!pulled.has_value()) {
    complain("no messages arrive", pulled.error());
    pull_.reset();
    return wait(kRetry);
  }
  if (pulled->empty()) return;
  complained_ = false;
  deliver(*std::move(pulled));
}

Status NatsPartition::open_consumer() {
  NatsStream& stream = *context_.stream;
  breaks_ = stream.breaks();
  is_broken_ = false;
  BATON_TRY(const std::vector<std::string> names, stream.consumers());
  const NatsConsumerName mine{.epoch = epoch_, .generation = generation_++};
  NatsStream::NewConsumer consumer;
  consumer.name = to_string(mine, context_.group, partition_);
  consumer.subject = filter_;
  {
    const std::scoped_lock lock(mutex_);
    // Acknowledgements of the old consumer are not valid for the new one.
    acks_.clear();
    last_reply_.clear();
    consumer.start = static_cast<std::uint64_t>(committed_);
  }
  BATON_TRY_STATUS(stream.create(consumer));
  BATON_TRY(pull_, NatsPull::open(context_.stream, consumer.name));
  consumer_ = consumer.name;
  const Status removed = remove_older(names, mine);
  if (!removed.has_value()) pull_.reset();
  return removed;
}

Status NatsPartition::remove_older(const std::vector<std::string>& names,
                                   const NatsConsumerName& mine) {
  for (const std::string& name : names) {
    const auto other = parse_nats_consumer(name, context_.group, partition_);
    if (!other.has_value() || *other == mine) continue;
    if (*other < mine) {
      BATON_TRY_STATUS(context_.stream->remove(name));
    } else if (!context_.may_act(partition_, epoch_)) {
      return Error{Errc::stale_epoch, fmt::format("consumer {} is of a later owner", name)};
    }
  }
  return {};
}

Record NatsPartition::to_record(NatsPulled& pulled) const {
  natsMsg* message = pulled.message.get();
  Record record;
  record.partition = partition_;
  record.offset = static_cast<std::int64_t>(pulled.delivery.stream_sequence);
  record.value.assign(natsMsg_GetData(message),
                      static_cast<std::size_t>(natsMsg_GetDataLength(message)));
  record.headers = headers_of(message);
  record.timestamp = std::chrono::duration_cast<milliseconds>(
      std::chrono::nanoseconds(pulled.delivery.timestamp_ns));
  const auto key =
      std::ranges::find(record.headers, kKeyHeader, &std::pair<std::string, std::string>::first);
  record.key = key != record.headers.end()
                   ? key->second
                   : std::string(nats_subject_rest(filter_, natsMsg_GetSubject(message)));
  return record;
}

void NatsPartition::deliver(std::vector<NatsPulled> pulled) {
  std::vector<Record> records;
  records.reserve(pulled.size());
  std::string late;
  {
    const std::scoped_lock lock(mutex_);
    for (const NatsPulled& one : pulled) {
      acks_.push_back({static_cast<std::int64_t>(one.delivery.stream_sequence),
                       natsMsg_GetReply(one.message.get())});
    }
    const NatsDelivery& last = pulled.back().delivery;
    end_ = static_cast<std::int64_t>(last.stream_sequence + last.pending + 1);
    late = take_ack(committed_);
  }
  // Committed when the previous consumer was just removed.
  if (!late.empty() && !context_.stream->acknowledge(late).has_value()) is_broken_ = true;
  for (NatsPulled& one : pulled) {
    const auto sequence = static_cast<std::int64_t>(one.delivery.stream_sequence);
    if (sequence < next_) continue;  // Already passed on.
    records.push_back(to_record(one));
    next_ = sequence + 1;
  }
  if (!records.empty()) (void)context_.listener->deliver(partition_, std::move(records));
}

std::string NatsPartition::take_ack(std::int64_t next) {
  std::string reply;
  while (!acks_.empty() && acks_.front().sequence < next) {
    reply = std::move(acks_.front().reply_subject);
    acks_.pop_front();
  }
  if (!reply.empty()) last_reply_ = reply;
  return reply;
}

Status NatsPartition::commit(std::int64_t next) {
  if (is_leaving() || !context_.may_act(partition_, epoch_)) {
    return Error{Errc::stale_epoch, fmt::format("partition {} is not ours", partition_)};
  }
  std::string reply;
  {
    const std::scoped_lock lock(mutex_);
    if (next <= committed_) return {};
    committed_ = next;
    reply = take_ack(next);
  }
  if (reply.empty()) return {};
  Status sent = context_.stream->acknowledge(reply);
  // The next consumer begins after it, so nothing is lost.
  if (!sent.has_value()) is_broken_ = true;
  return sent;
}

/// The same, but waits for the confirmation, because no later acknowledgement would repeat it.
void NatsPartition::commit_last(std::int64_t next) {
  std::string reply;
  {
    const std::scoped_lock lock(mutex_);
    committed_ = std::max(committed_, next);
    take_ack(next);
    reply = last_reply_;
  }
  if (reply.empty()) return;
  Status sent;
  for (int i = 0; i < kLastAcksMax; ++i) {
    if (!context_.may_act(partition_, epoch_)) return;
    sent = context_.stream->acknowledge(reply, kLastAck);
    if (sent.has_value()) return;
    std::this_thread::sleep_for(kAskAgain);
  }
  context_.log(true, fmt::format("partition {} cannot be committed up to {}, and a part of it will "
                                 "come again: {}",
                                 partition_, next, to_string(sent.error())));
}

void NatsPartition::look_at_lag() {
  const auto now = Clock::now();
  if (now - looked_at_ < kLookAtLag) return;
  looked_at_ = now;
  const auto consumer = context_.stream->consumer(consumer_);
  if (!consumer.has_value()) return;
  const std::scoped_lock lock(mutex_);
  // Messages that are delivered and wait for room count, too.
  const auto delivered = static_cast<std::int64_t>(consumer->delivered);
  end_ = std::max(next_, delivered + 1) + static_cast<std::int64_t>(consumer->pending);
}

std::optional<std::int64_t> NatsPartition::end() const {
  const std::scoped_lock lock(mutex_);
  return end_;
}

void NatsPartition::finish() {
  pull_.reset();
  if (crashed_) return;
  const bool lost = lost_;
  if (assigned_) {
    const auto mark = context_.listener->revoked(partition_, lost);
    if (mark.has_value() && !lost) commit_last(*mark);
  }
  context_.stopped(partition_, epoch_);
}

}  // namespace baton::pipeline
