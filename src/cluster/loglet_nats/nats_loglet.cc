#include "cluster/loglet_nats/nats_loglet.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <nats/nats.h>
#include <nlohmann/json.hpp>

#include "cluster/loglet_nats/log_stream.h"
#include "worker/nats/nats_handles.h"
#include "worker/nats/nats_link.h"

namespace baton::loglet {
namespace {

using std::chrono::milliseconds;

constexpr int kReadEntriesMax = 64;
constexpr int kReadBytesMax = 8 << 20;
// For a header of ours, and what servers add when they pass a message on.
constexpr std::size_t kOverheadBytes = 4096;
constexpr std::int64_t kWriteDeadlineMs = 2'000;
constexpr std::int64_t kPingMs = 1'000;
constexpr int kPingsUnanswered = 2;
constexpr std::int64_t kReceiveMs = 50;
constexpr milliseconds kDialPause{100};
// JetStream's codes.
constexpr int kWrongLastSequence = 10'071;
constexpr int kWrongLastSequenceConstant = 10'164;
constexpr int kNoStorage = 10'047;
constexpr int kNoResources = 10'023;
constexpr int kStoreFailed = 10'077;

/// A connection with the inbox that its answers come to. Closed with its last user.
class Connection {
 public:
  static Result<std::shared_ptr<Connection>> dial(const NatsLogletOptions& options,
                                                  const std::string& address);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() {
    close();
    // The reading thread has ended with close().
    natsSubscription_Destroy(answers_);
  }

  /// Wakes everybody who waits for this connection.
  void close() { natsConnection_Close(connection_.get()); }
  /// `answer_to` is what comes behind the inbox, as "a.17".
  natsStatus send(const std::string& subject, const std::string& answer_to, std::string_view bytes,
                  std::optional<std::uint64_t> expected);
  /// nullptr if nothing came; `broken` if nothing ever will.
  coord::NatsMessage receive(bool& broken);
  [[nodiscard]] std::size_t inbox_bytes() const { return inbox_.size(); }
  [[nodiscard]] std::int64_t payload_max() {
    return natsConnection_GetMaxPayload(connection_.get());
  }

 private:
  Connection() = default;

  coord::NatsConnection connection_;
  natsSubscription* answers_ = nullptr;
  std::string inbox_;
};

Result<coord::NatsOptions> make_options(const NatsLogletOptions& options,
                                        const std::string& address) {
  natsOptions* raw = nullptr;
  natsStatus status = natsOptions_Create(&raw);
  coord::NatsOptions made(raw);
  const std::string url = fmt::format("nats://{}", address);
  const auto then = [&status](natsStatus next) {
    if (status == NATS_OK) status = next;
  };
  const auto timeout = std::chrono::duration_cast<milliseconds>(options.connect_timeout).count();
  if (status == NATS_OK) {
    then(natsOptions_SetURL(raw, url.c_str()));
    then(natsOptions_SetName(raw, "baton-log"));
    then(natsOptions_SetTimeout(raw, timeout));
    // What libnats keeps for a later connection would be sent when nobody expects it any more.
    then(natsOptions_SetAllowReconnect(raw, false));
    then(natsOptions_SetSendAsap(raw, true));
    then(natsOptions_SetWriteDeadline(raw, kWriteDeadlineMs));
    then(natsOptions_SetPingInterval(raw, kPingMs));
    then(natsOptions_SetMaxPingsOut(raw, kPingsUnanswered));
    then(coord::set_nats_security(raw, options.security));
  }
  if (status != NATS_OK) return coord::nats_error(coord::nats_outcome(status), "NATS");
  return made;
}

Result<std::shared_ptr<Connection>> Connection::dial(const NatsLogletOptions& options,
                                                     const std::string& address) {
  BATON_TRY(const coord::NatsOptions made, make_options(options, address));
  std::shared_ptr<Connection> dialled(new Connection);
  natsConnection* connection = nullptr;
  natsStatus status = natsConnection_Connect(&connection, made.get());
  dialled->connection_.reset(connection);
  natsInbox* inbox = nullptr;
  if (status == NATS_OK) status = natsInbox_Create(&inbox);
  if (status == NATS_OK) {
    dialled->inbox_ = fmt::format("{}.", inbox);
    natsInbox_Destroy(inbox);
    status = natsConnection_SubscribeSync(&dialled->answers_, connection,
                                          (dialled->inbox_ + ">").c_str());
  }
  // What may come is bounded by what is asked for.
  if (status == NATS_OK) status = natsSubscription_SetPendingLimits(dialled->answers_, -1, -1);
  if (status == NATS_OK) return dialled;
  return coord::nats_error(coord::nats_outcome(status), fmt::format("NATS at {}", address));
}

natsStatus Connection::send(const std::string& subject, const std::string& answer_to,
                            std::string_view bytes, std::optional<std::uint64_t> expected) {
  natsMsg* raw = nullptr;
  natsStatus status = natsMsg_Create(&raw, subject.c_str(), (inbox_ + answer_to).c_str(),
                                     bytes.data(), static_cast<int>(bytes.size()));
  const coord::NatsMessage message(raw);
  if (status == NATS_OK && expected.has_value()) {
    status =
        natsMsgHeader_Set(raw, "Nats-Expected-Last-Sequence", std::to_string(*expected).c_str());
  }
  if (status == NATS_OK) status = natsConnection_PublishMsg(connection_.get(), raw);
  return status;
}

coord::NatsMessage Connection::receive(bool& broken) {
  natsMsg* raw = nullptr;
  const natsStatus status = natsSubscription_NextMsg(&raw, answers_, kReceiveMs);
  broken = status != NATS_OK && status != NATS_TIMEOUT;
  return coord::NatsMessage(raw);
}

std::string_view data_of(natsMsg* message) {
  const int size = natsMsg_GetDataLength(message);
  if (size <= 0) return {};
  return {natsMsg_GetData(message), static_cast<std::size_t>(size)};
}

std::string_view header_of(natsMsg* message, const char* name) {
  const char* value = nullptr;
  return natsMsgHeader_Get(message, name, &value) == NATS_OK ? value : "";
}

std::uint64_t number_in(std::string_view text) {
  std::uint64_t number = 0;
  std::from_chars(text.begin(), text.end(), number);
  return number;
}

/// The answer to an append.
Loglet::Answer append_answer(natsMsg* message, std::uint64_t request) {
  using enum Loglet::Answer::Kind;
  Loglet::Answer answer{.kind = unable, .request = request};
  if (natsMsg_IsNoResponders(message)) {
    answer.error = {Errc::unavailable, "nobody takes entries: the log has no leader just now"};
    return answer;
  }
  const auto body = nlohmann::json::parse(data_of(message), nullptr, false);
  const auto error = body.is_object() ? body.find("error") : body.end();
  if (body.is_object() && error == body.end() && body.contains("seq")) {
    answer.kind = stored;
    answer.sequence = body.value("seq", std::uint64_t{0});
    return answer;
  }
  if (!body.is_object() || error == body.end() || !error->is_object()) {
    answer.error = {Errc::unavailable, "an answer that is none of JetStream's"};
    return answer;
  }
  const int code = error->value("err_code", 0);
  if (code == kWrongLastSequence || code == kWrongLastSequenceConstant) answer.kind = refused;
  const bool full = code == kNoStorage || code == kNoResources || code == kStoreFailed;
  answer.error = {
      full ? Errc::disk_full : Errc::unavailable,
      fmt::format("{} (JetStream error {})", error->value("description", "it failed"), code)};
  return answer;
}

/// One thread dials, and receives what comes. Requests are sent by their caller's thread.
class NatsLoglet final : public Loglet {
 public:
  explicit NatsLoglet(NatsLogletOptions options)
      : options_(std::move(options)), subject_(log_subject(options_.stream)) {}
  NatsLoglet(const NatsLoglet&) = delete;
  NatsLoglet& operator=(const NatsLoglet&) = delete;
  ~NatsLoglet() override {
    stopping_ = true;
    if (const auto connection = current()) connection->close();
    if (thread_.joinable()) thread_.join();
  }

  Status open(Duration patience) {
    const auto until = std::chrono::steady_clock::now() + patience;
    while (true) {
      const Status dialled = dial();
      if (dialled.has_value()) break;
      if (std::chrono::steady_clock::now() >= until) return dialled;
      std::this_thread::sleep_for(kDialPause);
    }
    thread_ = std::thread([this] { run(); });
    return {};
  }

  [[nodiscard]] std::size_t entry_bytes_max() const override { return entry_bytes_max_; }
  void append(std::uint64_t request, std::string_view bytes,
              std::optional<std::uint64_t> expected) override {
    send(subject_, fmt::format("a.{}", request), bytes, expected);
  }
  void read(std::uint64_t request, std::uint64_t after) override {
    {
      const std::scoped_lock lock(mutex_);
      read_ = {.kind = Answer::Kind::entries, .request = request};
    }
    // libnats of Debian 12 knows no batches.
    send("$JS.API.DIRECT.GET." + options_.stream, fmt::format("r.{}", request),
         fmt::format(R"({{"seq":{},"batch":{},"max_bytes":{}}})", after + 1, kReadEntriesMax,
                     kReadBytesMax),
         std::nullopt);
  }
  void trim(std::uint64_t request, std::uint64_t before) override {
    send("$JS.API.STREAM.PURGE." + options_.stream, fmt::format("t.{}", request),
         fmt::format(R"({{"seq":{}}})", before), std::nullopt);
  }
  void redial() override { redial_ = true; }
  std::vector<Answer> take_answers() override {
    const std::scoped_lock lock(mutex_);
    return std::exchange(answers_, {});
  }
  void set_wake(std::function<void()> wake) override {
    const std::scoped_lock lock(mutex_);
    wake_ = std::move(wake);
  }

 private:
  std::shared_ptr<Connection> current() {
    const std::scoped_lock lock(mutex_);
    return connection_;
  }

  void send(const std::string& subject, const std::string& answer_to, std::string_view bytes,
            std::optional<std::uint64_t> expected) {
    const auto connection = current();
    // After a failure nobody knows how much of the request was sent: nothing may follow it.
    if (connection != nullptr && connection->send(subject, answer_to, bytes, expected) != NATS_OK) {
      redial_ = true;
    }
  }

  /// Dials the addresses, one after the other, beginning with the next one.
  Status dial() {
    Status failed;
    for (std::size_t i = 0; i < options_.addresses.size(); ++i) {
      const std::string& address = options_.addresses[next_++ % options_.addresses.size()];
      auto dialled = Connection::dial(options_, address);
      if (stopping_) return Error{Errc::cancelled, "the log is closed"};
      if (!dialled.has_value()) {
        failed = dialled.error();
        continue;
      }
      if (entry_bytes_max_ == 0) {
        const auto most = static_cast<std::size_t>(std::max<std::int64_t>(
            (*dialled)->payload_max(), static_cast<std::int64_t>(2 * kOverheadBytes)));
        entry_bytes_max_ = std::min(kEntryBytesMax, most - kOverheadBytes);
      }
      redial_ = false;
      const std::scoped_lock lock(mutex_);
      connection_ = *std::move(dialled);
      read_ = {};
      return {};
    }
    return failed;
  }

  void run() {
    std::shared_ptr<Connection> connection = current();
    while (!stopping_) {
      bool broken = false;
      if (const coord::NatsMessage message = connection->receive(broken); message != nullptr) {
        take(message.get(), connection->inbox_bytes());
      }
      if (!broken && !redial_) continue;
      connection->close();
      while (!stopping_ && !dial().has_value()) std::this_thread::sleep_for(kDialPause);
      connection = current();
      if (!stopping_) tell({.kind = Answer::Kind::connected});
    }
  }

  void take(natsMsg* message, std::size_t inbox_bytes) {
    const std::string_view subject = natsMsg_GetSubject(message);
    if (subject.size() < inbox_bytes + 3) return;
    const char what = subject[inbox_bytes];
    const std::uint64_t request = number_in(subject.substr(inbox_bytes + 2));
    if (what == 'a') return tell(append_answer(message, request));
    if (what == 'r') return take_entry(message, request);
    const auto body = nlohmann::json::parse(data_of(message), nullptr, false);
    if (body.is_object() && body.value("success", false)) {
      tell({.kind = Answer::Kind::trimmed, .request = request});
    }
  }

  /// A read is answered by a message for each entry, and one without an entry at the end. If there
  /// are none, the only message says so by its status.
  void take_entry(natsMsg* message, std::uint64_t request) {
    const std::string_view status = header_of(message, "Status");
    Answer whole;
    {
      const std::scoped_lock lock(mutex_);
      if (read_.request != request || request == 0) return;
      if (status.empty()) {
        read_.entries.push_back({.sequence = number_in(header_of(message, "Nats-Sequence")),
                                 .bytes = std::string(data_of(message))});
        return;
      }
      // 204: the end of a batch; 404: no entry there. Otherwise no copy could answer.
      if (status != "204" && status != "404") return;
      whole = std::exchange(read_, {});
    }
    tell(std::move(whole));
  }

  void tell(Answer answer) {
    std::function<void()> wake;
    {
      const std::scoped_lock lock(mutex_);
      answers_.push_back(std::move(answer));
      wake = wake_;
    }
    if (wake != nullptr) wake();
  }

  const NatsLogletOptions options_;
  const std::string subject_;
  std::size_t next_ = 0;             // The address to be dialled next.
  std::size_t entry_bytes_max_ = 0;  // Of the first connection; all servers have one setting.
  std::atomic<bool> stopping_ = false;
  std::atomic<bool> redial_ = false;

  std::mutex mutex_;
  std::shared_ptr<Connection> connection_;
  Answer read_;  // The read under way, and what has come of it.
  std::vector<Answer> answers_;
  std::function<void()> wake_;
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<Loglet>> open_nats_loglet(NatsLogletOptions options, Duration patience) {
  if (options.addresses.empty()) {
    return Error{Errc::invalid_argument, "no address of a NATS server is given"};
  }
  auto loglet = std::make_unique<NatsLoglet>(std::move(options));
  BATON_TRY_STATUS(loglet->open(patience));
  return loglet;
}

}  // namespace baton::loglet
