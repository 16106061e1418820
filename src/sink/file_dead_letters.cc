#include "sink/file_dead_letters.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string_view>

namespace baton::pipeline {
namespace {

/// Records are bytes, and JSON is text.
std::string base64(std::string_view bytes) {
  static constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string result;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    const std::size_t length = std::min<std::size_t>(3, bytes.size() - i);
    for (std::size_t j = 0; j < 3; ++j) {
      group = (group << 8U) | (j < length ? static_cast<unsigned char>(bytes[i + j]) : 0U);
    }
    for (std::size_t j = 0; j < 4; ++j) {
      result += j <= length ? kDigits[(group >> (18 - (6 * j))) & 63U] : '=';
    }
  }
  return result;
}

Error failure(std::string_view what, const std::string& path) {
  return {Errc::io_error, fmt::format("{} {}: {}", what, path, std::strerror(errno))};  // NOLINT
}

}  // namespace

std::string to_json_line(const DeadLetter& letter) {
  nlohmann::json headers = nlohmann::json::object();
  for (const auto& [name, value] : letter.record->headers) headers[name] = value;
  for (const auto& [name, value] : letter.headers()) headers[name] = value;
  const nlohmann::json line{{"id", letter.id()},
                            {"headers", std::move(headers)},
                            {"key", base64(letter.record->key)},
                            {"value", base64(letter.record->value)}};
  return line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

Result<std::unique_ptr<FileDeadLetters>> FileDeadLetters::open(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0) return failure("cannot open", path);
  return std::unique_ptr<FileDeadLetters>(new FileDeadLetters(path, file));
}

FileDeadLetters::~FileDeadLetters() { ::close(file_); }

Status FileDeadLetters::write(std::span<const DeadLetter> letters) {
  std::string lines = "\n";
  for (const DeadLetter& letter : letters) lines += to_json_line(letter);
  const std::scoped_lock lock(mutex_);
  // Half a line, of a write that failed or a process that died, is not continued.
  const off_t end = ::lseek(file_, 0, SEEK_END);
  char last = '\n';
  if (end > 0 && ::pread(file_, &last, 1, end - 1) != 1) return failure("cannot read", path_);
  if (last == '\n') lines.erase(0, 1);
  for (std::string_view rest = lines; !rest.empty();) {
    const ssize_t written = ::write(file_, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return failure("cannot write to", path_);
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  if (::fdatasync(file_) != 0) return failure("cannot sync", path_);
  return {};
}

}  // namespace baton::pipeline
