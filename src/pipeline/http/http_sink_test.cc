#include "pipeline/http/http_sink.h"

#include <functional>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include "pipeline/engine/owned_partition.h"

namespace baton::pipeline {
namespace {

/// A receiver, and a writer to it with three records of one partition.
class HttpSinkTest : public ::testing::Test {
 protected:
  HttpSinkTest() {
    server_.Post("/in", [this](const httplib::Request& request, httplib::Response& response) {
      keys_.push_back(request.get_header_value("Idempotency-Key"));
      response.status = answer_();
    });
    const int port = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::jthread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::yield();
    auto sink = HttpSink::open(
        {.url = fmt::format("http://127.0.0.1:{}/in", port), .pipeline = "p", .source = "s"});
    sink_ = *std::move(sink);
    items_.resize(3);
    for (std::size_t i = 0; i < items_.size(); ++i) {
      items_[i].assignment = assignment_;
      items_[i].record.partition = 7;
      items_[i].record.offset = static_cast<std::int64_t>(i);
      items_[i].record.value = "{}";
    }
  }
  ~HttpSinkTest() override { server_.stop(); }
  HttpSinkTest(const HttpSinkTest&) = delete;
  HttpSinkTest& operator=(const HttpSinkTest&) = delete;

  std::optional<flow::SinkError> write() { return sink_->writer(0)->write(items_); }

  httplib::Server server_;
  std::function<int()> answer_ = [] { return 200; };
  std::vector<std::string> keys_;
  std::shared_ptr<OwnedPartition> assignment_ =
      std::make_shared<OwnedPartition>(7, 1, 0, std::nullopt);
  std::unique_ptr<HttpSink> sink_;
  std::vector<Item> items_;
  std::jthread thread_;
};

TEST_F(HttpSinkTest, AKeyNamesTheLifeOfItsStream) {
  sink_->set_origin("s@5");
  EXPECT_FALSE(write().has_value());
  EXPECT_EQ(keys_, (std::vector<std::string>{"p/s@5/7/0", "p/s@5/7/1", "p/s@5/7/2"}));
}

TEST_F(HttpSinkTest, WhatWasTakenBeforeAnErrorIsIn) {
  answer_ = [this] { return keys_.size() == 2 ? 503 : 200; };
  const auto error = write();
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->error_class, flow::ErrorClass::outage);
  EXPECT_EQ(items_[0].fate, Fate::applied);
  EXPECT_EQ(items_[1].fate, Fate::open);
  EXPECT_EQ(keys_.size(), 2U);
}

// Each answer may take long, and the next owner sends the rest.
TEST_F(HttpSinkTest, APartitionThatGoesInTheMiddleIsLeftAlone) {
  answer_ = [this] {
    if (keys_.size() == 2) assignment_->drop();
    return 200;
  };
  EXPECT_FALSE(write().has_value());
  EXPECT_EQ(keys_.size(), 2U);
  EXPECT_EQ(items_[2].fate, Fate::open);
}

}  // namespace
}  // namespace baton::pipeline
