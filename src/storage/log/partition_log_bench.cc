// Appends batches of 64 KiB to a partition on the machine's own disk, and reads them back from the
// page cache. Set TMPDIR to choose the disk. The cost of check_batch before each append is
// included, as the broker pays it too; making the batch is not.

#include <cstdlib>
#include <filesystem>

#include <benchmark/benchmark.h>

#include "core/stream/records.h"
#include "storage/log/partition_log.h"

namespace baton {
namespace {

constexpr Instant kNow{1'700'000'000'000'000'000};
constexpr std::size_t kBatchBytes = std::size_t{64} << 10U;
constexpr std::uint64_t kKeptBytes = std::uint64_t{1} << 30U;

std::string make_batch(std::size_t record_bytes, Compression compression) {
  BatchBuilder builder(kBatchBytes);
  std::string value(record_bytes, '\0');
  for (std::uint64_t i = 0;; ++i) {
    // Half of it repeats, as text does.
    for (std::size_t at = 0; at < value.size(); ++at) {
      value[at] =
          static_cast<char>(at % 2 == 0 ? 'a' + at % 23 : (i * 2654435761U + at * at) >> 5U);
    }
    const Record record{
        .key = {}, .value = value, .headers = {}, .timestamp = TimestampMs{1'700'000'000'000}};
    if (!builder.add(record)) return builder.finish(compression).value();
  }
}

/// A partition in a folder that is removed with it.
class BenchPartition {
 public:
  BenchPartition() {
    std::string pattern = std::filesystem::temp_directory_path() / "baton-bench-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    PartitionLogOptions options;
    options.retention.bytes = kKeptBytes;
    log_ = PartitionLog::open(*disk_, folder_ + "/partition",
                              {.options = options, .synced_end = Offset{0}, .now = kNow})
               .value();
  }
  BenchPartition(const BenchPartition&) = delete;
  BenchPartition& operator=(const BenchPartition&) = delete;
  ~BenchPartition() {
    log_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  PartitionLog& log() { return *log_; }
  bool append(std::string_view bytes) {
    const auto checked = check_batch(bytes, {}, kNow);
    return checked && log_->append(std::span(&*checked, 1), LeaderEpoch{0}, kNow).has_value();
  }

 private:
  std::unique_ptr<Disk> disk_ = make_real_disk();
  std::string folder_;
  std::unique_ptr<PartitionLog> log_;
};

void count(benchmark::State& state, std::int64_t records, std::int64_t bytes) {
  state.counters["records/s"] =
      benchmark::Counter(static_cast<double>(records), benchmark::Counter::kIsRate);
  state.SetBytesProcessed(bytes);
}

/// Arguments: bytes of a record, compression, appends per sync (0: never).
void append_batches(benchmark::State& state) {
  const std::string batch =
      make_batch(static_cast<std::size_t>(state.range(0)), Compression(state.range(1)));
  const std::int64_t records = BatchView::parse(batch)->header().count;
  BenchPartition partition;
  std::int64_t appended = 0;
  for (auto _ : state) {
    if (!partition.append(batch)) return state.SkipWithError("the append failed");
    ++appended;
    if (state.range(2) != 0 && appended % state.range(2) == 0) {
      partition.log().publish(partition.log().sync().value());
    }
    if (appended % 4096 == 0) {
      partition.log().publish(partition.log().next());
      if (!partition.log().drop_old_segments(kNow)) return state.SkipWithError("retention failed");
    }
  }
  count(state, appended * records, appended * static_cast<std::int64_t>(batch.size()));
}
BENCHMARK(append_batches)
    ->ArgNames({"record", "codec", "per_sync"})
    ->Args({1024, 0, 0})
    ->Args({100, 0, 0})
    ->Args({1024, 0, 16})
    ->Args({1024, 0, 1})
    ->Args({1024, 4, 0})
    ->UseRealTime();

/// Arguments: bytes of a record, bytes of a read.
void read_batches(benchmark::State& state) {
  const std::string batch = make_batch(static_cast<std::size_t>(state.range(0)), Compression::none);
  BenchPartition partition;
  for (std::size_t bytes = 0; bytes < kKeptBytes / 4; bytes += batch.size()) {
    if (!partition.append(batch)) return state.SkipWithError("the append failed");
  }
  partition.log().publish(partition.log().next());
  PartitionReader reader = partition.log().reader();
  Offset at{0};
  std::int64_t records = 0;
  std::int64_t bytes = 0;
  for (auto _ : state) {
    if (at == reader.next()) at = Offset{0};
    const auto read = reader.read(at, static_cast<std::size_t>(state.range(1)));
    if (!read) return state.SkipWithError("the read failed");
    records += read->next.value - at.value;
    bytes += static_cast<std::int64_t>(read->bytes.size());
    at = read->next;
  }
  count(state, records, bytes);
}
BENCHMARK(read_batches)
    ->ArgNames({"record", "read"})
    ->Args({1024, 64 << 10})
    ->Args({1024, 1 << 20})
    ->Args({100, 1 << 20})
    ->UseRealTime();

/// What a seek costs, compared with reading on.
void seek(benchmark::State& state) {
  const std::string batch = make_batch(100, Compression::none);
  BenchPartition partition;
  for (std::size_t bytes = 0; bytes < kKeptBytes / 2; bytes += batch.size()) {
    if (!partition.append(batch)) return state.SkipWithError("the append failed");
  }
  partition.log().publish(partition.log().next());
  PartitionReader reader = partition.log().reader();
  const auto end = static_cast<std::uint64_t>(reader.next().value);
  std::uint64_t at = 1;
  for (auto _ : state) {
    at = (at * 6364136223846793005ULL + 1442695040888963407ULL);
    const auto read = reader.read(Offset{static_cast<std::int64_t>((at >> 20U) % end)}, 1);
    if (!read) return state.SkipWithError("the read failed");
    benchmark::DoNotOptimize(read->bytes.data());
  }
}
BENCHMARK(seek)->UseRealTime();

/// All records of a batch of 64 KiB.
void read_records(benchmark::State& state) {
  const std::string batch = make_batch(100, Compression(state.range(0)));
  const BatchView view = BatchView::parse(batch).value();
  std::int64_t records = 0;
  for (auto _ : state) {
    auto reader = RecordReader::open(view);
    RecordView record;
    while (reader->next(record).value()) ++records;
  }
  count(state, records,
        static_cast<std::int64_t>(state.iterations()) * static_cast<std::int64_t>(kBatchBytes));
}
BENCHMARK(read_records)->ArgName("codec")->DenseRange(0, 4)->UseRealTime();

}  // namespace
}  // namespace baton
