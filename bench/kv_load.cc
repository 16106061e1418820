// One measurement of a running key-value store, printed as one JSON object: compare-and-sets, each
// on the revision that the one before it returned, in `in_flight` chains at once, each on a key
// of its own. bench/bench_kv.py starts the stores, interleaves the rounds and reports.
//
// Baton and etcd are loaded by the same code: generated stubs, asynchronous unary calls, one
// connection.

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <baton/v1/kv.grpc.pb.h>
#include <etcd/rpc.grpc.pb.h>
#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include "connection.h"

namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  std::string address = "127.0.0.1:7470";
  std::string store = "baton";  // baton | etcd
  std::size_t size = 100;
  std::size_t in_flight = 1;
  std::uint64_t count = 10'000;
};

[[noreturn]] void die(const std::string& what) {
  std::fprintf(stderr, "bench_kv_load: %s\n", what.c_str());
  // Not exit(): gRPC's threads are still running.
  std::_Exit(1);
}

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// A compare-and-set in progress. One at a time.
class Call {
 public:
  Call() = default;
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  virtual ~Call() = default;

  /// Writes `key` if it is at `expected`, and then passes on its new revision.
  virtual void start(const std::string& key, std::uint64_t expected, const std::string& value,
                     std::function<void(std::uint64_t)> done) = 0;
};

class BatonCall final : public Call {
 public:
  explicit BatonCall(baton::v1::KvService::Stub& stub) : stub_(stub) {}

  void start(const std::string& key, std::uint64_t expected, const std::string& value,
             std::function<void(std::uint64_t)> done) override {
    context_ = std::make_unique<grpc::ClientContext>();
    request_.set_bucket("bench");
    request_.set_key(key);
    request_.set_value(value);
    request_.set_expected_revision(expected);
    stub_.async()->PutKey(context_.get(), &request_, &response_,
                          [this, done = std::move(done)](const grpc::Status& status) {
                            if (!status.ok()) die(status.error_message());
                            if (response_.has_error()) die(response_.error().text());
                            done(response_.revision());
                          });
  }

 private:
  baton::v1::KvService::Stub& stub_;
  std::unique_ptr<grpc::ClientContext> context_;
  baton::v1::PutKeyRequest request_;
  baton::v1::PutKeyResponse response_;
};

class EtcdCall final : public Call {
 public:
  explicit EtcdCall(etcdserverpb::KV::Stub& stub) : stub_(stub) {}

  void start(const std::string& key, std::uint64_t expected, const std::string& value,
             std::function<void(std::uint64_t)> done) override {
    context_ = std::make_unique<grpc::ClientContext>();
    request_.Clear();
    etcdserverpb::Compare& compare = *request_.add_compare();
    compare.set_result(etcdserverpb::Compare::EQUAL);
    compare.set_target(etcdserverpb::Compare::MOD);
    compare.set_key(key);
    compare.set_mod_revision(static_cast<std::int64_t>(expected));
    etcdserverpb::PutRequest& put = *request_.add_success()->mutable_request_put();
    put.set_key(key);
    put.set_value(value);
    stub_.async()->Txn(context_.get(), &request_, &response_,
                       [this, done = std::move(done)](const grpc::Status& status) {
                         if (!status.ok()) die(status.error_message());
                         if (!response_.succeeded()) die("a compare-and-set was refused");
                         done(static_cast<std::uint64_t>(response_.header().revision()));
                       });
  }

 private:
  etcdserverpb::KV::Stub& stub_;
  std::unique_ptr<grpc::ClientContext> context_;
  etcdserverpb::TxnRequest request_;
  etcdserverpb::TxnResponse response_;
};

/// One chain of compare-and-sets, on a key of its own.
struct Chain {
  std::unique_ptr<Call> call;
  std::string key;
  std::uint64_t revision = 0;
  Clock::time_point began;
  std::vector<double> micros;
};

/// Runs the chains until all writes are done.
class Load {
 public:
  Load(const Options& options, const std::function<std::unique_ptr<Call>()>& make_call)
      : left_(static_cast<std::int64_t>(options.count)), value_(options.size, 'v') {
    // Unique to this run: the keys of another run are at revisions that we do not know.
    const auto run = Clock::now().time_since_epoch().count();
    for (std::size_t i = 0; i < options.in_flight; ++i) {
      Chain& chain = chains_.emplace_back();
      chain.call = make_call();
      chain.key = fmt::format("bench.{}.{}", run, i);
      chain.micros.reserve(2 * options.count / options.in_flight);
    }
  }

  void run() {
    running_ = chains_.size();
    for (Chain& chain : chains_) next(chain);
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return running_ == 0; });
  }
  std::vector<double> micros() const {
    std::vector<double> all;
    for (const Chain& chain : chains_)
      all.insert(all.end(), chain.micros.begin(), chain.micros.end());
    std::ranges::sort(all);
    return all;
  }

 private:
  void next(Chain& chain) {
    if (left_.fetch_sub(1) <= 0) {
      const std::scoped_lock lock(mutex_);
      --running_;
      changed_.notify_all();
      return;
    }
    chain.began = Clock::now();
    chain.call->start(chain.key, chain.revision, value_, [this, &chain](std::uint64_t revision) {
      chain.micros.push_back(
          std::chrono::duration<double, std::micro>(Clock::now() - chain.began).count());
      chain.revision = revision;
      next(chain);
    });
  }

  std::atomic<std::int64_t> left_;
  std::string value_;
  std::vector<Chain> chains_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t running_ = 0;
};

void measure(const Options& options, const std::function<std::unique_ptr<Call>()>& make_call) {
  Load load(options, make_call);
  const double cpu = cpu_seconds();
  const auto start = Clock::now();
  load.run();
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  const std::vector<double> micros = load.micros();
  const auto at = [&](double part) {
    return micros[static_cast<std::size_t>(part * static_cast<double>(micros.size() - 1))];
  };
  const auto count = static_cast<double>(micros.size());
  fmt::print(
      "{{\"seconds\": {:.6f}, \"messages\": {}, \"rate\": {:.1f}, \"client_cpu_us\": {:.3f}, "
      "\"p50_us\": {:.1f}, \"p99_us\": {:.1f}, \"max_us\": {:.1f}}}\n",
      seconds, micros.size(), count / seconds, (cpu_seconds() - cpu) * 1e6 / count, at(0.5),
      at(0.99), micros.back());
}

Options parse(int argc, char** argv) {
  Options options;
  std::map<std::string, std::string> values;
  for (int i = 1; i + 1 < argc; i += 2) values[argv[i]] = argv[i + 1];
  const auto text = [&](const char* name, std::string& target) {
    if (values.contains(name)) target = values[name];
  };
  const auto number = [&](const char* name, auto& target) {
    if (values.contains(name)) target = std::stoull(values[name]);
  };
  text("--address", options.address);
  text("--store", options.store);
  number("--size", options.size);
  number("--in-flight", options.in_flight);
  number("--count", options.count);
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  const auto channel = baton::bench::channel_to(options.address);
  if (options.store == "baton") {
    const auto stub = baton::v1::KvService::NewStub(channel);
    measure(options, [&] { return std::make_unique<BatonCall>(*stub); });
  } else if (options.store == "etcd") {
    const auto stub = etcdserverpb::KV::NewStub(channel);
    measure(options, [&] { return std::make_unique<EtcdCall>(*stub); });
  } else {
    die("unknown store " + options.store);
  }
  return 0;
}
