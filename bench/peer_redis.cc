// One measurement of a running Redis as a queue, printed as one JSON object: a stream with a
// consumer group, XADD / XREADGROUP / XACK + XDEL, everything pipelined. hiredis, Redis's own C
// library. See peer_load.h for the command line; bench/harness.py starts the servers.

#include <poll.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <hiredis/hiredis.h>

#include "peer_load.h"

namespace {

using peer::die;
using peer::Options;

constexpr std::string_view kStream = "bench";
constexpr std::string_view kGroup = "workers";
// As long as Baton's own load waits for a batch; after this long a consumer checks whether all is
// done.
constexpr std::string_view kBlockMs = "50";

struct FreeReply {
  void operator()(redisReply* reply) const { freeReplyObject(reply); }
};
using Reply = std::unique_ptr<redisReply, FreeReply>;

/// One connection with a pipeline: commands are appended, flushed, and their replies taken in
/// order. One thread owns it.
class Connection {
 public:
  explicit Connection(const std::string& address) {
    const std::size_t colon = address.rfind(':');
    context_.reset(
        redisConnect(address.substr(0, colon).c_str(), std::stoi(address.substr(colon + 1))));
    if (!context_ || context_->err != 0) die("cannot connect to " + address);
  }

  void append(const std::vector<std::string_view>& words) {
    words_.clear();
    lengths_.clear();
    for (const std::string_view word : words) {
      words_.push_back(word.data());
      lengths_.push_back(word.size());
    }
    check(redisAppendCommandArgv(context_.get(), static_cast<int>(words.size()), words_.data(),
                                 lengths_.data()));
    ++outstanding_;
  }

  void flush() {
    for (int done = 0; done == 0;) check(redisBufferWrite(context_.get(), &done));
  }

  /// The next reply; waits for it.
  Reply take() {
    void* raw = nullptr;
    check(redisGetReply(context_.get(), &raw));
    return checked(raw);
  }

  /// Takes the replies that come before `deadline`, so that a sender with a schedule need not wait.
  void take_until(peer::Clock::time_point deadline) {
    while (true) {
      const auto left = std::chrono::nanoseconds(deadline - peer::Clock::now()).count();
      const timespec wait{.tv_sec = 0, .tv_nsec = std::clamp<std::int64_t>(left, 0, 999'999'999)};
      pollfd readable{.fd = context_->fd, .events = POLLIN, .revents = 0};
      if (ppoll(&readable, 1, &wait, nullptr) > 0) {
        check(redisBufferRead(context_.get()));
        take_buffered();
      } else if (left <= 0) {
        return;
      }
    }
  }

  std::size_t outstanding() const { return outstanding_; }

 private:
  struct Close {
    void operator()(redisContext* context) const { redisFree(context); }
  };

  void take_buffered() {
    void* raw = nullptr;
    while (true) {
      check(redisGetReplyFromReader(context_.get(), &raw));
      if (raw == nullptr) return;
      checked(raw);
    }
  }

  Reply checked(void* raw) {
    Reply reply(static_cast<redisReply*>(raw));
    --outstanding_;
    if (reply->type == REDIS_REPLY_ERROR) die(reply->str);
    for (std::size_t i = 0; i < reply->elements; ++i) {  // What a transaction's commands answered.
      if (reply->element[i]->type == REDIS_REPLY_ERROR) die(reply->element[i]->str);
    }
    return reply;
  }

  void check(int status) const {
    if (status != REDIS_OK) die(context_->errstr);
  }

  std::unique_ptr<redisContext, Close> context_;
  std::vector<const char*> words_;
  std::vector<std::size_t> lengths_;
  std::size_t outstanding_ = 0;
};

/// An empty stream with its group, as before every round of Baton's load.
void make_queue(const Options& options) {
  Connection connection(options.address);
  connection.append({"DEL", kStream});
  connection.append({"XGROUP", "CREATE", kStream, kGroup, "$", "MKSTREAM"});
  connection.flush();
  while (connection.outstanding() > 0) connection.take();
}

void check_empty(const Options& options) {
  Connection connection(options.address);
  connection.append({"XLEN", kStream});
  connection.append({"XPENDING", kStream, kGroup});
  connection.flush();
  const Reply length = connection.take();
  const Reply pending = connection.take();
  if (length->integer != 0 || pending->element[0]->integer != 0) {
    die(fmt::format("{} messages and {} leases are left", length->integer,
                    pending->element[0]->integer));
  }
}

void append_message(Connection& connection, std::string_view payload) {
  connection.append({"XADD", kStream, "*", "p", payload});
}

void produce(const Options& options, std::size_t number) {
  Connection connection(options.address);
  const std::string payload(options.size, 'x');
  std::uint64_t left = peer::share(options.count, options.producers, number);
  while (left > 0) {
    const auto batch = std::min<std::uint64_t>(left, options.batch);
    while (connection.outstanding() + batch > options.window) connection.take();
    if (options.transactions) connection.append({"MULTI"});
    for (std::uint64_t i = 0; i < batch; ++i) append_message(connection, payload);
    if (options.transactions) connection.append({"EXEC"});
    connection.flush();
    left -= batch;
  }
  while (connection.outstanding() > 0) connection.take();
}

/// A member of the group. One write acknowledges and deletes the last messages and asks for more,
/// so that the next messages are on their way while these are confirmed.
class Consumer {
 public:
  Consumer(const Options& options, std::size_t number)
      : connection_(options.address),
        name_(fmt::format("consumer-{}", number)),
        count_(std::to_string(options.in_flight)) {
    ask();
  }

  /// Passes every message's payload to `use` and returns how many there were; 0 when the wait for
  /// them ended.
  template <class Use>
  std::size_t receive(const Use& use) {
    take_confirmations();
    const Reply reply = connection_.take();
    if (reply->type == REDIS_REPLY_NIL) {
      ask();
      return 0;
    }
    // [[stream, [[id, [field, value]], ...]]]
    const redisReply* messages = reply->element[0]->element[1];
    std::vector<std::string_view> ack{"XACK", kStream, kGroup};
    std::vector<std::string_view> remove{"XDEL", kStream};
    for (std::size_t i = 0; i < messages->elements; ++i) {
      const redisReply* id = messages->element[i]->element[0];
      const redisReply* value = messages->element[i]->element[1]->element[1];
      use(std::string_view(value->str, value->len));
      ack.emplace_back(id->str, id->len);
      remove.emplace_back(id->str, id->len);
    }
    connection_.append(ack);
    connection_.append(remove);
    unconfirmed_ = messages->elements;
    ask();
    return messages->elements;
  }

  /// Waits for the last acknowledgements. The pending read ends with the connection.
  void finish() { take_confirmations(); }

 private:
  void ask() {
    connection_.append({"XREADGROUP", "GROUP", kGroup, name_, "COUNT", count_, "BLOCK", kBlockMs,
                        "STREAMS", kStream, ">"});
    connection_.flush();
  }

  /// XACK and XDEL return how many messages they found: all of them, or something is wrong.
  void take_confirmations() {
    if (unconfirmed_ == 0) return;
    for (int i = 0; i < 2; ++i) {
      const auto found = static_cast<std::size_t>(connection_.take()->integer);
      if (found != unconfirmed_) {
        die(fmt::format("{} of {} acknowledgements were good", found, unconfirmed_));
      }
    }
    unconfirmed_ = 0;
  }

  Connection connection_;
  std::string name_;
  std::string count_;
  std::size_t unconfirmed_ = 0;
};

void consume(const Options& options, std::size_t number, std::atomic<std::uint64_t>& received) {
  Consumer consumer(options, number);
  while (received < options.count) received += consumer.receive([](std::string_view) {});
  consumer.finish();
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
  Connection producer(options.address);
  peer::Pace pace(options);
  for (std::uint64_t i = 0; i < options.count; ++i, pace.advance()) {
    producer.take_until(pace.due());
    append_message(producer, peer::stamped(options.size));
    producer.flush();
  }
  while (producer.outstanding() > 0) producer.take();
  consuming.join();
  peer::print_latency(std::move(micros), options.count);
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = peer::parse(argc, argv);
  make_queue(options);
  if (options.mode == "latency") {
    run_latency(options);
  } else if (options.mode == "through") {
    peer::run_through(
        options, [&](std::size_t number) { produce(options, number); },
        [&](std::size_t number, std::atomic<std::uint64_t>& received) {
          consume(options, number, received);
        });
  } else {
    die("unknown mode " + options.mode);
  }
  check_empty(options);
  return 0;
}
