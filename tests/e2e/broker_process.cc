#include "e2e/broker_process.h"

#include <unistd.h>

#include <csignal>
#include <sstream>
#include <thread>
#include <utility>

#include <baton/v1/admin.grpc.pb.h>
#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

namespace baton::e2e {
namespace {

constexpr int kStartsMax = 20;

template <class T>
T value_of(Result<T> result) {
  if (result.has_value()) return *std::move(result);
  ADD_FAILURE() << to_string(result.error());
  return T{};
}

}  // namespace

BrokerProcess::BrokerProcess(std::vector<std::string> flags)
    : data_(folder_ / "data"), flags_(std::move(flags)) {}

void BrokerProcess::launch() {
  ::unlink((folder_ / "ready").c_str());
  std::vector<std::string> command{binary(),       "server",
                                   "--data",       data_,
                                   "--ready-file", folder_ / "ready",
                                   "--listen",     fmt::format("127.0.0.1:{}", grpc_port_),
                                   "--http",       fmt::format("127.0.0.1:{}", http_port_)};
  command.insert(command.end(), flags_.begin(), flags_.end());
  command.insert(command.begin(), wrapper_.begin(), wrapper_.end());
  child_ = std::make_unique<ChildProcess>(
      ChildProcess::Options{.command = std::move(command), .err_file = folder_ / "log"});
}

bool BrokerProcess::start(milliseconds within) {
  const auto end = Clock::now() + within;
  for (int starts = 0; starts < kStartsMax && Clock::now() < end; ++starts) {
    const std::size_t logged = log().size();
    launch();
    eventually([this] { return !is_running() || !read_file(folder_ / "ready").empty(); },
               std::chrono::duration_cast<milliseconds>(end - Clock::now()));
    std::istringstream ready(read_file(folder_ / "ready"));
    if (ready >> grpc_port_ >> http_port_) return true;
    // While the broker was down, its port may have been lent to another process for a moment.
    if (log().substr(logged).find("in use") == std::string::npos || is_running()) return false;
    std::this_thread::sleep_for(milliseconds{50});
  }
  return false;
}

std::optional<int> BrokerProcess::terminate(milliseconds within) {
  child_->signal(SIGTERM);
  return child_->wait(within);
}

std::string BrokerProcess::address() const { return fmt::format("127.0.0.1:{}", grpc_port_); }

CommandResult BrokerProcess::cli(std::vector<std::string> arguments, std::string_view in) const {
  arguments.insert(arguments.begin(), binary());
  return run_command(std::move(arguments),
                     {.in = std::string(in), .environment = {"BATON_ADDRESS=" + address()}});
}

client::ConnectionOptions BrokerProcess::connection() const {
  client::ConnectionOptions options;
  options.address = address();
  options.reconnect_min = milliseconds{10};
  options.reconnect_max = milliseconds{100};
  return options;
}

client::Broker BrokerProcess::client() const {
  auto client = client::Broker::open(connection());
  EXPECT_TRUE(client.has_value());
  EXPECT_TRUE(client->wait_until_ready(seconds{20}).has_value());
  return *std::move(client);
}

std::shared_ptr<grpc::Channel> BrokerProcess::channel() const {
  grpc::ChannelArguments arguments;
  // Otherwise channels to one address share a connection, and with it its fate.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(address(), grpc::InsecureChannelCredentials(), arguments);
}

std::optional<std::string> BrokerProcess::http_get(std::string_view path) const {
  return e2e::http_get(http_port_, path);
}

void BrokerProcess::create(const std::string& queue, const client::QueueSettings& settings) const {
  value_of(client().queue(queue).create(settings));
}

client::QueueStats BrokerProcess::stats(const std::string& queue) const {
  return value_of(client().queue(queue).describe()).stats;
}

std::uint64_t BrokerProcess::depth(const std::string& queue) const {
  const client::QueueStats now = stats(queue);
  return now.ready + now.leased + now.delayed;
}

std::vector<std::string> BrokerProcess::send(const std::string& queue,
                                             std::vector<std::string> payloads) const {
  std::vector<client::NewMessage> messages;
  for (std::string& payload : payloads) messages.push_back({.payload = std::move(payload)});
  std::vector<std::string> ids;
  for (const auto& result : value_of(client().queue(queue).enqueue(std::move(messages)))) {
    EXPECT_TRUE(result.ok()) << (result.ok() ? "" : to_string(*result.error));
    ids.push_back(result.id);
  }
  return ids;
}

std::map<std::string, std::uint64_t> BrokerProcess::rows_after_checkpoint() const {
  const auto stub = v1::AdminService::NewStub(channel());
  grpc::ClientContext first;
  v1::CheckpointResponse made;
  const grpc::Status checkpoint = stub->Checkpoint(&first, {}, &made);
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.error_message();
  grpc::ClientContext second;
  v1::InspectResponse inspected;
  const grpc::Status inspection = stub->Inspect(&second, {}, &inspected);
  EXPECT_TRUE(inspection.ok()) << inspection.error_message();
  std::map<std::string, std::uint64_t> rows;
  for (const v1::InspectResponse::Shard& shard : inspected.shards()) {
    for (const v1::InspectResponse::Table& table : shard.tables())
      rows[table.name()] += table.rows();
  }
  return rows;
}

std::unique_ptr<client::LeaseStream> open_stream(const BrokerProcess& broker,
                                                 const std::string& queue,
                                                 client::LeaseStreamOptions options) {
  auto stream = client::Broker::open(broker.connection())->queue(queue).lease(std::move(options));
  EXPECT_TRUE(stream.has_value());
  const auto registered = stream->wait_until_registered(seconds{20});
  EXPECT_TRUE(registered.has_value());
  return std::make_unique<client::LeaseStream>(*std::move(stream));
}

std::vector<client::LeasedMessage> take(client::LeaseStream& stream, std::size_t count,
                                        milliseconds within) {
  std::vector<client::LeasedMessage> messages;
  const auto end = Clock::now() + within;
  while (messages.size() < count && Clock::now() < end) {
    auto message = stream.next(std::chrono::duration_cast<milliseconds>(end - Clock::now()));
    if (!message.has_value()) break;
    if (*message) messages.push_back(**std::move(message));
  }
  return messages;
}

std::vector<std::string> payloads_of(const std::vector<client::LeasedMessage>& messages) {
  std::vector<std::string> payloads;
  for (const auto& message : messages) payloads.push_back(message.payload);
  return payloads;
}

std::vector<std::string> numbered(std::string_view name, std::size_t count) {
  std::vector<std::string> payloads;
  for (std::size_t i = 0; i < count; ++i) payloads.push_back(fmt::format("{}-{}", name, i));
  return payloads;
}

}  // namespace baton::e2e
