#include "cli/base/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <optional>

#include <fmt/format.h>

#include "cli/base/interrupt.h"

namespace baton::cli {
namespace {

constexpr std::size_t kColumnsMin = 20;
constexpr std::size_t kSizeMax = 10'000;
constexpr std::string_view kEnterScreen = "\x1b[?1049h\x1b[?25l";
constexpr std::string_view kLeaveScreen = "\x1b[?25h\x1b[?1049l";
constexpr std::string_view kReset = "\x1b[0m";

std::optional<bool> g_colours;  // NOLINT: found out once; tests set it.

const char* variable(const char* name) {
  return std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody sets any.
}

/// A size from the environment; nullopt if it is not a number in a sensible range.
std::optional<std::size_t> size_from(const char* name) {
  const char* const text = variable(name);
  if (text == nullptr) return std::nullopt;
  const std::string_view digits = text;
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(digits.begin(), digits.end(), value);
  if (error != std::errc{} || end != digits.end() || value == 0 || value > kSizeMax) {
    return std::nullopt;
  }
  return value;
}

bool find_colours() {
  const char* const none = variable("NO_COLOR");
  const char* const term = variable("TERM");
  const bool refused = none != nullptr && *none != '\0';
  const bool dumb = term == nullptr || std::string_view(term) == "dumb";
  return !refused && !dumb && is_terminal(STDOUT_FILENO);
}

std::string_view escape_of(Tone tone) {
  switch (tone) {
    case Tone::head: return "\x1b[1m";
    case Tone::good: return "\x1b[32m";
    case Tone::notice: return "\x1b[33m";
    case Tone::alarm: return "\x1b[1;31m";
  }
  return {};
}

/// The length of the escape sequence at the front of `text`; 0 when there is none.
std::size_t escape_length(std::string_view text) {
  if (!text.starts_with("\x1b[")) return 0;
  const auto end = text.find_first_not_of("0123456789;?", 2);
  return end == std::string_view::npos ? text.size() : end + 1;
}

bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xc0U) == 0x80U; }

}  // namespace

bool is_terminal(int fd) { return ::isatty(fd) == 1; }

TerminalSize terminal_size(int fd) {
  winsize window{};
  if (is_terminal(fd) && ::ioctl(fd, TIOCGWINSZ, &window) == 0 && window.ws_col > 0) {  // NOLINT
    return {.columns = std::max<std::size_t>(window.ws_col, kColumnsMin),
            .rows = std::max<std::size_t>(window.ws_row, 2)};
  }
  TerminalSize size;
  size.columns = std::max(size_from("COLUMNS").value_or(size.columns), kColumnsMin);
  size.rows = size_from("LINES").value_or(size.rows);
  return size;
}

bool confirmed(bool yes, std::string_view question) {
  if (yes || !is_terminal(STDIN_FILENO)) return true;
  std::fflush(stdout);
  fmt::print(stderr, "{} [y/N] ", question);
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "yes";
}

bool shows_colours() {
  if (!g_colours) g_colours = find_colours();
  return *g_colours;
}

void force_colours(bool on) { g_colours = on; }

std::string paint(Tone tone, std::string_view text) {
  if (!shows_colours() || text.empty()) return std::string(text);
  return fmt::format("{}{}{}", escape_of(tone), text, kReset);
}

std::size_t visible_width(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) {
    if (const std::size_t length = escape_length(text); length > 0) {
      text.remove_prefix(length);
      continue;
    }
    if (!continues_character(text.front())) ++width;
    text.remove_prefix(1);
  }
  return width;
}

std::size_t table_width(std::string_view table) {
  std::size_t width = 0;
  while (true) {
    const auto end = table.find('\n');
    width = std::max(width, visible_width(table.substr(0, end)));
    if (end == std::string_view::npos) return width;
    table.remove_prefix(end + 1);
  }
}

std::string cut_line(std::string_view line, std::size_t columns) {
  if (visible_width(line) <= columns) return std::string(line);
  std::string out;
  bool coloured = false;
  for (std::size_t width = 0; !line.empty();) {
    if (const std::size_t length = escape_length(line); length > 0) {
      coloured = true;
      out += line.substr(0, length);
      line.remove_prefix(length);
      continue;
    }
    if (!continues_character(line.front()) && ++width > columns) break;
    out.push_back(line.front());
    line.remove_prefix(1);
  }
  if (coloured) out += kReset;
  return out;
}

std::string fit_screen(std::string_view text, TerminalSize size) {
  std::vector<std::string> lines;
  while (true) {
    const auto end = text.find('\n');
    lines.push_back(cut_line(text.substr(0, end), size.columns));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  const std::size_t rows = std::max<std::size_t>(size.rows, 2);
  if (lines.size() > rows) {
    const std::size_t missing = lines.size() - (rows - 1);
    lines.resize(rows - 1);
    lines.push_back(
        cut_line(fmt::format("... {} more lines do not fit on the screen", missing), size.columns));
  }
  return fmt::format("{}", fmt::join(lines, "\n"));
}

std::vector<std::string> wrap(std::string_view text, std::size_t width) {
  std::vector<std::string> lines;
  while (true) {
    const auto end = std::min(text.find('\n'), text.size());
    std::string line;
    std::string_view rest = text.substr(0, end);
    while (!rest.empty()) {
      const auto space = std::min(rest.find(' '), rest.size());
      const std::string_view word = rest.substr(0, space);
      rest.remove_prefix(std::min(space + 1, rest.size()));
      if (word.empty()) continue;
      if (!line.empty() && visible_width(line) + 1 + visible_width(word) > width) {
        lines.push_back(std::move(line));
        line.clear();
      }
      if (!line.empty()) line.push_back(' ');
      line += word;
    }
    lines.push_back(std::move(line));
    if (end == text.size()) return lines;
    text.remove_prefix(end + 1);
  }
}

AlternateScreen::AlternateScreen() {
  set_last_words(kLeaveScreen);
  fmt::print("{}", kEnterScreen);
  std::fflush(stdout);
}

AlternateScreen::~AlternateScreen() {
  fmt::print("{}", kLeaveScreen);
  std::fflush(stdout);
  set_last_words({});
}

void AlternateScreen::draw(std::string_view text) {
  // Each line is cleared behind its end, and then the rest of the screen: this avoids flicker.
  std::string frame = "\x1b[H";
  for (const char c : fit_screen(text, terminal_size(STDOUT_FILENO))) {
    if (c == '\n') frame += "\x1b[K\r";
    frame.push_back(c);
  }
  fmt::print("{}\x1b[K\x1b[J", frame);
  std::fflush(stdout);
}

}  // namespace baton::cli
