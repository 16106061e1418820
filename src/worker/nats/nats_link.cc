#include "worker/nats/nats_link.h"

#include <algorithm>
#include <array>
#include <climits>
#include <cstdlib>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/address.h"
#include "worker/stores/limits.h"

namespace baton::coord {
namespace {

constexpr int kMessageTooLarge = 10'054;
constexpr int kUnavailable = 10'008;  // The JetStream system has no leader just now.
constexpr std::int64_t kConnectMaxMs = 2'000;
constexpr std::int64_t kReconnectWaitMs = 50;
constexpr std::int64_t kReconnectJitterMs = 50;
// A server that vanished without closing its connections is noticed after two unanswered pings.
constexpr std::int64_t kPingIntervalMs = 1'000;
constexpr int kPingsUnanswered = 2;
constexpr std::int64_t kRetireWaitMs = 250;
constexpr std::chrono::milliseconds kReopenMin{500};

// The first call that fails decides; libnats has no other way to say it.
template <class... Statuses>
natsStatus first_failure(Statuses... statuses) {
  natsStatus found = NATS_OK;
  ((found = found == NATS_OK ? statuses : found), ...);
  return found;
}

natsStatus set_tls(natsOptions* options, const client::TlsOptions& tls) {
  natsStatus status = natsOptions_SetSecure(options, true);
  const auto then = [&status](bool wanted, auto call) {
    if (status == NATS_OK && wanted) status = call();
  };
  then(!tls.ca_file.empty(),
       [&] { return natsOptions_LoadCATrustedCertificates(options, tls.ca_file.c_str()); });
  then(!tls.certificate_file.empty(), [&] {
    return natsOptions_LoadCertificatesChain(options, tls.certificate_file.c_str(),
                                             tls.key_file.c_str());
  });
  then(!tls.server_name.empty(),
       [&] { return natsOptions_SetExpectedHostname(options, tls.server_name.c_str()); });
  return status;
}

/// Discarded when it is not JSON.
nlohmann::json answer_of(natsMsg* reply) {
  const char* data = natsMsg_GetData(reply);
  return nlohmann::json::parse(data, data + natsMsg_GetDataLength(reply), nullptr, false);
}

bool is_temporary(const nlohmann::json& answer) {
  const auto error = answer.find("error");
  return error != answer.end() && error->is_object() && error->value("err_code", 0) == kUnavailable;
}

}  // namespace

natsStatus set_nats_security(natsOptions* options, const client::SecurityOptions& security) {
  natsStatus status = security.tls ? set_tls(options, *security.tls) : NATS_OK;
  if (status == NATS_OK && !security.user.empty()) {
    status = natsOptions_SetUserInfo(options, security.user.c_str(), security.password.c_str());
  }
  if (status == NATS_OK && !security.token.empty()) {
    status = natsOptions_SetToken(options, security.token.c_str());
  }
  if (status == NATS_OK && !security.credentials_file.empty()) {
    status = natsOptions_SetUserCredentialsFromFiles(options, security.credentials_file.c_str(),
                                                     nullptr);
  }
  return status;
}

NatsOutcome nats_outcome(natsStatus status, int code) {
  NatsOutcome outcome{.status = status, .code = code};
  if (status == NATS_OK) return outcome;
  natsStatus last = NATS_OK;
  const char* text = nats_GetLastError(&last);
  // The text of an earlier failure stays until the next one.
  outcome.text =
      last == status && text != nullptr && *text != '\0' ? text : natsStatus_GetText(status);
  return outcome;
}

Error nats_error(const NatsOutcome& outcome, std::string_view doing) {
  std::string text = fmt::format("{}: {}", doing, outcome.text);
  if (outcome.code != 0) text += fmt::format(" (JetStream error {})", outcome.code);
  switch (outcome.status) {
    case NATS_TIMEOUT: return {Errc::deadline_exceeded, std::move(text)};
    case NATS_MAX_PAYLOAD: return {Errc::invalid_argument, std::move(text)};
    default:
      return {outcome.code == kMessageTooLarge ? Errc::invalid_argument : Errc::unavailable,
              std::move(text)};
  }
}

Result<NatsOptions> NatsLink::make_options(const Deadline& deadline, void* closure) const {
  natsOptions* raw = nullptr;
  natsStatus status = natsOptions_Create(&raw);
  NatsOptions options(raw);
  if (status != NATS_OK) return nats_error(nats_outcome(status), "NATS");
  std::vector<std::string> urls;
  urls.reserve(addresses_.size());
  for (const std::string& address : addresses_) urls.push_back(fmt::format("nats://{}", address));
  std::vector<const char*> pointers;
  pointers.reserve(urls.size());
  for (const std::string& url : urls) pointers.push_back(url.c_str());
  // Each server gets its share of the time; not more than a little, since reconnecting goes by it.
  const auto share = std::clamp<std::int64_t>(
      deadline.left().count() / static_cast<std::int64_t>(addresses_.size()), 1, kConnectMaxMs);
  status = first_failure(
      natsOptions_SetServers(raw, pointers.data(), static_cast<int>(pointers.size())),
      natsOptions_SetName(raw, "baton"), natsOptions_SetTimeout(raw, share),
      natsOptions_SetMaxReconnect(raw, INT_MAX),
      natsOptions_SetReconnectWait(raw, kReconnectWaitMs),
      natsOptions_SetReconnectJitter(raw, kReconnectJitterMs, kReconnectJitterMs),
      // The least there is: what is not sent now must not be sent later.
      natsOptions_SetReconnectBufSize(raw, 1), natsOptions_SetFailRequestsOnDisconnect(raw, true),
      natsOptions_SetPingInterval(raw, kPingIntervalMs),
      natsOptions_SetMaxPingsOut(raw, kPingsUnanswered),
      natsOptions_SetDisconnectedCB(raw, &NatsLink::on_disconnected, closure),
      natsOptions_SetReconnectedCB(raw, &NatsLink::on_reconnected, closure),
      natsOptions_SetClosedCB(raw, &NatsLink::on_closed, closure),
      set_nats_security(raw, security_));
  if (status != NATS_OK) return nats_error(nats_outcome(status), "NATS");
  return options;
}

Result<std::shared_ptr<NatsLink>> NatsLink::connect(const std::vector<std::string>& addresses,
                                                    const Deadline& deadline,
                                                    const client::SecurityOptions& security) {
  std::shared_ptr<NatsLink> link(new NatsLink(addresses, security));
  BATON_TRY_STATUS(link->open(deadline));
  return link;
}

Status NatsLink::open(const Deadline& deadline) {
  // Released by on_closed(), the last of the callbacks.
  auto closure = std::make_unique<std::shared_ptr<Shared>>(shared_);
  BATON_TRY(const NatsOptions options, make_options(deadline, closure.get()));
  natsConnection* connection = nullptr;
  const natsStatus connected = natsConnection_Connect(&connection, options.get());
  if (connected != NATS_OK) return refusal(connected);
  (void)closure.release();  // NOLINT(bugprone-unused-return-value): libnats has the pointer.
  connections_.emplace_back(connection);
  jsCtx* jetstream = nullptr;
  const natsStatus status = natsConnection_JetStream(&jetstream, connection, nullptr);
  if (status != NATS_OK) return nats_error(nats_outcome(status), "JetStream");
  jetstreams_.emplace_back(jetstream);
  jetstream_.store(jetstream, std::memory_order_release);
  connection_.store(connection, std::memory_order_release);
  return {};
}

Status NatsLink::reopen(const Deadline& deadline) {
  const std::lock_guard lock(open_mutex_);
  if (natsConnection_Status(connection()) != NATS_CONN_STATUS_CLOSED) return {};
  // It will come back by itself with the same patience.
  const Status opened = open(Deadline(std::max<Duration>(deadline.left(), kReopenMin)));
  if (opened) return {};
  // What was right at the start may be right again, once the servers have their users back.
  return Error{Errc::unavailable, opened.error().text};
}

Error NatsLink::refusal(natsStatus status) const {
  const std::string place = fmt::format("NATS at {}", fmt::join(addresses_, ","));
  const std::string text = nats_outcome(status).text;
  switch (status) {
    case NATS_SECURE_CONNECTION_WANTED:
      return invalid_argument(
          fmt::format("{} speaks plain text: write nats://, and leave out --tls and the "
                      "TLS files",
                      place));
    case NATS_SECURE_CONNECTION_REQUIRED:
    case NATS_SSL_ERROR:
      // libnats speaks TLS by itself where the server wants it, but trusts the system's
      // authorities.
      return invalid_argument(
          security_.tls
              ? fmt::format("{}: the TLS handshake failed: {}", place, text)
              : fmt::format("{} speaks TLS: write natss://, or give --tls-ca FILE (tls.ca "
                            "in a pipeline's config): {}",
                            place, text));
    case NATS_CONNECTION_AUTH_FAILED:
    case NATS_NOT_PERMITTED:
      return invalid_argument(
          security_.has_login() ? fmt::format("{} refuses the login: {}", place, text)
                                : fmt::format("{} wants a login: give --user and --password-file, "
                                              "--token-file or --credentials",
                                              place));
    default: break;
  }
  // With TLS 1.3 a server refuses a certificate, or its absence, by closing after the handshake.
  if (security_.tls && text.find("Expected 'PONG', got ''") != std::string::npos) {
    const std::string& certificate = security_.tls->certificate_file;
    return invalid_argument(
        certificate.empty()
            ? fmt::format("{} closes the connection after the TLS handshake, as servers do "
                          "that want a client certificate: give --tls-cert and --tls-key "
                          "(tls.certificate and tls.key)",
                          place)
            : fmt::format("{} does not accept the certificate in {}", place, certificate));
  }
  return {Errc::unavailable, fmt::format("cannot reach {}: {}", place, text)};
}

NatsLink::~NatsLink() {
  for (const NatsConnection& one : connections_) {
    natsConnection_Close(one.get());  // Waits for the reading thread.
  }
  for (natsSubscription* subscription : retired_) natsSubscription_Destroy(subscription);
  jetstreams_.clear();
  connections_.clear();
}

void NatsLink::on_disconnected(natsConnection* /*connection*/, void* closure) {
  Shared& shared = **static_cast<std::shared_ptr<Shared>*>(closure);
  const std::lock_guard lock(shared.mutex);
  for (natsSubscription* subscription : shared.subscriptions) {
    natsSubscription_Unsubscribe(subscription);
  }
}

void NatsLink::on_reconnected(natsConnection* /*connection*/, void* closure) {
  Shared& shared = **static_cast<std::shared_ptr<Shared>*>(closure);
  const std::lock_guard lock(shared.mutex);
  shared.changed.notify_all();
}

void NatsLink::on_closed(natsConnection* /*connection*/, void* closure) {
  const std::unique_ptr<std::shared_ptr<Shared>> owned(
      static_cast<std::shared_ptr<Shared>*>(closure));
  const std::lock_guard lock((*owned)->mutex);
  (*owned)->changed.notify_all();
}

Status NatsLink::wait_until_connected(const Deadline& deadline) {
  while (true) {
    if (natsConnection_Status(connection()) == NATS_CONN_STATUS_CLOSED) {
      BATON_TRY_STATUS(reopen(deadline));
    }
    if (natsConnection_Status(connection()) == NATS_CONN_STATUS_CONNECTED) return {};
    if (deadline.has_passed()) {
      return Error{Errc::unavailable, "the connection to NATS is broken, and did not come back"};
    }
    std::unique_lock lock(shared_->mutex);
    // Looks again by itself: the callback may come late, or have come before this.
    shared_->changed.wait_for(lock, std::min(deadline.left(), limits::kRetryPause));
  }
}

Result<nlohmann::json> NatsLink::api(const std::string& subject, const std::string& body,
                                     const Deadline& deadline) {
  bool found_nobody = false;
  while (true) {
    BATON_TRY_STATUS(wait_until_connected(deadline));
    count_request();
    natsMsg* raw = nullptr;
    const natsStatus status =
        natsConnection_Request(&raw, connection(), subject.c_str(), body.data(),
                               static_cast<int>(body.size()), deadline.left().count() + 1);
    const NatsMessage reply(raw);
    found_nobody |= status == NATS_NO_RESPONDERS;
    if (status == NATS_OK) {
      auto answer = answer_of(raw);
      if (!answer.is_object()) {
        return Error{Errc::unavailable, fmt::format("{}: an answer that is not JSON", subject)};
      }
      if (!is_temporary(answer) || deadline.has_passed()) return answer;
    } else if (status != NATS_NO_RESPONDERS || deadline.has_passed()) {
      if (found_nobody) return no_jetstream();
      return nats_error(nats_outcome(status), subject);
    }
    std::this_thread::sleep_for(limits::kRetryPause);
  }
}

Error NatsLink::no_jetstream() {
  return {Errc::unavailable,
          fmt::format("JetStream is not enabled on the server at {}: nobody answers its requests "
                      "(nats-server needs -js)",
                      fmt::join(servers(), ","))};
}

std::vector<std::string> NatsLink::servers() {
  std::vector<std::string> found;
  const auto add = [&found](std::string_view url) {
    url = split_scheme(url).rest;
    if (!url.empty() && std::ranges::find(found, url) == found.end()) found.emplace_back(url);
  };
  std::array<char, 512> url{};
  if (natsConnection_GetConnectedUrl(connection(), url.data(), url.size()) == NATS_OK) {
    add(url.data());
  }
  char** servers = nullptr;
  int count = 0;
  if (natsConnection_GetServers(connection(), &servers, &count) == NATS_OK) {
    for (int i = 0; i < count; ++i) {
      add(servers[i]);
      std::free(servers[i]);  // NOLINT: libnats' way to give it away.
    }
    std::free(servers);  // NOLINT
  }
  return found;
}

void NatsLink::retire(natsSubscription* subscription) {
  natsSubscription_Unsubscribe(subscription);
  const std::lock_guard lock(retired_mutex_);
  retired_.push_back(subscription);
  // The answer to a ping comes through the reading thread: by then it is done with all of them.
  if (natsConnection_Status(connection()) != NATS_CONN_STATUS_CONNECTED ||
      natsConnection_FlushTimeout(connection(), kRetireWaitMs) != NATS_OK) {
    return;  // With one of the next, or with the connection.
  }
  for (natsSubscription* one : retired_) natsSubscription_Destroy(one);
  retired_.clear();
}

Result<NatsSubscription> nats_subscribe(const std::shared_ptr<NatsLink>& link,
                                        const std::string& subject, int messages_max,
                                        int bytes_max) {
  natsSubscription* raw = nullptr;
  natsStatus status = natsConnection_SubscribeSync(&raw, link->connection(), subject.c_str());
  NatsSubscription subscription(raw, NatsRetire{link});
  if (status == NATS_OK) {
    status = natsSubscription_SetPendingLimits(raw, messages_max, bytes_max);
  }
  if (status != NATS_OK) return nats_error(nats_outcome(status), "subscribing");
  return subscription;
}

void NatsLink::end_when_broken(natsSubscription* subscription) {
  const std::lock_guard lock(shared_->mutex);
  shared_->subscriptions.insert(subscription);
}

void NatsLink::forget(natsSubscription* subscription) {
  const std::lock_guard lock(shared_->mutex);
  shared_->subscriptions.erase(subscription);
}

}  // namespace baton::coord
