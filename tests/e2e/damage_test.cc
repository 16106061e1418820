// Damage to the files of a stopped broker is reported with its place, and never served as data.
#include <filesystem>
#include <string>
#include <vector>

#include <baton/broker.h>
#include <baton/v1/streams.grpc.pb.h>
#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "e2e/broker_process.h"

namespace baton::e2e {
namespace {

namespace fs = std::filesystem;

constexpr int kUsage = 2;
constexpr int kDamaged = 10;
constexpr std::uint64_t kSegmentBytes = 65536;

std::string value_of(int number) {
  return fmt::format("amount={:04};{}", number, std::string(400, 'A'));
}

void flip_bit(const std::string& file, std::size_t byte, int bit = 0) {
  std::string bytes = read_file(file);
  ASSERT_LT(byte, bytes.size());
  bytes[byte] = static_cast<char>(bytes[byte] ^ (1 << bit));
  write_file(file, bytes);
}

void flip_text(const std::string& file, std::string_view text, std::size_t place = 0) {
  const auto at = read_file(file).find(text);
  ASSERT_NE(at, std::string::npos) << text << " is not in " << file;
  flip_bit(file, at + place);
}

std::vector<std::string> logs_of(const std::string& data) {
  std::vector<std::string> logs;
  for (const auto& entry : fs::recursive_directory_iterator(data)) {
    const bool ours = entry.path().string().find("/streams/") != std::string::npos;
    if (ours && entry.path().extension() == ".log") logs.push_back(entry.path().string());
  }
  std::ranges::sort(logs);
  return logs;
}

/// What a plain gRPC client reads, and the status of the call.
struct PlainRead {
  std::vector<std::string> values;
  grpc::Status status;
};

class Damage : public testing::Test {
 protected:
  void start() { ASSERT_TRUE(broker_.start()) << broker_.log(); }
  void append(int count) {
    auto client = client::Broker::open(broker_.connection());
    ASSERT_TRUE(client->stream("orders")
                    .create(1, client::StreamSettings{.segment_bytes = kSegmentBytes})
                    .has_value());
    for (int number = 0; number < count; ++number) {
      const client::NewRecord record{.value = value_of(number)};
      const auto results = client->stream("orders").append(std::span(&record, 1));
      ASSERT_TRUE(results.has_value() && results->at(0).ok());
    }
  }
  [[nodiscard]] PlainRead read(v1::RecordFormat format) const {
    const auto stub = v1::StreamService::NewStub(broker_.channel());
    grpc::ClientContext context;
    v1::ReadRequest request;
    request.set_stream("orders");
    request.set_format(format);
    const auto reader = stub->Read(&context, request);
    PlainRead all;
    v1::ReadResponse response;
    while (reader->Read(&response)) {
      for (const auto& record : response.records()) all.values.push_back(record.value());
    }
    all.status = reader->Finish();
    return all;
  }
  [[nodiscard]] client::PartitionInfo partition() const {
    const auto stream = client::Broker::open(broker_.connection())->stream("orders").describe();
    EXPECT_TRUE(stream.has_value());
    return stream.has_value() ? stream->details.at(0) : client::PartitionInfo{};
  }
  /// Starts the broker, which must refuse with `code`, naming each of `words`.
  void expect_refusal(int code, const std::vector<std::string>& words) {
    const std::size_t logged = broker_.log().size();
    broker_.launch();
    EXPECT_EQ(broker_.wait(seconds{30}), code);
    const std::string said = broker_.log().substr(logged);
    fmt::print("{}", said);
    for (const std::string& word : words) EXPECT_NE(said.find(word), std::string::npos) << word;
  }

  BrokerProcess broker_{{"--shards", "1"}};
};

std::size_t count_of(const std::string& text, std::string_view what) {
  std::size_t count = 0;
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

TEST_F(Damage, AFlippedBitInAClosedSegmentIsNotServedAsData) {
  start();
  append(200);
  ASSERT_EQ(broker_.terminate(), 0);
  const std::string first = logs_of(broker_.data()).at(0);
  ASSERT_GT(logs_of(broker_.data()).size(), 1U);
  flip_text(first, "amount=0005", 7);
  start();
  for (const auto format : {v1::RECORD_FORMAT_RECORDS, v1::RECORD_FORMAT_BATCHES}) {
    const PlainRead got = read(format);
    for (std::size_t i = 0; i < got.values.size(); ++i) {
      EXPECT_EQ(got.values[i], value_of(static_cast<int>(i)));
    }
    if (format == v1::RECORD_FORMAT_RECORDS) {
      EXPECT_EQ(got.values.size(), 5U);
    }
    EXPECT_EQ(got.status.error_code(), grpc::StatusCode::DATA_LOSS);
    EXPECT_NE(got.status.error_message().find(first), std::string::npos)
        << got.status.error_message();
    EXPECT_NE(got.status.error_message().find("position"), std::string::npos);
  }
  // The broker knows about the damage, and logs it once.
  EXPECT_EQ(count_of(broker_.log(), "event=records_damaged"), 1U) << broker_.log();
  EXPECT_NE(partition().damaged.find(first), std::string::npos) << partition().damaged;
  EXPECT_EQ(partition().read_only, "");
  const auto metrics = broker_.http_get("/metrics");
  ASSERT_TRUE(metrics.has_value());
  EXPECT_NE(metrics->find("baton_stream_damages_total{shard=\"0\"} 1"), std::string::npos);
}

// The broker stops before it has noted how far it synced, which it does once a second.
TEST_F(Damage, AfterACleanStopNoConfirmedRecordIsCut) {
  start();
  append(40);
  ASSERT_EQ(broker_.terminate(), 0);
  const std::string last = logs_of(broker_.data()).back();
  const auto size = fs::file_size(last);
  flip_text(last, "amount=0025", 7);
  start();
  EXPECT_NE(partition().read_only.find(last), std::string::npos) << partition().read_only;
  EXPECT_NE(broker_.log().find("event=partition_read_only"), std::string::npos);
  EXPECT_EQ(fs::file_size(last), size);
  EXPECT_EQ(partition().next_offset, Offset{40});
  EXPECT_EQ(read(v1::RECORD_FORMAT_RECORDS).values.size(), 25U);
}

TEST_F(Damage, AFolderThatLostItsFormatIsNotTakenForANewOne) {
  broker_.flags() = {"--shards", "2"};
  start();
  broker_.create("jobs");
  broker_.send("jobs", numbered("job", 3));
  ASSERT_EQ(broker_.terminate(), 0);
  broker_.flags() = {};
  const std::string format = read_file(broker_.data() + "/FORMAT");
  fs::remove(broker_.data() + "/FORMAT");
  expect_refusal(kDamaged, {broker_.data() + "/FORMAT", "shard-"});
  EXPECT_FALSE(fs::exists(broker_.data() + "/FORMAT"));
  write_file(broker_.data() + "/FORMAT", format);
  start();
  EXPECT_EQ(broker_.depth("jobs"), 3U);
}

TEST_F(Damage, AFolderWithForeignFilesIsRefusedAndLeftAlone) {
  fs::create_directories(broker_.data());
  write_file(broker_.data() + "/letters.txt", "precious");
  expect_refusal(kUsage, {broker_.data(), "letters.txt"});
  EXPECT_EQ(std::distance(fs::directory_iterator(broker_.data()), fs::directory_iterator{}), 1);
}

/// Two shards, with queues, streams and keys in both.
class Mixed : public Damage {
 protected:
  void SetUp() override {
    broker_.flags() = {"--shards", "2"};
    start();
    auto streams = client::Broker::open(broker_.connection());
    auto keys = client::Broker::open(broker_.connection());
    for (const char* name : {"a", "b", "c", "d"}) {
      broker_.create(name);
      broker_.send(name, numbered(name, 3));
      const client::NewRecord record{.value = name};
      ASSERT_TRUE(streams->stream(name).create(1).has_value());
      ASSERT_TRUE(streams->stream(name).append(std::span(&record, 1)).has_value());
      ASSERT_TRUE(keys->bucket(name).create().has_value());
      ASSERT_TRUE(keys->bucket(name).put("key", name).has_value());
    }
    ASSERT_EQ(broker_.terminate(), 0);
  }
  void swap(const std::string& part) {
    const std::string one = broker_.data() + "/shard-0" + part;
    const std::string other = broker_.data() + "/shard-1" + part;
    fs::rename(one, one + ".aside");
    fs::rename(other, one);
    fs::rename(one + ".aside", other);
  }
};

TEST_F(Mixed, ShardsAndTheirPartsKnowWhereTheyBelong) {
  for (const char* part : {"", "/checkpoint", "/journal", "/streams"}) {
    swap(part);
    expect_refusal(kDamaged, {broker_.data() + "/shard-0" + part, "shard 1"});
    swap(part);
  }
  start();
  for (const char* name : {"a", "b", "c", "d"}) EXPECT_EQ(broker_.depth(name), 3U);
}

TEST_F(Mixed, APartOfAnotherDataFolderIsRefused) {
  BrokerProcess other{{"--shards", "2"}};
  ASSERT_TRUE(other.start()) << other.log();
  ASSERT_EQ(other.terminate(), 0);
  fs::rename(broker_.data() + "/shard-0/checkpoint", broker_.folder() / "aside");
  fs::copy(other.data() + "/shard-0/checkpoint", broker_.data() + "/shard-0/checkpoint",
           fs::copy_options::recursive);
  expect_refusal(kDamaged, {broker_.data() + "/shard-0/checkpoint", "another data folder"});
}

// Without marks, as former versions left it: files that disagree are damage, not a reason to abort.
TEST_F(Mixed, FilesThatDisagreeEndInAnErrorAndNotInAnAbort) {
  // Each bucket is at another revision, in the checkpoint as in the journal after it.
  for (const bool stop : {true, false}) {
    start();
    auto keys = client::Broker::open(broker_.connection());
    int count = 0;
    for (const char* name : {"a", "b", "c", "d"}) {
      count += stop ? 5 : 30;
      for (int i = 0; i < count; ++i) {
        ASSERT_TRUE(keys->bucket(name).put(fmt::format("key-{}", i), "value").has_value());
      }
    }
    if (stop) {
      ASSERT_EQ(broker_.terminate(), 0);
    }
  }
  broker_.kill();
  for (const auto& entry : fs::recursive_directory_iterator(broker_.data())) {
    if (entry.path().filename() == "SHARD") fs::remove(entry.path());
  }
  write_file(broker_.data() + "/FORMAT", "baton-data 1\nshards 2\n");
  swap("/checkpoint");
  expect_refusal(kDamaged, {broker_.data() + "/shard-"});
}

}  // namespace
}  // namespace baton::e2e
