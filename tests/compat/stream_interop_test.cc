// Independent implementations of the record-batch format, Kafka's own tool and kafka-python, read
// the files of one of our partitions, and we read batches made by kafka-python. Needs a Kafka with
// Java, and Debian's python3-kafka, python3-lz4, python3-zstandard and python3-snappy; without them
// the tests are skipped, and say so.

#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/stream/records.h"
#include "paths.h"
#include "storage/log/partition_log.h"

namespace baton {
namespace {

constexpr Instant kNow{1'700'000'000'000'000'000};
constexpr TimestampMs kTime{1'700'000'000'000};
// Debian's own interpreter, because it sees Debian's packages.
constexpr std::string_view kPython = "/usr/bin/python3";
constexpr int kSkipped = 77;

std::string hex(const std::optional<std::string_view>& bytes) {
  if (!bytes) return "-";
  std::string text = "x";
  for (const char byte : *bytes) text += fmt::format("{:02x}", static_cast<std::uint8_t>(byte));
  return text;
}

/// The form in which kafka_records.py writes it.
std::string line_of(RecordView& record) {
  std::string line = fmt::format("{} {} {} {}", record.offset.value, record.timestamp.value,
                                 hex(record.key), hex(record.value));
  while (const auto header = record.headers.next()) {
    line += fmt::format(" {}={}", header->name, hex(header->value));
  }
  return line + "\n";
}

std::string lines_of(const PartitionLog& log) {
  std::string lines;
  PartitionReader reader = log.reader();
  Offset at = reader.first();
  while (at < reader.next()) {
    const ReadBatches read = reader.read(at, 1 << 20U).value();
    std::string_view bytes = read.bytes;
    while (!bytes.empty()) {
      const BatchView batch = BatchView::parse(bytes).value();
      EXPECT_TRUE(batch.check_crc().has_value());
      RecordReader records = RecordReader::open(batch).value();
      RecordView record;
      while (records.next(record).value()) lines += line_of(record);
      bytes.remove_prefix(batch.bytes().size());
    }
    at = read.next;
  }
  return lines;
}

std::string content(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

class StreamInterop : public testing::Test {
 protected:
  StreamInterop() {
    std::string pattern = std::filesystem::temp_directory_path() / "baton-interop-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  ~StreamInterop() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  std::unique_ptr<PartitionLog> open(const std::string& name) {
    PartitionLogOptions options;
    options.segment_bytes = 65536;
    return PartitionLog::open(*disk_, folder_ + "/" + name,
                              {.options = options, .synced_end = Offset{0}, .now = kNow})
        .value();
  }
  static void append(PartitionLog& log, const std::string& bytes) {
    const auto checked = check_batch(bytes, {}, kNow);
    ASSERT_TRUE(checked.has_value()) << to_string(checked.error());
    const auto outcomes = log.append(std::span(&*checked, 1), LeaderEpoch{1}, kNow);
    ASSERT_TRUE(outcomes.has_value()) << to_string(outcomes.error());
    ASSERT_TRUE(outcomes->front().stored()) << outcomes->front().text;
    log.publish(log.sync().value());
  }
  /// Appends batches of all sizes, with every codec, in several segments; returns the number of
  /// records.
  static int fill(PartitionLog& log) {
    int number = 0;
    for (int round = 0; round < 12; ++round) {
      for (int codec = 0; codec <= 4; ++codec) {
        BatchBuilder builder;
        for (int i = 0; i < 1 + 40 * round; ++i, ++number) add_record(builder, number);
        append(log, builder.finish(Compression(codec)).value());
      }
    }
    EXPECT_GT(log.describe().segments, 3U);
    return number;
  }
  static void add_record(BatchBuilder& builder, int number) {
    const std::string key = fmt::format("key {}", number % 7);
    const std::string value = fmt::format("value {} of record {}", number * number, number);
    const RecordHeader headers[] = {{.name = "n", .value = key}, {.name = "none", .value = {}}};
    const Record record{
        .key = number % 5 == 0 ? std::nullopt : std::optional<std::string_view>(key),
        .value = number % 11 == 0 ? std::nullopt : std::optional<std::string_view>(value),
        .headers = std::span(headers).first(static_cast<std::size_t>(number % 3)),
        .timestamp = TimestampMs{kTime.value + number * 13 % 5000}};
    ASSERT_TRUE(builder.add(record).has_value());
  }
  static int exit_code_of(const std::string& command) {
    const int status = std::system(command.c_str());  // NOLINT: a fixed command of our own
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  /// Runs the script; returns its exit code.
  int run(const std::string& arguments) const {
    const std::string command =
        fmt::format("{} {}/compat/kafka_records.py {}", kPython, paths::kTests, arguments);
    return exit_code_of(command);
  }

  std::string folder_;
  std::unique_ptr<Disk> disk_ = make_real_disk();
};

#define SKIP_WITHOUT_KAFKA_PYTHON(code)                                                        \
  if ((code) == kSkipped) {                                                                    \
    GTEST_SKIP() << "SKIPPED: kafka-python or a codec of it is missing; ./dev setup installs " \
                    "it. Nothing was compared with an independent implementation.";            \
  }

TEST_F(StreamInterop, KafkaPythonReadsOurFiles) {
  const auto log = open("ours");
  const int number = fill(*log);

  const int code = run(fmt::format("read {0}/ours > {0}/lines", folder_));

  SKIP_WITHOUT_KAFKA_PYTHON(code);
  ASSERT_EQ(code, 0);
  EXPECT_TRUE(content(folder_ + "/lines") == lines_of(*log));
  EXPECT_EQ(log->next(), Offset{number});
}

TEST_F(StreamInterop, KafkasOwnToolReadsOurFiles) {
  const std::string jars = std::string(paths::kTools) + "/kafka";
  if (!std::filesystem::exists(jars) || exit_code_of("java -version 2>/dev/null") != 0) {
    GTEST_SKIP()
        << "SKIPPED: there is no Kafka, or no Java; ./dev setup gets Kafka where there are "
           "Maven and Java. Its kafka-dump-log has not read our files.";
  }
  const auto log = open("ours");
  const int number = fill(*log);
  std::string files;
  for (const auto& entry : std::filesystem::directory_iterator(folder_ + "/ours")) {
    if (entry.path().extension() != ".log") continue;
    files += (files.empty() ? "" : ",") + entry.path().string();
  }

  ASSERT_EQ(exit_code_of(fmt::format("java -cp '{}/*' kafka.tools.DumpLogSegments --files {} "
                                     "--print-data-log >{}/dump 2>/dev/null",
                                     jars, files, folder_)),
            0);

  const std::string dump = content(folder_ + "/dump");
  const auto count = [&](std::string_view text) {
    int found = 0;
    for (std::size_t at = 0; (at = dump.find(text, at)) != std::string::npos; ++at) ++found;
    return found;
  };
  EXPECT_EQ(count("isvalid: true"), 12 * 5);
  EXPECT_EQ(count("isvalid: false"), 0);
  EXPECT_EQ(count("| offset: "), number);
  EXPECT_EQ(count(fmt::format("payload: value {} of record {}\n", (number - 1) * (number - 1),
                              number - 1)),
            1);
}

TEST_F(StreamInterop, WeReadTheBatchesOfKafkaPython) {
  const int code = run("write " + folder_);
  SKIP_WITHOUT_KAFKA_PYTHON(code);
  ASSERT_EQ(code, 0);
  for (int codec = 0; codec <= 4; ++codec) {
    const std::string name(compression_name(Compression(codec)));
    const std::string bytes = content(folder_ + "/" + name + ".batch");
    const auto view = BatchView::parse(bytes);
    ASSERT_TRUE(view.has_value()) << to_string(view.error());
    EXPECT_EQ(view->header().compression(), Compression(codec));
    EXPECT_EQ(view->header().producer,
              (ProducerStamp{ProducerId{12}, ProducerEpoch{3}, Sequence32{0}}));
    const auto log = open(name);
    append(*log, bytes);
    EXPECT_TRUE(lines_of(*log) == content(folder_ + "/" + name + ".txt")) << name;
  }
}

}  // namespace
}  // namespace baton
