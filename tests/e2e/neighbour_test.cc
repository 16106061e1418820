// Clients that reach the ports without any credentials and misbehave: the broker goes on, and
// serves others.
#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <baton/v1/streams.grpc.pb.h>
#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "e2e/broker_process.h"
#include "e2e/raw_connection.h"

namespace baton::e2e {
namespace {

std::vector<RawConnection> connect_many(int port, std::size_t count) {
  std::vector<RawConnection> out;
  for (std::size_t i = 0; i < count; ++i) out.emplace_back(port);
  return out;
}

int grpc_port(const BrokerProcess& broker) {
  return std::stoi(broker.address().substr(broker.address().find(':') + 1));
}

bool metrics_hold(const BrokerProcess& broker, std::string_view line) {
  const auto text = broker.http_get("/metrics");
  return text.has_value() && text->find(line) != std::string::npos;
}

// gRPC's own listener ends for good when accept() finds no descriptor.
TEST(Neighbour, IdleConnectionsDoNotEndTheListener) {
  BrokerProcess broker({"--shards", "1"});
  broker.run_under({"/usr/bin/env", "prlimit", "--nofile=256:256"});
  ASSERT_TRUE(broker.start()) << broker.log();
  broker.create("orders");
  ASSERT_EQ(broker.cli({"stream", "create", "events", "--segment-size", "64KiB"}).exit_code, 0);
  const auto client = broker.client();
  const auto sent = broker.send("orders", numbered("before", 100));
  {
    const auto idle = connect_many(grpc_port(broker), 276);

    // While they are connected, files can still be opened, so a segment can roll over.
    const std::string record(60'000, 'x');
    for (int i = 0; i < 5; ++i) {
      const auto appended = broker.cli({"stream", "append", "events", record});
      EXPECT_EQ(appended.exit_code, 0) << appended.err;
    }
  }
  const auto listed = broker.cli({"queue", "list"});

  EXPECT_EQ(listed.exit_code, 0) << listed.err;
  EXPECT_TRUE(broker.is_running()) << broker.log();
  const auto stream = open_stream(broker, "orders", {.in_flight_max = 200});
  EXPECT_EQ(take(*stream, sent.size()).size(), sent.size());
  EXPECT_TRUE(metrics_hold(broker, "\nbaton_connections_max 128\n"));
  EXPECT_NE(broker.log().find("event=connections_exhausted"), std::string::npos) << broker.log();
}

// A connection that says nothing is closed after some seconds, and the log names it.
TEST(Neighbour, SilentConnectionsAreClosed) {
  BrokerProcess broker;
  ASSERT_TRUE(broker.start()) << broker.log();
  const RawConnection idle(grpc_port(broker));
  ASSERT_TRUE(idle.connected());
  const RawConnection half(grpc_port(broker));
  ASSERT_TRUE(half.send("PRI * HTTP/2.0\r\n"));

  EXPECT_TRUE(idle.read_to_end(seconds{20}).has_value());
  EXPECT_TRUE(half.read_to_end(seconds{20}).has_value());
  EXPECT_NE(broker.log().find("event=handshake_refused"), std::string::npos) << broker.log();
  EXPECT_TRUE(metrics_hold(broker, "baton_connections_refused_total{reason=\"silent\"} 1"));
  EXPECT_TRUE(eventually([&] { return metrics_hold(broker, "\nbaton_connections_open 0\n"); }));
}

/// Sends a byte of an endless request now and then.
void drip(const std::vector<RawConnection>& slow) {
  for (const RawConnection& each : slow) (void)each.send("x");
}

// A probe without an answer makes a supervisor kill a sound broker.
TEST(Neighbour, SlowHttpClientsDoNotSilenceTheProbes) {
  BrokerProcess broker;
  ASSERT_TRUE(broker.start()) << broker.log();
  const auto slow = connect_many(broker.http_port(), 64);
  for (const RawConnection& each : slow) ASSERT_TRUE(each.send("GET /healthz HTTP/1.1\r\nX: "));

  for (int round = 0; round < 5; ++round) {
    drip(slow);
    for (const char* path : {"/healthz", "/readyz", "/metrics"}) {
      const RawConnection probe(broker.http_port());
      ASSERT_TRUE(probe.send(fmt::format("GET {} HTTP/1.1\r\n\r\n", path)));
      const auto answer = probe.read_to_end(seconds{10});
      ASSERT_TRUE(answer.has_value()) << path;
      EXPECT_TRUE(answer->starts_with("HTTP/1.1 200 ")) << *answer;
    }
  }
  // However steadily they send, the time for a request is limited.
  EXPECT_TRUE(eventually([&] {
    drip(slow);
    return !slow.back().send("x");
  }));
}

/// The broker's memory, in MiB.
double memory_of(const BrokerProcess& broker) {
  const std::string text = broker.http_get("/metrics").value_or("");
  const std::string name = "\nprocess_resident_memory_bytes ";
  const auto at = text.find(name);
  if (at == std::string::npos) {
    ADD_FAILURE() << "the broker does not say how much memory it has";
    return 0;
  }
  return std::stod(text.substr(at + name.size())) / (1 << 20);
}

/// A Read call whose answers are never read.
struct Unread {
  grpc::ClientContext context{};
  std::unique_ptr<grpc::ClientReader<v1::ReadResponse>> reader{};
};

// Each of them holds some of the broker's memory: all of them together hold a bounded part of it,
// and give it back.
TEST(Neighbour, ClientsThatNeverReadHoldLittleMemory) {
  BrokerProcess broker;
  ASSERT_TRUE(broker.start()) << broker.log();
  ASSERT_EQ(broker.cli({"stream", "create", "events"}).exit_code, 0);
  const auto sent =
      broker.cli({"stream", "append", "events", std::string(100'000, 'x'), "--count", "40"});
  ASSERT_EQ(sent.exit_code, 0) << sent.err;
  const double before = memory_of(broker);
  {
    const auto channel = broker.channel();
    const auto stub = v1::StreamService::NewStub(channel);
    std::vector<std::unique_ptr<Unread>> calls;
    for (int i = 0; i < 500; ++i) {
      calls.push_back(std::make_unique<Unread>());
      v1::ReadRequest request;
      request.set_stream("events");
      calls.back()->reader = stub->Read(&calls.back()->context, request);
    }
    ASSERT_TRUE(eventually([&] { return metrics_hold(broker, "\nbaton_api_streams_open 500\n"); }));
    // The maximum over two seconds, because a call's pieces are read one after the other.
    double most = 0;
    for (int i = 0; i < 20; ++i) {
      std::this_thread::sleep_for(milliseconds{100});
      most = std::max(most, memory_of(broker) - before);
    }
    EXPECT_LT(most, 400);  // Without a bound it is more than twice that.
    EXPECT_GT(most, 10);   // They do hold something: the test has reached its subject.
    fmt::print("{:.0f} MiB for {} calls\n", most, calls.size());
    for (const auto& call : calls) call->context.TryCancel();
  }
  EXPECT_TRUE(eventually([&] { return memory_of(broker) - before < 100; }, seconds{40}))
      << memory_of(broker) - before;
}

}  // namespace
}  // namespace baton::e2e
