#include "base/logging/log.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <spdlog/formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

namespace baton {
namespace {

using Json = nlohmann::ordered_json;

std::string dump(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

bool is_name(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

/// A JSON number if `text` is a number that prints as the same text; otherwise the text.
Json value_of(std::string_view text) {
  std::int64_t number = 0;
  const auto [stop, failure] = std::from_chars(text.begin(), text.end(), number);
  const bool whole = failure == std::errc{} && stop == text.end();
  if (whole && fmt::format("{}", number) == text) return number;
  return std::string(text);
}

/// Takes the word at the front of `rest`; a word that begins with a quote ends at the closing one.
std::string take_word(std::string_view& rest) {
  if (!rest.starts_with('"')) {
    const auto end = std::min(rest.find(' '), rest.size());
    std::string word(rest.substr(0, end));
    rest.remove_prefix(end);
    return word;
  }
  std::string word;
  rest.remove_prefix(1);
  while (!rest.empty() && rest.front() != '"') {
    if (rest.front() == '\\' && rest.size() > 1) rest.remove_prefix(1);
    word.push_back(rest.front());
    rest.remove_prefix(1);
  }
  if (!rest.empty()) rest.remove_prefix(1);
  return word;
}

/// Takes the name of the field that `rest` begins with.
std::optional<std::string> take_name(std::string_view& rest) {
  const auto equals = rest.find('=');
  if (equals == std::string_view::npos || !is_name(rest.substr(0, equals))) return std::nullopt;
  std::string name(rest.substr(0, equals));
  rest.remove_prefix(equals + 1);
  return name;
}

class LineFormatter final : public spdlog::formatter {
 public:
  explicit LineFormatter(bool json) : json_(json) {}

  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) override {
    const auto level_view = spdlog::level::to_string_view(message.level);
    const std::string_view level(level_view.data(), level_view.size());
    const std::string_view text(message.payload.data(), message.payload.size());
    const std::string line = log_line(message.time, level, text, json_);
    out.append(line.data(), line.data() + line.size());
    out.push_back('\n');
  }
  [[nodiscard]] std::unique_ptr<formatter> clone() const override {
    return std::make_unique<LineFormatter>(json_);
  }

 private:
  bool json_;
};

spdlog::level::level_enum spdlog_level(LogLevel level) {
  switch (level) {
    case LogLevel::debug: return spdlog::level::debug;
    case LogLevel::info: return spdlog::level::info;
    case LogLevel::warning: return spdlog::level::warn;
    case LogLevel::error: return spdlog::level::err;
  }
  return spdlog::level::info;
}

}  // namespace

std::string log_time(std::chrono::system_clock::time_point at) {
  const auto whole = std::chrono::floor<std::chrono::seconds>(at);
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(at - whole).count();
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(whole)), ms);
}

std::string log_line(std::chrono::system_clock::time_point time, std::string_view level,
                     std::string_view message, bool json) {
  return json ? json_log_line(log_time(time), level, message)
              : fmt::format("{} {} {}", log_time(time), level, message);
}

std::string json_log_line(std::string_view time, std::string_view level, std::string_view message) {
  Json line{{"time", time}, {"level", level}};
  std::string words;
  std::string_view rest = message;
  while (!rest.empty()) {
    if (rest.front() == ' ') {
      rest.remove_prefix(1);
    } else if (const auto name = take_name(rest)) {
      const bool quoted = rest.starts_with('"');
      const std::string word = take_word(rest);
      // A field of the message never replaces one that the line itself has.
      line.emplace(*name, quoted ? Json(word) : value_of(word));
    } else {
      const auto end = std::min(rest.find(' '), rest.size());
      if (!words.empty()) words.push_back(' ');
      words += rest.substr(0, end);
      rest.remove_prefix(end);
    }
  }
  if (!words.empty()) line.emplace("text", words);
  return dump(line);
}

std::string log_value(std::string_view value) {
  const bool plain = !value.empty() && std::ranges::all_of(value, [](char c) {
    return c > ' ' && c != '"' && c != '\\' && c != '\x7f';
  });
  if (plain) return std::string(value);
  std::string quoted = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') quoted.push_back('\\');
    // A control character must not break the line.
    const bool control = static_cast<unsigned char>(c) < ' ' || c == '\x7f';
    quoted.push_back(control ? ' ' : c);
  }
  quoted.push_back('"');
  return quoted;
}

void start_log(LogLevel level, bool json) {
  auto logger =
      std::make_shared<spdlog::logger>("baton", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_formatter(std::make_unique<LineFormatter>(json));
  logger->set_level(spdlog_level(level));
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
}

void log_event(LogLevel level, std::string_view fields) {
  spdlog::log(spdlog_level(level), "{}", fields);
}

void set_log_level(LogLevel level) { spdlog::default_logger_raw()->set_level(spdlog_level(level)); }

}  // namespace baton
