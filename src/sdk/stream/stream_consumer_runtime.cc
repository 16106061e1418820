#include "sdk/stream/stream_consumer_runtime.h"

#include <exception>
#include <utility>

#include <fmt/format.h>

#include "sdk/base/errors.h"
#include "sdk/stream/record_codec.h"

namespace baton::client {

StreamConsumerRuntime::StreamConsumerRuntime(const Connection& connection, std::string stream,
                                             StreamConsumerOptions options,
                                             StreamConsumer::Handler handler,
                                             const std::vector<PartitionStart>& partitions)
    : options_(std::move(options)),
      handler_(std::move(handler)),
      link_(connection, std::move(stream), options_, partitions) {
  link_.start();
  workers_.reserve(options_.concurrency);
  for (std::size_t i = 0; i < options_.concurrency; ++i) {
    workers_.emplace_back([this] { work(); });
  }
}

StreamConsumerRuntime::~StreamConsumerRuntime() { (void)close(options_.close_timeout); }

Status StreamConsumerRuntime::close(std::chrono::milliseconds timeout) {
  const std::lock_guard lock(close_mutex_);
  if (closed_) return *closed_;
  closed_ = link_.close(timeout);
  for (std::thread& worker : workers_) worker.join();
  return *closed_;
}

void StreamConsumerRuntime::work() {
  while (auto task = link_.next_task()) {
    // Users' code may throw; what it failed on must not be skipped.
    try {
      run(*task);
    } catch (const std::exception& exception) {
      fail(*task, Error{Errc::internal, fmt::format("the handler of partition {} threw: {}",
                                                    task->partition.value, exception.what())});
    } catch (...) {
      fail(*task, Error{Errc::internal,
                        fmt::format("the handler of partition {} threw", task->partition.value)});
    }
    link_.finish(*task);
  }
}

void StreamConsumerRuntime::fail(SeatTask& task, const Error& error) {
  task.failed = true;
  link_.fail(error);
}

void StreamConsumerRuntime::run(SeatTask& task) {
  switch (task.kind) {
    case SeatTask::Kind::activate: {
      const StreamPosition position{
          .partition = task.partition, .epoch = task.epoch, .offset = task.offset};
      if (options_.on_active) options_.on_active(position);
      if (options_.ask_offset) task.offset = options_.ask_offset(position);
      break;
    }
    case SeatTask::Kind::step_down:
      if (options_.on_step_down) options_.on_step_down(task.partition);
      break;
    case SeatTask::Kind::handle: handle(task); break;
  }
}

void StreamConsumerRuntime::handle(SeatTask& task) {
  auto records = decode_batches(task.batch.bytes, task.partition, task.floor);
  if (!records) {
    fail(task,
         Error{records.error().code, fmt::format("a batch of partition {} cannot be read: {}",
                                                 task.partition.value, records.error().text)});
    return;
  }
  if (records->empty()) return;  // All of it was handed out before.
  task.records = records->size();
  RecordBatch batch{.partition = task.partition,
                    .epoch = task.epoch,
                    .records = *std::move(records),
                    .next_offset = task.batch.next_offset,
                    .end_offset = task.batch.end_offset};
  handler_(batch);
  if (batch.next_offset >= task.batch.next_offset) return;
  task.batch.next_offset = batch.next_offset;
  task.stopped = true;
}

}  // namespace baton::client
