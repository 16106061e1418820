#include <memory>
#include <utility>

#include <baton/consumer.h>
#include <baton/queue_handle.h>
#include <fmt/format.h>

#include "base/limits.h"
#include "base/result.h"
#include "sdk/base/connection.h"
#include "sdk/base/limits.h"
#include "sdk/queue/consumer_runtime.h"

namespace baton::client {
namespace {

Status check(const std::string& queue, const ConsumerOptions& options,
             const Consumer::Handler& handler) {
  if (queue.empty()) return Error{Errc::invalid_argument, "the queue has no name"};
  if (!handler) return Error{Errc::invalid_argument, "the handler is empty"};
  if (options.concurrency == 0 || options.concurrency > limits::kConcurrencyMax) {
    return Error{Errc::invalid_argument,
                 fmt::format("concurrency is not in 1..{}", limits::kConcurrencyMax)};
  }
  if (options.in_flight_max < options.concurrency ||
      options.in_flight_max > baton::limits::kInFlightMax) {
    return Error{Errc::invalid_argument,
                 fmt::format("in_flight_max is not in {}..{}", options.concurrency,
                             baton::limits::kInFlightMax)};
  }
  return {};
}

}  // namespace

Consumer::Consumer(std::unique_ptr<ConsumerRuntime> runtime) : runtime_(std::move(runtime)) {}
Consumer::Consumer(Consumer&&) noexcept = default;
Consumer& Consumer::operator=(Consumer&&) noexcept = default;
Consumer::~Consumer() = default;

Result<Consumer> Queue::consumer(ConsumerOptions options, Consumer::Handler handler) const {
  BATON_TRY_STATUS(check(name_, options, handler));
  BATON_TRY(const auto connection, make_connection(connection_->options));
  return Consumer(std::make_unique<ConsumerRuntime>(*connection, name_, std::move(options),
                                                    std::move(handler)));
}

Status Consumer::close(std::chrono::milliseconds timeout) { return runtime_->close(timeout); }
std::optional<Status> Consumer::wait(std::chrono::milliseconds timeout) {
  return runtime_->wait(timeout);
}
Consumer::Stats Consumer::stats() const { return runtime_->stats(); }
SessionLease Consumer::lease() const { return runtime_->lease(); }

}  // namespace baton::client
