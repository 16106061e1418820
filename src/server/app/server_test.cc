#include "server/app/server.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <string>
#include <utility>

#include <gtest/gtest.h>
#include <httplib.h>

#include "server/app/service_fixture.h"

namespace baton {
namespace {

using ServerTest = ServiceTest;

ServerOptions local() {
  ServerOptions options;
  options.listen = "127.0.0.1:0";
  options.http_listen = "127.0.0.1:0";
  return options;
}

/// Connected sockets of this process with the local port `port`, and how many of them have NODELAY.
std::pair<int, int> count_sockets(int port) {
  int sockets = 0;
  int undelayed = 0;
  for (int fd = 0; fd < 1024; ++fd) {
    sockaddr_in own{};
    socklen_t length = sizeof own;
    if (::getsockname(fd, reinterpret_cast<sockaddr*>(&own), &length) != 0) continue;  // NOLINT
    sockaddr_in peer{};
    socklen_t peer_length = sizeof peer;
    if (own.sin_family != AF_INET || ntohs(own.sin_port) != port ||
        ::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_length) != 0) {  // NOLINT
      continue;
    }
    int set = 0;
    socklen_t set_length = sizeof set;
    ::getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &set, &set_length);
    ++sockets;
    undelayed += set != 0 ? 1 : 0;
  }
  return {sockets, undelayed};
}

// Trap: without TCP_NODELAY a confirmation waits for the client's delayed ACK, some 40 ms.
TEST_F(ServerTest, AcceptedConnectionsHaveTcpNodelay) {
  grpc::ClientContext context;
  v1::EnqueueResponse response;
  ASSERT_TRUE(stub_->Enqueue(&context, enqueue_request(0), &response).ok());

  const auto [sockets, undelayed] = count_sockets(api_->grpc_port());

  EXPECT_GE(sockets, 1);
  EXPECT_EQ(undelayed, sockets);
}

TEST_F(ServerTest, HttpTellsHealthReadinessAndMetrics) {
  httplib::Client http("127.0.0.1", api_->http_port());
  EXPECT_EQ(http.Get("/healthz")->status, 200);
  EXPECT_EQ(http.Get("/readyz")->status, 503);
  api_->set_ready(true);
  EXPECT_EQ(http.Get("/readyz")->status, 200);
  grpc::ClientContext context;
  v1::EnqueueResponse response;
  ASSERT_TRUE(stub_->Enqueue(&context, enqueue_request(0), &response).ok());

  const std::string text = http.Get("/metrics")->body;

  for (const char* line :
       {"baton_messages_enqueued_total{shard=\"1\"} 41",
        "baton_api_calls_total{method=\"Enqueue\",code=\"OK\"} 1", "baton_api_consumers_open 0",
        "# TYPE baton_journal_behind_bytes gauge"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
  }
  api_->stop_accepting();
  EXPECT_EQ(http.Get("/readyz")->status, 503);
  EXPECT_EQ(http.Get("/healthz")->status, 200);
}

TEST_F(ServerTest, AnAddressInUseIsAnErrorThatSaysSo) {
  ServerOptions options = local();
  options.listen = "127.0.0.1:" + std::to_string(api_->grpc_port());
  const auto second = ApiServer::start(broker_, options);
  ASSERT_FALSE(second.has_value());
  EXPECT_NE(second.error().text.find("Address already in use"), std::string::npos)
      << second.error().text;
  EXPECT_NE(second.error().text.find(options.listen), std::string::npos);

  options = local();
  options.http_listen = "127.0.0.1:" + std::to_string(api_->http_port());
  const auto third = ApiServer::start(broker_, options);
  ASSERT_FALSE(third.has_value());
  EXPECT_NE(third.error().text.find("Address already in use"), std::string::npos);
}

TEST_F(ServerTest, BadOptionsAreRefused) {
  ServerOptions options = local();
  options.listen = "0.0.0.0:0";
  EXPECT_FALSE(ApiServer::start(broker_, options).has_value());
  options.insecure = true;
  EXPECT_TRUE(ApiServer::start(broker_, options).has_value());
  options = local();
  options.http_listen = "0.0.0.0:0";
  EXPECT_FALSE(ApiServer::start(broker_, options).has_value());
  options = local();
  options.tls_cert = "missing.pem";
  EXPECT_NE(ApiServer::start(broker_, options).error().text.find("--tls-key"), std::string::npos);
  options.tls_key = "missing.pem";
  EXPECT_NE(ApiServer::start(broker_, options).error().text.find("missing.pem"), std::string::npos);
  options = local();
  options.message_bytes_max = 1;
  EXPECT_FALSE(ApiServer::start(broker_, options).has_value());
}

}  // namespace
}  // namespace baton
