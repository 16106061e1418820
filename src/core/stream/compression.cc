#include "core/stream/compression.h"

#include <lz4frame.h>

#include <algorithm>
#include <array>
#include <memory>

#include <fmt/format.h>
#include <snappy-c.h>
#include <zlib.h>
#include <zstd.h>

#include "base/assert.h"
#include "core/stream/big_endian.h"

namespace baton {
namespace {

constexpr std::array<std::string_view, 5> kCompressionNames{"none", "gzip", "snappy", "lz4",
                                                            "zstd"};
constexpr int kZstdLevel = 3;
constexpr int kGzipWindowBits = 15 + 16;  // 16: a gzip header, not zlib's own.
constexpr int kGzipMemory = 8;
// The least that an output buffer begins with.
constexpr std::size_t kOutputBytesMin = 4096;

// snappy-java's frame: the magic, two versions, then blocks with their length before them.
constexpr std::string_view kXerialMagic{"\x82SNAPPY\0", 8};
constexpr std::size_t kXerialHeaderBytes = 16;
constexpr std::int32_t kXerialVersion = 1;
constexpr std::size_t kXerialBlockBytes = std::size_t{32} << 10U;

Error damaged(Compression compression, std::string_view why) {
  return {Errc::malformed, fmt::format("{}: {}", compression_name(compression), why)};
}
Error too_large(Compression compression, std::size_t bytes_max) {
  return {Errc::resource_exhausted,
          fmt::format("{}: more than the limit of {} bytes when decompressed",
                      compression_name(compression), bytes_max)};
}
Error failed(Compression compression, std::string_view why) {
  return {Errc::internal, fmt::format("{}: {}", compression_name(compression), why)};
}

/// The output of a decompression: grows by doubling, up to a limit and one byte more, so that
/// reaching the limit exactly can be told from going past it.
class Output {
 public:
  Output(std::size_t input_bytes, std::size_t bytes_max) : bytes_max_(bytes_max) {
    bytes_.resize(std::min(std::max(kOutputBytesMin, 4 * input_bytes), bytes_max + 1));
  }

  char* room() { return bytes_.data() + used_; }
  [[nodiscard]] std::size_t room_bytes() const { return bytes_.size() - used_; }
  void add(std::size_t count) { used_ += count; }
  /// Makes room when there is none; false when there may be no more.
  bool grow() {
    if (used_ > bytes_max_) return false;
    if (room_bytes() == 0) bytes_.resize(std::min(2 * bytes_.size(), bytes_max_ + 1));
    return true;
  }
  [[nodiscard]] bool too_large() const { return used_ > bytes_max_; }
  std::string take() {
    bytes_.resize(used_);
    return std::move(bytes_);
  }

 private:
  std::size_t bytes_max_;
  std::string bytes_;
  std::size_t used_ = 0;
};

// zlib's pointers are to unsigned bytes, and its input is not const.
Bytef* zlib_bytes(const char* bytes) {
  return reinterpret_cast<Bytef*>(const_cast<char*>(bytes));  // NOLINT
}

void set_input(z_stream& stream, std::string_view bytes) {
  const char* const first = bytes.data();
  stream.next_in = zlib_bytes(first);
  stream.avail_in = static_cast<uInt>(bytes.size());
}

Status gzip_compress(std::string_view bytes, std::string& out) {
  z_stream stream{};
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindowBits, kGzipMemory,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    return failed(Compression::gzip, "cannot begin");
  }
  const std::size_t at = out.size();
  out.resize(at + deflateBound(&stream, bytes.size()));
  set_input(stream, bytes);
  stream.next_out = zlib_bytes(out.data() + at);
  stream.avail_out = static_cast<uInt>(out.size() - at);
  const int result = deflate(&stream, Z_FINISH);
  out.resize(at + stream.total_out);
  deflateEnd(&stream);
  if (result != Z_STREAM_END) return failed(Compression::gzip, "did not finish");
  return {};
}

// Several members one after the other are one text, as with every gzip reader.
Result<std::string> gunzip(z_stream& stream, std::size_t input_bytes, std::size_t bytes_max) {
  Output out(input_bytes, bytes_max);
  while (out.grow()) {
    stream.next_out = zlib_bytes(out.room());
    stream.avail_out = static_cast<uInt>(out.room_bytes());
    const int result = inflate(&stream, Z_NO_FLUSH);
    out.add(out.room_bytes() - stream.avail_out);
    if (result == Z_STREAM_END) {
      if (stream.avail_in == 0) break;
      inflateReset(&stream);
      continue;
    }
    if (result != Z_OK && result != Z_BUF_ERROR) return damaged(Compression::gzip, "damaged");
    if (stream.avail_in == 0 && stream.avail_out != 0) {
      return damaged(Compression::gzip, "cut short");
    }
  }
  if (out.too_large()) return too_large(Compression::gzip, bytes_max);
  return out.take();
}

Result<std::string> gzip_decompress(std::string_view bytes, std::size_t bytes_max) {
  z_stream stream{};
  if (inflateInit2(&stream, kGzipWindowBits) != Z_OK) {
    return failed(Compression::gzip, "cannot begin");
  }
  set_input(stream, bytes);
  auto result = gunzip(stream, bytes.size(), bytes_max);
  inflateEnd(&stream);
  return result;
}

Status snappy_compress_block(std::string_view block, std::string& out) {
  const std::size_t at = out.size();
  std::size_t count = snappy_max_compressed_length(block.size());
  out.resize(at + sizeof(std::int32_t) + count);
  char* const to = out.data() + at;
  if (snappy_compress(block.data(), block.size(), to + sizeof(std::int32_t), &count) != SNAPPY_OK) {
    return failed(Compression::snappy, "did not finish");
  }
  store_big(to, static_cast<std::int32_t>(count));
  out.resize(at + sizeof(std::int32_t) + count);
  return {};
}

Status snappy_compress_framed(std::string_view bytes, std::string& out) {
  const std::size_t at = out.size();
  out.append(kXerialMagic);
  out.resize(at + kXerialHeaderBytes);
  store_big(out.data() + at + kXerialMagic.size(), kXerialVersion);
  store_big(out.data() + at + kXerialMagic.size() + sizeof kXerialVersion, kXerialVersion);
  while (!bytes.empty()) {
    const std::string_view block = bytes.substr(0, kXerialBlockBytes);
    BATON_TRY_STATUS(snappy_compress_block(block, out));
    bytes.remove_prefix(block.size());
  }
  return {};
}

Status snappy_decompress_block(std::string_view block, std::size_t bytes_max, std::string& out) {
  std::size_t count = 0;
  if (snappy_uncompressed_length(block.data(), block.size(), &count) != SNAPPY_OK) {
    return damaged(Compression::snappy, "damaged");
  }
  if (count > bytes_max - out.size()) return too_large(Compression::snappy, bytes_max);
  // No byte of snappy stands for more than some 21 of its output (a copy of 64 takes three), so a
  // larger claim is a lie that would only take memory.
  constexpr std::size_t kGrowthMax = 64;
  if (count / kGrowthMax > block.size()) return damaged(Compression::snappy, "damaged");
  const std::size_t at = out.size();
  out.resize(at + count);
  if (snappy_uncompress(block.data(), block.size(), out.data() + at, &count) != SNAPPY_OK) {
    return damaged(Compression::snappy, "damaged");
  }
  return {};
}

Result<std::string> snappy_decompress(std::string_view bytes, std::size_t bytes_max) {
  std::string out;
  if (!bytes.starts_with(kXerialMagic)) {
    BATON_TRY_STATUS(snappy_decompress_block(bytes, bytes_max, out));
    return out;
  }
  if (bytes.size() < kXerialHeaderBytes) return damaged(Compression::snappy, "cut short");
  bytes.remove_prefix(kXerialHeaderBytes);
  while (!bytes.empty()) {
    if (bytes.size() < sizeof(std::int32_t)) return damaged(Compression::snappy, "cut short");
    const char* const length = bytes.data();
    const auto count = load_big<std::uint32_t>(length);
    bytes.remove_prefix(sizeof count);
    if (count > bytes.size()) return damaged(Compression::snappy, "cut short");
    BATON_TRY_STATUS(snappy_decompress_block(bytes.substr(0, count), bytes_max, out));
    bytes.remove_prefix(count);
  }
  return out;
}

// Kafka's Java client reads independent blocks only.
LZ4F_preferences_t lz4_preferences() {
  LZ4F_preferences_t preferences{};
  preferences.frameInfo.blockSizeID = LZ4F_max64KB;
  preferences.frameInfo.blockMode = LZ4F_blockIndependent;
  return preferences;
}

Status lz4_compress(std::string_view bytes, std::string& out) {
  const LZ4F_preferences_t preferences = lz4_preferences();
  const std::size_t at = out.size();
  out.resize(at + LZ4F_compressFrameBound(bytes.size(), &preferences));
  const std::size_t count = LZ4F_compressFrame(out.data() + at, out.size() - at, bytes.data(),
                                               bytes.size(), &preferences);
  if (LZ4F_isError(count) != 0) return failed(Compression::lz4, LZ4F_getErrorName(count));
  out.resize(at + count);
  return {};
}

using Lz4Context =
    std::unique_ptr<LZ4F_dctx,
                    decltype([](LZ4F_dctx* context) { LZ4F_freeDecompressionContext(context); })>;

Result<std::string> lz4_decompress(std::string_view bytes, std::size_t bytes_max) {
  LZ4F_dctx* raw = nullptr;
  if (LZ4F_isError(LZ4F_createDecompressionContext(&raw, LZ4F_VERSION)) != 0) {
    return failed(Compression::lz4, "cannot begin");
  }
  const Lz4Context context(raw);
  Output out(bytes.size(), bytes_max);
  std::size_t hint = 1;
  while (hint != 0 && out.grow()) {
    std::size_t taken = bytes.size();
    std::size_t made = out.room_bytes();
    hint = LZ4F_decompress(raw, out.room(), &made, bytes.data(), &taken, nullptr);
    if (LZ4F_isError(hint) != 0) return damaged(Compression::lz4, LZ4F_getErrorName(hint));
    out.add(made);
    bytes.remove_prefix(taken);
    if (hint != 0 && taken == 0 && made == 0) return damaged(Compression::lz4, "cut short");
  }
  if (out.too_large()) return too_large(Compression::lz4, bytes_max);
  if (!bytes.empty()) return damaged(Compression::lz4, "bytes after the end");
  return out.take();
}

Status zstd_compress(std::string_view bytes, std::string& out) {
  const std::size_t at = out.size();
  out.resize(at + ZSTD_compressBound(bytes.size()));
  const std::size_t count =
      ZSTD_compress(out.data() + at, out.size() - at, bytes.data(), bytes.size(), kZstdLevel);
  if (ZSTD_isError(count) != 0) return failed(Compression::zstd, ZSTD_getErrorName(count));
  out.resize(at + count);
  return {};
}

using ZstdContext =
    std::unique_ptr<ZSTD_DCtx, decltype([](ZSTD_DCtx* context) { ZSTD_freeDCtx(context); })>;

// Streaming, because a frame need not say its size, and one that does may lie.
Result<std::string> zstd_decompress(std::string_view bytes, std::size_t bytes_max) {
  const ZstdContext context(ZSTD_createDCtx());
  if (context == nullptr) return failed(Compression::zstd, "cannot begin");
  Output out(bytes.size(), bytes_max);
  ZSTD_inBuffer in{.src = bytes.data(), .size = bytes.size(), .pos = 0};
  std::size_t hint = 1;
  while ((hint != 0 || in.pos < in.size) && out.grow()) {
    ZSTD_outBuffer buffer{.dst = out.room(), .size = out.room_bytes(), .pos = 0};
    const std::size_t before = in.pos;
    hint = ZSTD_decompressStream(context.get(), &buffer, &in);
    if (ZSTD_isError(hint) != 0) return damaged(Compression::zstd, ZSTD_getErrorName(hint));
    out.add(buffer.pos);
    const bool progress = in.pos != before || buffer.pos != 0;
    if (hint != 0 && !progress) return damaged(Compression::zstd, "cut short");
  }
  if (out.too_large()) return too_large(Compression::zstd, bytes_max);
  return out.take();
}

Error unknown(Compression compression) {
  return {Errc::malformed,
          fmt::format("compression {}; the greatest known is {} (zstd)",
                      static_cast<int>(compression), kCompressionNames.size() - 1)};
}

}  // namespace

std::string_view compression_name(Compression compression) {
  const auto number = static_cast<std::size_t>(compression);
  return number < kCompressionNames.size() ? kCompressionNames[number] : "unknown";
}

Result<Compression> parse_compression(std::string_view name) {
  const auto* const found = std::ranges::find(kCompressionNames, name);
  if (found != kCompressionNames.end()) return Compression(found - kCompressionNames.begin());
  return Error{Errc::invalid_argument, fmt::format("compression \"{}\"; it must be one of {}", name,
                                                   fmt::join(kCompressionNames, ", "))};
}

Status compress(Compression compression, std::string_view bytes, std::string& out) {
  switch (compression) {
    case Compression::none: out.append(bytes); return {};
    case Compression::gzip: return gzip_compress(bytes, out);
    case Compression::snappy: return snappy_compress_framed(bytes, out);
    case Compression::lz4: return lz4_compress(bytes, out);
    case Compression::zstd: return zstd_compress(bytes, out);
  }
  return unknown(compression);
}

Result<std::string> decompress(Compression compression, std::string_view bytes,
                               std::size_t bytes_max) {
  switch (compression) {
    case Compression::none:
      if (bytes.size() > bytes_max) return too_large(compression, bytes_max);
      return std::string(bytes);
    case Compression::gzip: return gzip_decompress(bytes, bytes_max);
    case Compression::snappy: return snappy_decompress(bytes, bytes_max);
    case Compression::lz4: return lz4_decompress(bytes, bytes_max);
    case Compression::zstd: return zstd_decompress(bytes, bytes_max);
  }
  return unknown(compression);
}

}  // namespace baton
