#pragma once

#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "stores/server.h"
#include "worker/fleet.h"

namespace baton::worker_tests {

/// A test against a fresh store of one kind; skipped if there is no such server.
class OnEachStore : public testing::TestWithParam<stores::Kind> {
 protected:
  void SetUp() override {
    const stores::ServerOptions options{.kind = GetParam()};
    if (const std::string why = stores::Server::missing(options); !why.empty()) {
      GTEST_SKIP() << "SKIPPED: " << why;
    }
    server_ = std::make_unique<stores::Server>(options);
    ASSERT_TRUE(server_->start());
  }
  [[nodiscard]] std::string store() const { return server_->url("leases"); }
  [[nodiscard]] static std::string_view name() { return stores::name_of(GetParam()); }

  std::unique_ptr<stores::Server> server_;
};

/// The same on Baton's own store only.
class OnBroker : public testing::Test {
 protected:
  void SetUp() override {
    server_ = std::make_unique<stores::Server>(stores::ServerOptions{.kind = stores::Kind::broker});
    ASSERT_TRUE(server_->start());
  }
  [[nodiscard]] std::string store() const { return server_->url("leases"); }

  std::unique_ptr<stores::Server> server_;
};

inline auto each_store() {
  return testing::Values(stores::Kind::broker, stores::Kind::nats, stores::Kind::etcd);
}
inline std::string store_name(const testing::TestParamInfo<stores::Kind>& info) {
  return std::string(stores::name_of(info.param));
}

}  // namespace baton::worker_tests

/// Runs the tests of `Suite`, which derives from OnEachStore, for each store.
#define BATON_ON_EACH_STORE(Suite)                                             \
  INSTANTIATE_TEST_SUITE_P(Stores, Suite, ::baton::worker_tests::each_store(), \
                           ::baton::worker_tests::store_name)
