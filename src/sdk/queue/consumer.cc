#include <baton/consumer.h>

#include <memory>
#include <utility>

#include <fmt/format.h>

#include "base/limits.h"
#include "base/result.h"
#include "sdk/base/channel.h"
#include "sdk/base/errors.h"
#include "sdk/base/limits.h"
#include "sdk/queue/consumer_runtime.h"

namespace baton::client {
namespace {

Status check(const ConsumerOptions& options, const Consumer::Handler& handler) {
  if (options.queue.empty()) return Error{Errc::invalid_argument, "the queue has no name"};
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
Consumer::~Consumer() = default;

Result<std::unique_ptr<Consumer>> Consumer::start(ConsumerOptions options, Handler handler) {
  BATON_TRY_STATUS(check(options, handler));
  BATON_TRY(const auto channel, make_channel(options.connection));
  auto runtime = std::make_unique<ConsumerRuntime>(std::move(options), std::move(handler), channel);
  return std::unique_ptr<Consumer>(new Consumer(std::move(runtime)));
}

Status Consumer::stop(std::chrono::milliseconds timeout) { return runtime_->stop(timeout); }
std::optional<Status> Consumer::wait(std::chrono::milliseconds timeout) {
  return runtime_->wait(timeout);
}
Consumer::Stats Consumer::stats() const { return runtime_->stats(); }
SessionLease Consumer::lease() const { return runtime_->lease(); }

}  // namespace baton::client
