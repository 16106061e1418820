#include "pipeline/nats/nats_pull.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace baton::pipeline {
namespace {

using std::chrono::milliseconds;

// The server drops a request after this time, and says so.
constexpr milliseconds kExpires{5'000};
constexpr milliseconds kLate{2'000};
constexpr std::int64_t kBytesMax = std::int64_t{16} << 20U;

struct InboxDestroy {
  void operator()(natsInbox* inbox) const { natsInbox_Destroy(inbox); }
};

Error broken(std::string text) { return {Errc::unavailable, std::move(text)}; }

std::string_view header(natsMsg* message, const char* name) {
  const char* value = nullptr;
  if (natsMsgHeader_Get(message, name, &value) != NATS_OK || value == nullptr) return {};
  return value;
}

}  // namespace

Result<std::unique_ptr<NatsPull>> NatsPull::open(std::shared_ptr<NatsStream> stream,
                                                 const std::string& consumer) {
  std::unique_ptr<NatsPull> pull(new NatsPull(std::move(stream)));
  pull->request_subject_ =
      fmt::format("$JS.API.CONSUMER.MSG.NEXT.{}.{}", pull->stream_->name(), consumer);
  natsInbox* raw_inbox = nullptr;
  const natsStatus status = natsInbox_Create(&raw_inbox);
  if (status != NATS_OK) return coord::nats_error(coord::nats_outcome(status), "subscribing");
  const std::unique_ptr<natsInbox, InboxDestroy> inbox(raw_inbox);
  pull->inbox_ = raw_inbox;
  // No message is dropped because it was not read: there are never more than were asked for.
  BATON_TRY(pull->subscription_, coord::nats_subscribe(pull->stream_->link(), pull->inbox_ + ".*"));
  return pull;
}

Status NatsPull::ask(std::size_t messages) {
  if (open_ > 0) return {};
  // Bounded by bytes, too, but a single message must fit.
  const std::int64_t bytes =
      std::max(kBytesMax, 2 * natsConnection_GetMaxPayload(stream_->connection()));
  const std::string body = fmt::format(R"({{"batch":{},"expires":{},"max_bytes":{}}})", messages,
                                       std::chrono::nanoseconds(kExpires).count(), bytes);
  // A status of an earlier request must not be taken for an answer to this one.
  reply_ = fmt::format("{}.{}", inbox_, ++requests_);
  const natsStatus status =
      natsConnection_PublishRequest(stream_->connection(), request_subject_.c_str(), reply_.c_str(),
                                    body.data(), static_cast<int>(body.size()));
  if (status != NATS_OK) return coord::nats_error(coord::nats_outcome(status), "asking");
  open_ = messages;
  asked_at_ = std::chrono::steady_clock::now();
  return {};
}

bool NatsPull::is_overdue() const {
  return open_ > 0 && std::chrono::steady_clock::now() - asked_at_ > kExpires + kLate;
}

Result<std::vector<NatsPulled>> NatsPull::take(std::size_t messages, milliseconds time) {
  std::vector<NatsPulled> taken;
  while (taken.size() < messages) {
    natsMsg* raw = nullptr;
    const natsStatus status =
        natsSubscription_NextMsg(&raw, subscription_.get(), taken.empty() ? time.count() : 0);
    coord::NatsMessage message(raw);
    if (status == NATS_TIMEOUT) {
      if (taken.empty() && is_overdue()) return broken("a request is not answered");
      break;
    }
    if (status != NATS_OK) return coord::nats_error(coord::nats_outcome(status), "receiving");
    const std::size_t before = taken.size();
    BATON_TRY_STATUS(accept(std::move(message), taken));
    if (taken.size() == before) break;  // The request has ended.
  }
  return taken;
}

Status NatsPull::accept(coord::NatsMessage message, std::vector<NatsPulled>& taken) {
  const char* reply = natsMsg_GetReply(message.get());
  if (reply == nullptr || *reply == '\0') return judge(message.get());
  const auto delivery = parse_nats_delivery(reply);
  if (!delivery.has_value()) return broken(fmt::format("a delivery with reply subject {}", reply));
  if (delivery->consumer_sequence != expected_ || delivery->deliveries != 1) {
    return broken(fmt::format("delivery {} instead of {}", delivery->consumer_sequence, expected_));
  }
  ++expected_;
  if (open_ > 0) --open_;
  taken.push_back({*delivery, std::move(message)});
  return {};
}

/// A status of the server about a request, instead of messages.
Status NatsPull::judge(natsMsg* status_message) {
  const std::string_view status = header(status_message, "Status");
  if (status == "100" || natsMsg_GetSubject(status_message) != reply_) return {};
  open_ = 0;
  if (status == "404" || status == "408") return {};
  const std::string_view text = header(status_message, "Description");
  // The request has got all its messages, or was one too many: another request is enough.
  const bool is_harmless = text.starts_with("Batch Completed") ||
                           text.starts_with("Message Size") || text.starts_with("Exceeded");
  if (status == "409" && is_harmless) return {};
  return broken(fmt::format("the server answers {} {}", status, text));
}

}  // namespace baton::pipeline
