#include "sdk/stream/append_link.h"

#include <algorithm>
#include <random>
#include <utility>

#include <fmt/format.h>

#include "sdk/base/connection.h"
#include "sdk/base/errors.h"
#include "sdk/base/limits.h"
#include "sdk/stream/stream_convert.h"

namespace baton::client {
namespace {

BatchAccumulator::Options accumulator_options(const StreamProducerOptions& options,
                                              const AppendTerms& terms) {
  static_assert(static_cast<int>(RecordCompression::none) == static_cast<int>(Compression::none));
  static_assert(static_cast<int>(RecordCompression::gzip) == static_cast<int>(Compression::gzip));
  static_assert(static_cast<int>(RecordCompression::zstd) == static_cast<int>(Compression::zstd));
  return {.partitions = terms.partitions,
          .batch_bytes = std::min(options.batch_bytes, terms.batch_bytes_max),
          .batch_bytes_max = terms.batch_bytes_max,
          .linger = options.linger,
          .compression = static_cast<Compression>(options.compression)};
}

AppendResult result_of(const AppendWindow::Settled& settled, std::size_t index) {
  return {.partition = settled.batch->partition,
          .offset = settled.error || settled.offset.value < 0
                        ? kNoOffset
                        : Offset{settled.offset.value + static_cast<std::int64_t>(index)},
          .duplicate = settled.duplicate,
          .error = settled.error};
}

}  // namespace

AppendLink::AppendLink(const Connection& connection, std::string stream,
                       StreamProducerOptions options, const AppendTerms& terms)
    : ProducerLink(connection.options, true),
      stream_(std::move(stream)),
      options_(std::move(options)),
      partitions_(terms.partitions),
      stub_(v1::StreamService::NewStub(connection.channel)),
      accumulator_(accumulator_options(options_, terms)),
      window_(terms.partitions, terms.identity),
      rest_(connection_.reconnect_min, connection_.reconnect_max, std::random_device{}()) {}

AppendLink::~AppendLink() { (void)close(std::chrono::milliseconds{0}); }

void AppendLink::begin_call(grpc::ClientContext* context, Reactor* reactor) {
  stub_->async()->AppendStream(context, reactor);
}

bool AppendLink::has_room(std::size_t cost) const {
  return bytes_in_flight_ == 0 || bytes_in_flight_ + cost <= options_.buffer_bytes_max;
}

std::optional<Error> AppendLink::wait_for_room(Lock& lock, std::size_t cost) {
  const auto ready = [&] { return closed_ || over_ || has_room(cost); };
  if (!ready()) {
    ++waiting_;
    advance(lock);  // Open batches go at once: no record can join them now.
    changed_.wait_until(lock, SteadyClock::now() + options_.send_timeout, ready);
    --waiting_;
  }
  if (auto refused = refusal(); refused) return refused;
  if (has_room(cost)) return std::nullopt;
  return Error{
      Errc::resource_exhausted,
      fmt::format("no room within {} ms: {} bytes are unconfirmed, the limit is {}",
                  options_.send_timeout.count(), bytes_in_flight_, options_.buffer_bytes_max)};
}

void AppendLink::send(NewRecord record, StreamProducer::Callback callback) {
  const std::size_t cost = record_bytes(record);
  Lock lock(mutex_);
  if (auto refused = wait_for_room(lock, cost); refused) {
    lock.unlock();
    if (callback) callback({.error = std::move(refused)});
    return;
  }
  take(lock, record, cost, std::move(callback));
}

bool AppendLink::try_send(NewRecord& record, StreamProducer::Callback callback) {
  const std::size_t cost = record_bytes(record);
  Lock lock(mutex_);
  if (refusal() || !has_room(cost)) return false;
  take(lock, record, cost, std::move(callback));
  return true;
}

void AppendLink::take(Lock& lock, NewRecord& record, std::size_t cost,
                      StreamProducer::Callback callback) {
  if (!record.timestamp) {
    record.timestamp =
        std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
  }
  std::vector<PendingBatchPointer> full;
  const Status taken = accumulator_.add(record, cost, callback, SteadyClock::now(), full);
  hold(std::move(full));
  if (!taken) {
    if (!first_failure_) first_failure_ = taken.error();
    ++stats_.records_sent;
    ++stats_.records_failed;
    advance(lock);
    lock.unlock();
    if (callback) callback({.error = taken.error()});
    return;
  }
  ++stats_.records_sent;
  bytes_in_flight_ += cost;
  advance(lock);
}

void AppendLink::hold(std::vector<PendingBatchPointer> batches) {
  for (PendingBatchPointer& batch : batches) {
    unsettled_.insert(batch->first_record);
    window_.add(std::move(batch));
  }
}

void AppendLink::close_due() {
  const bool all = flushes_ > 0 || waiting_ > 0 || closing_;
  hold(accumulator_.take_due(SteadyClock::now(), all, [this](PartitionNumber partition) {
    return window_.may_send(partition);
  }));
}

void AppendLink::wake_for_linger() {
  if (linger_pending_ || closing_) return;
  const auto due = accumulator_.next_due(
      [this](PartitionNumber partition) { return window_.may_send(partition); });
  if (!due) return;
  linger_pending_ = true;
  run_at(*due, linger_alarm_, [this](Lock& lock) {
    linger_pending_ = false;
    advance(lock);
  });
}

void AppendLink::advance(Lock& lock) {
  if (over_) return;
  if (window_.phase() == AppendWindow::Phase::asking) ask_for_epoch();
  if (window_.phase() == AppendWindow::Phase::resting && !rest_pending_ && !closing_) {
    rest_pending_ = true;
    run_at(SteadyClock::now() + rest_.next(), rest_alarm_, [this](Lock& held) {
      rest_pending_ = false;
      if (window_.phase() == AppendWindow::Phase::resting) window_.resume();
      advance(held);
    });
  }
  close_due();
  wake_for_linger();
  pump(lock);
}

const v1::AppendRequest* AppendLink::next_frame() {
  close_due();
  const auto batches = window_.next_frame(limits::kAppendFrameBytes);
  if (batches.empty()) return nullptr;
  frame_.Clear();  // Keeps the strings inside allocated.
  frame_.set_stream(stream_);
  for (const PendingBatch* const batch : batches) {
    v1::NewBatch& wire = *frame_.add_batches();
    wire.set_partition(batch->partition.value);
    wire.set_batch(batch->bytes);
  }
  ++stats_.frames_written;
  stats_.batches_written += batches.size();
  return &frame_;
}

void AppendLink::violated(Lock& lock, const Error& error) {
  if (++violations_ >= limits::kViolationsMax) over_ = error;
  break_session(lock);
}

void AppendLink::received(v1::AppendResponse& response) {
  std::vector<AppendResult> results;
  results.reserve(static_cast<std::size_t>(response.batches_size()));
  for (const v1::AppendResult& result : response.batches()) results.push_back(from_proto(result));
  std::vector<AppendWindow::Settled> settled;
  {
    Lock lock(mutex_);
    auto answer = window_.answered(results);
    if (!answer) {
      violated(lock, answer.error());
      return;
    }
    mark_alive(lock);
    violations_ = 0;
    if (window_.phase() == AppendWindow::Phase::open) rest_.reset();
    settled = *std::move(answer);
    if (const auto& fenced = window_.fenced(); fenced && !over_) {
      const Error error =
          Error{Errc::producer_fenced,
                fmt::format("another producer has started as \"{}\"; this one is over: {}",
                            options_.producer, fenced->text)};
      over_ = error;
      break_session(lock);
      for (auto& rest : give_up(error)) settled.push_back(std::move(rest));
    }
  }
  settle(std::move(settled));
  Lock lock(mutex_);
  advance(lock);
}

std::vector<AppendWindow::Settled> AppendLink::give_up(const Error& error) {
  const Error unsure =
      Error{error.code, fmt::format("the record may or may not have been stored: {}", error.text)};
  hold(accumulator_.take_due(SteadyClock::now(), true, [](PartitionNumber) { return true; }));
  std::vector<AppendWindow::Settled> settled;
  for (PendingBatchPointer& batch : window_.clear()) {
    const bool sent =
        batch->fate == PendingBatch::Fate::in_flight || batch->fate == PendingBatch::Fate::unknown;
    settled.push_back({.batch = std::move(batch), .error = sent ? unsure : error});
  }
  return settled;
}

void AppendLink::settle(std::vector<AppendWindow::Settled> settled) {
  for (AppendWindow::Settled& one : settled) {
    for (std::size_t i = 0; i < one.batch->callbacks.size(); ++i) {
      if (one.batch->callbacks[i]) one.batch->callbacks[i](result_of(one, i));
    }
    const Lock lock(mutex_);
    const auto records = static_cast<std::uint64_t>(one.batch->count);
    (one.error ? stats_.records_failed : stats_.records_confirmed) += records;
    if (one.error && !first_failure_) first_failure_ = one.error;
    bytes_in_flight_ -= one.batch->cost;
    unsettled_.erase(unsettled_.find(one.batch->first_record));
    changed_.notify_all();
  }
}

void AppendLink::disconnected(const Error& error, bool over) {
  std::vector<AppendWindow::Settled> settled;
  {
    const Lock lock(mutex_);
    window_.session_broke();
    if (over) settled = give_up(over_.value_or(error));
  }
  settle(std::move(settled));
}

void AppendLink::cancel_alarms() {
  if (linger_alarm_) linger_alarm_->Cancel();
  if (rest_alarm_) rest_alarm_->Cancel();
}

std::optional<std::uint64_t> AppendLink::oldest_unsettled() const {
  auto oldest = accumulator_.oldest_record();
  if (!unsettled_.empty() && (!oldest || *unsettled_.begin() < *oldest)) {
    oldest = *unsettled_.begin();
  }
  return oldest;
}

Status AppendLink::flush(std::chrono::milliseconds timeout) {
  const auto deadline = SteadyClock::now() + timeout;
  Lock lock(mutex_);
  const std::uint64_t target = accumulator_.records();
  ++flushes_;
  advance(lock);
  const auto settled = [&] {
    const auto oldest = oldest_unsettled();
    return !oldest || *oldest >= target;
  };
  return end_flush(lock, deadline, settled, [&] {
    return fmt::format("{} records",
                       stats_.records_sent - stats_.records_confirmed - stats_.records_failed);
  });
}

Status AppendLink::close(std::chrono::milliseconds timeout) {
  const auto deadline = SteadyClock::now() + timeout;
  refuse_more();
  Status flushed = flush(timeout);
  Lock lock(mutex_);
  shutdown(lock, window_.empty(), deadline);
  if (ask_context_ != nullptr) ask_context_->TryCancel();
  changed_.notify_all();
  lock.unlock();
  if (asker_.joinable()) asker_.join();
  // Fails what waited for a session that never came.
  disconnected(closed_error(), true);
  return flushed;
}

StreamProducer::Stats AppendLink::stats() const {
  const Lock lock(mutex_);
  StreamProducer::Stats stats = stats_;
  stats.bytes_in_flight = bytes_in_flight_;
  stats.batches_resent = window_.resent();
  stats.reconnects = reconnects_;
  return stats;
}

}  // namespace baton::client
