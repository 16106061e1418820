#include "sdk/stream/stream_reader.h"

#include <algorithm>
#include <random>
#include <utility>

#include "base/result.h"
#include "sdk/base/connection.h"
#include "sdk/base/errors.h"
#include "sdk/stream/stream_convert.h"

namespace baton::client {

StreamReader::StreamReader(std::unique_ptr<State> state) : state_(std::move(state)) {}
StreamReader::StreamReader(StreamReader&&) noexcept = default;
StreamReader& StreamReader::operator=(StreamReader&&) noexcept = default;
StreamReader::~StreamReader() = default;

Result<std::optional<std::vector<Record>>> StreamReader::next() { return state_->next(); }
void StreamReader::close() { state_->close(); }
Offset StreamReader::position() const { return state_->position(); }

StreamReader::State::State(ConnectionPointer connection, std::string stream, ReadOptions options)
    : connection_(std::move(connection)),
      stream_(std::move(stream)),
      options_(options),
      backoff_(connection_->options.reconnect_min, connection_->options.reconnect_max,
               std::random_device{}()) {
  if (options_.from.kind == StartFrom::Kind::offset) floor_.offset = options_.from.offset;
  if (options_.from.kind == StartFrom::Kind::time) floor_.time = options_.from.time;
}

StreamReader::State::~State() {
  close();
  if (!call_) return;
  // gRPC requires that a call is read to its end before its context is destroyed.
  v1::ReadResponse rest;
  while (call_->Read(&rest)) continue;
  (void)call_->Finish();
  call_.reset();
}

void StreamReader::State::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  if (context_) context_->TryCancel();
  closing_.notify_all();
}

bool StreamReader::State::has_enough() const {
  return options_.records_max > 0 && delivered_ >= options_.records_max;
}

/// False after close().
bool StreamReader::State::open() {
  v1::ReadRequest request;
  request.set_stream(stream_);
  request.set_partition(options_.partition.value);
  const Offset position = position_.load();
  to_proto(position.value >= 0 ? StartFrom::at(position) : options_.from, *request.mutable_from());
  if (options_.records_max > 0) request.set_records_max(options_.records_max - delivered_);
  request.set_follow(options_.follow);
  request.set_format(v1::RECORD_FORMAT_BATCHES);
  progress_ = false;

  const std::lock_guard lock(mutex_);
  if (closed_) return false;
  context_ = std::make_unique<grpc::ClientContext>();
  call_ = connection_->streams->Read(context_.get(), request);
  return true;
}

Result<std::vector<Record>> StreamReader::State::take(const v1::ReadResponse& response) {
  BATON_TRY(auto records, decode_batches(response.batches(), options_.partition, floor_));
  const Offset next{response.next_offset()};
  progress_ = progress_ || next > position_.load();
  backoff_.reset();
  down_since_.reset();
  position_ = std::max(position_.load(), next);
  floor_.offset = position_.load();
  end_offset_ = Offset{response.end_offset()};
  // With batches, the one that reaches the limit arrives whole.
  if (options_.records_max > 0 && records.size() > options_.records_max - delivered_) {
    records.resize(options_.records_max - delivered_);
    position_ = Offset{records.back().offset.value + 1};
  }
  delivered_ += records.size();
  return records;
}

Result<StreamReader::State::Ending> StreamReader::State::end_call() {
  const grpc::Status status = call_->Finish();
  call_.reset();
  {
    const std::lock_guard lock(mutex_);
    context_.reset();
    if (closed_) return Ending::over;
  }
  if (status.ok()) {
    if (options_.follow) {
      return retry(from_grpc(status, connection_->options.address));
    }
    // Records that were left out may have counted against the limit: there is more to read then.
    const bool more =
        options_.records_max > 0 && !has_enough() && progress_ && position_.load() < end_offset_;
    return more ? Ending::again : Ending::over;
  }
  const Error error = from_grpc(status, connection_->options.address);
  if (!options_.follow || !is_worth_retrying(status)) return error;
  return retry(error);
}

/// Waits before the next call.
Result<StreamReader::State::Ending> StreamReader::State::retry(const Error& error) {
  const auto now = std::chrono::steady_clock::now();
  if (!down_since_) down_since_ = now;
  const auto give_up = connection_->options.give_up_after;
  if (give_up.count() > 0 && now - *down_since_ >= give_up) return error;
  std::unique_lock lock(mutex_);
  closing_.wait_for(lock, backoff_.next(), [&] { return closed_; });
  return closed_ ? Ending::over : Ending::again;
}

Result<std::optional<std::vector<Record>>> StreamReader::State::read_once() {
  if (!call_ && !open()) return std::nullopt;
  v1::ReadResponse response;
  if (call_->Read(&response)) {
    BATON_TRY(auto records, take(response));
    return records;
  }
  BATON_TRY(const Ending ending, end_call());
  if (ending == Ending::over) return std::nullopt;
  return std::vector<Record>{};
}

Result<std::optional<std::vector<Record>>> StreamReader::State::next() {
  if (failed_) return *failed_;
  while (!has_enough()) {
    auto records = read_once();
    if (!records) {
      failed_ = records.error();
      close();
      return records;
    }
    const auto& found = *records;
    if (!found.has_value()) break;
    if (!found.value().empty()) return records;
  }
  close();
  return std::nullopt;
}

}  // namespace baton::client
