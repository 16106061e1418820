#include "pipeline/kafka/kafka_handles.h"

#include <chrono>
#include <future>
#include <thread>
#include <utility>

namespace baton::pipeline {
namespace {

constexpr std::chrono::seconds kDestroyMax{5};

}  // namespace

/// librdkafka 2.0 may wait for ever for a reference that it has lost, for example if a topic is
/// deleted under its consumer. The pipeline must still end, so the handle is left to the operating
/// system.
void destroy_kafka(rd_kafka_t* handle) {
  std::promise<void> promise;
  const std::future<void> destroyed = promise.get_future();
  std::thread([handle, over = std::move(promise)]() mutable {
    rd_kafka_destroy_flags(handle, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
    over.set_value();
  }).detach();
  (void)destroyed.wait_for(kDestroyMax);
}

}  // namespace baton::pipeline
