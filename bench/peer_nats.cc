// One measurement of a running NATS JetStream, printed as one JSON object: as a queue (work-queue
// retention, one durable consumer with explicit acks, pulled or pushed) and as a stream (appended,
// then read by an ordered consumer). nats.c, NATS's own C library. See peer_load.h for the command
// line; bench/harness.py starts the server.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nats/nats.h>

#include "peer_load.h"

namespace {

using peer::die;
using peer::Options;

constexpr const char* kStream = "bench";
constexpr const char* kSubject = "bench";
constexpr const char* kWorkers = "workers";
constexpr const char* kDeliverTo = "bench-deliver";
// As long as Baton's own load waits for a batch; after this long a consumer checks whether all is
// done.
constexpr std::int64_t kWaitMs = 50;
constexpr std::int64_t kPatienceMs = 120'000;

void check(natsStatus status, std::string_view what) {
  if (status == NATS_OK) return;
  const char* more = nats_GetLastError(nullptr);
  die(fmt::format("{}: {} {}", what, natsStatus_GetText(status), more != nullptr ? more : ""));
}

template <auto Function>
struct Destroy {
  template <class T>
  void operator()(T* object) const {
    Function(object);
  }
};
using Subscription = std::unique_ptr<natsSubscription, Destroy<natsSubscription_Destroy>>;
using Message = std::unique_ptr<natsMsg, Destroy<natsMsg_Destroy>>;
using StreamInfo = std::unique_ptr<jsStreamInfo, Destroy<jsStreamInfo_Destroy>>;
using ConsumerInfo = std::unique_ptr<jsConsumerInfo, Destroy<jsConsumerInfo_Destroy>>;

void refused(jsCtx*, jsPubAckErr* error, void*) { die(fmt::format("refused: {}", error->ErrText)); }

/// A connection with its JetStream context. The library has its own threads; one of ours uses this.
class Connection {
 public:
  explicit Connection(const Options& options) {
    natsOptions* wanted = nullptr;
    check(natsOptions_Create(&wanted), "options");
    check(natsOptions_SetURL(wanted, ("nats://" + options.address).c_str()), "address");
    // By default a thread gathers writes, which is right for a rate and delays a lone message.
    check(natsOptions_SetSendAsap(wanted, options.mode == "latency"), "options");
    natsConnection* raw = nullptr;
    check(natsConnection_Connect(&raw, wanted), "connect");
    natsOptions_Destroy(wanted);
    connection_.reset(raw);

    jsOptions jet{};
    check(jsOptions_Init(&jet), "options");
    jet.PublishAsync.MaxPending = static_cast<std::int64_t>(options.window);
    jet.PublishAsync.StallWait = kPatienceMs;
    jet.PublishAsync.ErrHandler = refused;
    jsCtx* context = nullptr;
    check(natsConnection_JetStream(&context, raw, &jet), "JetStream");
    context_.reset(context);
  }

  jsCtx* js() const { return context_.get(); }
  void flush() const { check(natsConnection_Flush(connection_.get()), "flush"); }

 private:
  std::unique_ptr<natsConnection, Destroy<natsConnection_Destroy>> connection_;
  std::unique_ptr<jsCtx, Destroy<jsCtx_Destroy>> context_;
};

void make_stream(const Connection& connection, jsRetentionPolicy retention) {
  static_cast<void>(js_DeleteStream(connection.js(), kStream, nullptr, nullptr));
  jsStreamConfig config{};
  check(jsStreamConfig_Init(&config), "stream");
  std::vector<const char*> subjects{kSubject};
  config.Name = kStream;
  config.Subjects = subjects.data();
  config.SubjectsLen = 1;
  config.Retention = retention;
  config.Storage = js_FileStorage;
  check(js_AddStream(nullptr, connection.js(), &config, nullptr, nullptr), "create the stream");
}

/// The one durable consumer that all our consumers share.
void make_consumer(const Connection& connection, const Options& options) {
  jsConsumerConfig config{};
  check(jsConsumerConfig_Init(&config), "consumer");
  config.Durable = kWorkers;
  config.AckPolicy = js_AckExplicit;
  config.MaxAckPending = static_cast<std::int64_t>(options.in_flight * options.consumers);
  if (options.delivery == "push") {
    config.DeliverSubject = kDeliverTo;
    config.DeliverGroup = kWorkers;
  }
  check(js_AddConsumer(nullptr, connection.js(), kStream, &config, nullptr, nullptr), "consumer");
}

jsStreamState stream_state(const Connection& connection) {
  jsStreamInfo* raw = nullptr;
  check(js_GetStreamInfo(&raw, connection.js(), kStream, nullptr, nullptr), "stream info");
  return StreamInfo(raw)->State;
}

void check_stored(const Connection& connection, std::uint64_t count) {
  const std::uint64_t stored = stream_state(connection).LastSeq;
  if (stored != count) die(fmt::format("stored {} of {}", stored, count));
}

void publish(const Connection& connection, std::string_view payload) {
  check(js_PublishAsync(connection.js(), kSubject, payload.data(), static_cast<int>(payload.size()),
                        nullptr),
        "publish");
}

void await_confirmations(const Connection& connection) {
  jsPubOptions options{};
  check(jsPubOptions_Init(&options), "options");
  options.MaxWait = kPatienceMs;
  check(js_PublishAsyncComplete(connection.js(), &options), "confirmations");
}

void produce(const Connection& connection, const Options& options, std::size_t number) {
  const std::string payload(options.size, 'x');
  const std::uint64_t count = peer::share(options.count, options.producers, number);
  for (std::uint64_t i = 0; i < count; ++i) publish(connection, payload);
  await_confirmations(connection);
}

/// Takes messages from the durable consumer and acknowledges each. An ack is one small message
/// without an answer: AckSync would wait a round trip for each, so finish() confirms them together.
class Consumer {
 public:
  Consumer(const Options& options, std::size_t number)
      : connection_(options),
        push_(options.delivery == "push"),
        // A fetch waits until it is full, so a lone message wants a fetch of one.
        fetch_(options.mode == "latency" ? 1 : options.fetch),
        share_(peer::share(options.count, options.consumers, number)) {
    jsSubOptions wanted{};
    check(jsSubOptions_Init(&wanted), "subscribe");
    wanted.Stream = kStream;
    wanted.Consumer = kWorkers;
    wanted.ManualAck = true;
    natsSubscription* raw = nullptr;
    if (push_) {
      wanted.Queue = kWorkers;
      check(js_SubscribeSync(&raw, connection_.js(), kSubject, nullptr, &wanted, nullptr),
            "subscribe");
    } else {
      check(js_PullSubscribe(&raw, connection_.js(), kSubject, kWorkers, nullptr, &wanted, nullptr),
            "subscribe");
    }
    subscription_.reset(raw);
  }

  /// Passes every message's payload to `use` and returns how many there were; 0 when the wait for
  /// them ended.
  template <class Use>
  std::size_t receive(const Use& use) {
    return push_ ? next(use) : fetch(use);
  }

  /// Whether a pulling consumer has its share. The server alone decides who gets what it pushes.
  bool sated() const { return !push_ && share_ == 0; }

  /// Waits until the server counts no message as delivered and not acknowledged.
  void finish() {
    connection_.flush();
    const auto deadline = peer::Clock::now() + std::chrono::milliseconds{kPatienceMs};
    while (ack_pending() > 0) {
      if (peer::Clock::now() > deadline) die("acknowledgements are missing");
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
  }

 private:
  template <class Use>
  std::size_t next(const Use& use) {
    natsMsg* raw = nullptr;
    const natsStatus status = natsSubscription_NextMsg(&raw, subscription_.get(), kWaitMs);
    if (status == NATS_TIMEOUT) return 0;
    check(status, "next message");
    const Message message(raw);
    take(raw, use);
    return 1;
  }

  /// Asks for a batch and waits until it is full. Never asks for more than this consumer's share: a
  /// fetch that ends before it is full leaves its request behind, and when messages answer that
  /// request later, version 3.4 of the library writes past the end of the next list.
  template <class Use>
  std::size_t fetch(const Use& use) {
    jsFetchRequest request{};
    check(jsFetchRequest_Init(&request), "fetch");
    request.Batch = static_cast<int>(std::min(fetch_, share_));
    request.Expires = kPatienceMs * 1'000'000;
    natsMsgList list{};
    check(natsSubscription_FetchRequest(&list, subscription_.get(), &request), "fetch");
    const auto count = static_cast<std::size_t>(list.Count);
    for (std::size_t i = 0; i < count; ++i) take(list.Msgs[i], use);
    natsMsgList_Destroy(&list);
    share_ -= count;
    return count;
  }

  template <class Use>
  void take(natsMsg* message, const Use& use) {
    use(std::string_view(natsMsg_GetData(message),
                         static_cast<std::size_t>(natsMsg_GetDataLength(message))));
    check(natsMsg_Ack(message, nullptr), "ack");
  }

  std::int64_t ack_pending() {
    jsConsumerInfo* raw = nullptr;
    check(js_GetConsumerInfo(&raw, connection_.js(), kStream, kWorkers, nullptr, nullptr),
          "consumer info");
    return ConsumerInfo(raw)->NumAckPending;
  }

  Connection connection_;
  bool push_;
  std::uint64_t fetch_;
  std::uint64_t share_;  // What a pulling consumer still has to ask for.
  Subscription subscription_;
};

void consume(const Options& options, std::size_t number, std::atomic<std::uint64_t>& received) {
  Consumer consumer(options, number);
  while (received < options.count && !consumer.sated()) {
    received += consumer.receive([](std::string_view) {});
  }
  // Asking for the pending count costs the server time that the other consumers still need.
  while (received < options.count) std::this_thread::sleep_for(std::chrono::milliseconds{1});
  consumer.finish();
}

void run_through(const Options& options) {
  peer::run_through(
      options,
      [&](std::size_t number) {
        const Connection connection(options);
        produce(connection, options, number);
      },
      [&](std::size_t number, std::atomic<std::uint64_t>& received) {
        consume(options, number, received);
      });
}

void run_latency(const Options& options) {
  std::vector<double> micros;
  micros.reserve(options.count);
  std::thread consuming([&] {
    Consumer consumer(options, 0);
    while (micros.size() < options.count) {
      consumer.receive(
          [&](std::string_view payload) { micros.push_back(peer::micros_since_stamp(payload)); });
    }
    consumer.finish();
  });
  const Connection producer(options);
  peer::Pace pace(options);
  for (std::uint64_t i = 0; i < options.count; ++i, pace.advance()) {
    std::this_thread::sleep_until(pace.due());
    publish(producer, peer::stamped(options.size));
  }
  await_confirmations(producer);
  consuming.join();
  peer::print_latency(std::move(micros), options.count);
}

/// Each message is stored once, acknowledged once, and therefore gone.
void run_queue(const Options& options) {
  const Connection connection(options);
  make_stream(connection, js_WorkQueuePolicy);
  make_consumer(connection, options);
  if (options.mode == "latency") {
    run_latency(options);
  } else {
    run_through(options);
  }
  check_stored(connection, options.count);
  if (const auto left = stream_state(connection).Msgs; left != 0) {
    die(fmt::format("{} messages are left", left));
  }
}

void run_append(const Options& options) {
  const Connection connection(options);
  make_stream(connection, js_LimitsPolicy);
  std::vector<std::unique_ptr<Connection>> producers;
  producers.reserve(options.producers);
  for (std::size_t i = 0; i < options.producers; ++i) {
    producers.push_back(std::make_unique<Connection>(options));
  }
  peer::run_through(options,
                    [&](std::size_t number) { produce(*producers[number], options, number); }, {});
  check_stored(connection, options.count);
}

/// Reads what run_append() left. An ordered consumer is the documented way to replay a stream: the
/// server pushes with flow control, nothing is acknowledged, and a gap would be noticed.
void run_read(const Options& options) {
  const Connection connection(options);
  check_stored(connection, options.count);
  peer::run_through(options, {}, [&](std::size_t, std::atomic<std::uint64_t>& received) {
    jsSubOptions wanted{};
    check(jsSubOptions_Init(&wanted), "subscribe");
    wanted.Stream = kStream;
    wanted.Ordered = true;
    natsSubscription* raw = nullptr;
    check(js_SubscribeSync(&raw, connection.js(), kSubject, nullptr, &wanted, nullptr),
          "subscribe");
    const Subscription subscription(raw);
    for (; received < options.count; ++received) {
      natsMsg* message = nullptr;
      check(natsSubscription_NextMsg(&message, raw, kPatienceMs), "next message");
      natsMsg_Destroy(message);
    }
  });
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = peer::parse(argc, argv);
  if (options.mode == "through" || options.mode == "latency") {
    run_queue(options);
  } else if (options.mode == "append") {
    run_append(options);
  } else if (options.mode == "read") {
    run_read(options);
  } else {
    die("unknown mode " + options.mode);
  }
  nats_Close();
  return 0;
}
