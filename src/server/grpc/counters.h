#pragma once

#include <grpcpp/support/status.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/latency.h"

namespace baton {

/// Every method of the API, for counting.
enum class Method : std::uint8_t {
  create_queue,
  update_queue,
  delete_queue,
  list_queues,
  describe_queue,
  enqueue,
  enqueue_stream,
  lease,
  consume,
  ack,
  nack,
  extend,
  peek,
  purge,
  cancel,
  redrive,
  inspect,
  checkpoint,
  create_stream,
  update_stream,
  delete_stream,
  list_streams,
  describe_stream,
  init_producer,
  append,
  append_stream,
  read,
  subscribe,
  store_offset,
  query_offset,
  list_groups,
  describe_group,
  evaluate_group,
  delete_group,
  set_group_offsets,
  create_bucket,
  delete_bucket,
  list_buckets,
  describe_bucket,
  kv_get,
  kv_put,
  kv_delete,
  kv_list,
  kv_watch,
  leave,
};
inline constexpr std::array<std::string_view, 45> kMethodNames = {
    "CreateQueue",  "UpdateQueue",   "DeleteQueue",    "ListQueues",     "DescribeQueue",
    "Enqueue",      "EnqueueStream", "Lease",          "Consume",        "Ack",
    "Nack",         "Extend",        "Peek",           "Purge",          "Cancel",
    "Redrive",      "Inspect",       "Checkpoint",     "CreateStream",   "UpdateStream",
    "DeleteStream", "ListStreams",   "DescribeStream", "InitProducer",   "Append",
    "AppendStream", "Read",          "Subscribe",      "StoreOffset",    "QueryOffset",
    "ListGroups",   "DescribeGroup", "EvaluateGroup",  "DeleteGroup",    "SetGroupOffsets",
    "CreateBucket", "DeleteBucket",  "ListBuckets",    "DescribeBucket", "KvGet",
    "KvPut",        "KvDelete",      "KvList",         "KvWatch",        "Leave"};

/// What the api layer counts for itself. Written and read by any thread.
struct Counters {
  static constexpr std::size_t kCodes = 17;  // grpc::StatusCode is 0 to 16.

  std::array<std::array<std::atomic<std::uint64_t>, kCodes>, kMethodNames.size()> calls{};
  std::array<LatencyHistogram, kMethodNames.size()> latencies{};  // Of unary calls.
  std::atomic<std::int64_t> consumers_open{0};
  std::atomic<std::int64_t> streams_open{0};
  std::atomic<std::size_t> reads_open{0};  // Read calls.

  void ended(Method method, grpc::StatusCode code) {
    const auto number = static_cast<std::size_t>(code);
    if (number >= kCodes) return;
    calls[static_cast<std::size_t>(method)][number].fetch_add(1, std::memory_order_relaxed);
  }
};

}  // namespace baton
