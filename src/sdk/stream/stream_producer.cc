#include <limits>
#include <memory>
#include <utility>

#include <baton/stream_handle.h>
#include <baton/stream_producer.h>
#include <fmt/format.h>

#include "base/result.h"
#include "core/stream/limits.h"
#include "sdk/base/connection.h"
#include "sdk/stream/append_link.h"

namespace baton::client {
namespace {

using Stub = v1::StreamService::Stub;

constexpr CallTerms kPatient{.patient = true};

Status check(const std::string& stream, const StreamProducerOptions& options) {
  if (stream.empty()) return Error{Errc::invalid_argument, "the stream has no name"};
  if (options.batch_bytes == 0 || options.buffer_bytes_max == 0) {
    return Error{Errc::invalid_argument, "a bound of the producer is 0"};
  }
  if (options.linger.count() < 0) return Error{Errc::invalid_argument, "linger is negative"};
  if (!options.idempotent && !options.producer.empty()) {
    return Error{Errc::invalid_argument, "only an idempotent producer has a name"};
  }
  return {};
}

Result<AppendTerms> ask_terms(const Connection& connection, const std::string& stream,
                              const StreamProducerOptions& options) {
  AppendTerms terms;
  v1::DescribeStreamRequest describe;
  describe.set_name(stream);
  BATON_TRY(const auto described,
            connection.call(*connection.streams, &Stub::DescribeStream, describe, kPatient));
  terms.partitions = described.stream().partitions();
  if (terms.partitions == 0) {
    return Error{Errc::internal, "the broker described a stream without partitions"};
  }
  const std::uint64_t bytes = described.stream().settings().batch_bytes_max();
  terms.batch_bytes_max = bytes != 0 ? bytes : baton::limits::kStreamBatchBytesDefault;
  if (!options.idempotent) return terms;

  v1::InitProducerRequest init;
  init.set_stream(stream);
  init.set_producer(options.producer);
  BATON_TRY(const auto made,
            connection.call(*connection.streams, &Stub::InitProducer, init, kPatient));
  if (made.producer_epoch() < 0 ||
      made.producer_epoch() > std::numeric_limits<std::int16_t>::max()) {
    return Error{Errc::internal,
                 fmt::format("the broker gave the epoch {}", made.producer_epoch())};
  }
  terms.identity = AppendWindow::Identity{
      .id = ProducerId{made.producer_id()},
      .epoch = ProducerEpoch{static_cast<std::int16_t>(made.producer_epoch())}};
  return terms;
}

}  // namespace

StreamProducer::StreamProducer(std::unique_ptr<AppendLink> link) : link_(std::move(link)) {}
StreamProducer::StreamProducer(StreamProducer&&) noexcept = default;
StreamProducer& StreamProducer::operator=(StreamProducer&&) noexcept = default;
StreamProducer::~StreamProducer() = default;

Result<StreamProducer> Stream::producer(StreamProducerOptions options) const {
  BATON_TRY_STATUS(check(name_, options));
  BATON_TRY(const auto connection, make_connection(connection_->options));
  BATON_TRY(const AppendTerms terms, ask_terms(*connection, name_, options));
  return StreamProducer(
      std::make_unique<AppendLink>(*connection, name_, std::move(options), terms));
}

void StreamProducer::send(NewRecord record, Callback callback) {
  link_->send(std::move(record), std::move(callback));
}

std::future<AppendResult> StreamProducer::send(NewRecord record) {
  // A std::function must be copyable, a promise is not.
  auto promise = std::make_shared<std::promise<AppendResult>>();
  auto future = promise->get_future();
  link_->send(std::move(record),
              [promise](AppendResult result) { promise->set_value(std::move(result)); });
  return future;
}

bool StreamProducer::try_send(NewRecord& record, Callback callback) {
  return link_->try_send(record, std::move(callback));
}

Status StreamProducer::flush(std::chrono::milliseconds timeout) { return link_->flush(timeout); }
Status StreamProducer::close(std::chrono::milliseconds timeout) { return link_->close(timeout); }
std::uint32_t StreamProducer::partitions() const { return link_->partitions(); }
StreamProducer::Stats StreamProducer::stats() const { return link_->stats(); }

}  // namespace baton::client
