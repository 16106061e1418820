// PostgreSQL has no disk space any more, for its tables or for its log: an outage, until it has.
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "e2e/private_disk.h"
#include "pipeline/postgres_pipeline.h"

namespace baton::pipeline {
namespace {

namespace fs = std::filesystem;
using e2e::eventually;
using e2e::seconds;

class PostgresDisk : public PostgresPipeline {
 protected:
  void SetUp() override {}  // The disk is made first.
  void TearDown() override { server_.reset(); }

  void mount(const std::string& size) {
    fs::permissions(folder_.path(), fs::perms::others_exec, fs::perm_options::add);
    disk_.emplace(place(), size + "," + PostgresServer::mount_options());
    if (!disk_->why_not().empty()) GTEST_SKIP() << "NOT TESTED: cannot mount: " << disk_->why_not();
  }
  [[nodiscard]] std::string place() const { return folder_ / "disk"; }
  /// Takes all free space.
  void fill() const { e2e::write_file(place() + "/hog", std::string(64 << 20, 'x')); }
  void make_room() const { fs::remove(place() + "/hog"); }
  /// Starts with rows in the tables and some dead letters; returns their number.
  std::uint64_t start(PipelineProcess& pipeline) {
    send(300);
    EXPECT_TRUE(pipeline.start());
    EXPECT_TRUE(all_end(pipeline)) << pipeline.log();
    return letters();
  }
  /// Returns when the breaker is open.
  void send_until_open(PipelineProcess& pipeline) {
    send(3000, 2, kNoTrouble);
    EXPECT_TRUE(eventually([&] { return pipeline.breaker() == "open"; }, seconds{30}))
        << pipeline.log();
  }

 private:
  e2e::TempFolder folder_;
  std::optional<e2e::PrivateDisk> disk_;
};

TEST_F(PostgresDisk, WithoutRoomForTables) {
  mount("size=32m");
  if (!IsSkipped()) begin();
  if (IsSkipped() || HasFatalFailure()) return;
  server_->query("CREATE TABLESPACE small LOCATION '" + place() + "'");
  server_->query("ALTER DATABASE postgres SET default_tablespace = small");
  const PipelineFolder folder(broker_, settings());
  PipelineProcess pipeline(folder);
  const std::uint64_t letters_before = start(pipeline);
  fill();
  send_until_open(pipeline);
  EXPECT_NE(pipeline.log().find("53100"), std::string::npos) << pipeline.log();
  EXPECT_TRUE(server_->is_running());
  EXPECT_EQ(letters(), letters_before);
  make_room();
  EXPECT_TRUE(all_end(pipeline)) << pipeline.log();
  EXPECT_EQ(letters(), letters_before);
  expect_end(pipeline);
}

// It panics, and cannot be started until there is room.
TEST_F(PostgresDisk, WithoutRoomForItsLog) {
  mount("size=48m");
  if (!IsSkipped()) begin({"--waldir=" + place() + "/wal", "--wal-segsize=1"});
  if (IsSkipped() || HasFatalFailure()) return;
  const PipelineFolder folder(broker_, settings());
  PipelineProcess pipeline(folder);
  const std::uint64_t letters_before = start(pipeline);
  fill();
  send_until_open(pipeline);
  EXPECT_NE(server_->log().find("PANIC"), std::string::npos) << server_->log();
  EXPECT_EQ(letters(), letters_before);
  make_room();
  // It tries to recover once by itself, and ends if there was no room yet.
  EXPECT_TRUE(eventually(
      [&] {
        return (server_->is_running() || server_->start()) &&
               pipeline.ended() >= inventory_.entries().size();
      },
      seconds{60}))
      << pipeline.log();
  EXPECT_EQ(letters(), letters_before);
  expect_end(pipeline);
}

}  // namespace
}  // namespace baton::pipeline
