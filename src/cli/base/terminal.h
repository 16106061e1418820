#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// The terminal that a command writes to: its size, its colours, the width of a text on
/// it.
namespace baton::cli {

struct TerminalSize {
  std::size_t columns = 80;
  std::size_t rows = 24;
};

/// The size that the terminal `fd` reports. If `fd` is not a terminal: $COLUMNS by $LINES, or 80 by
/// 24.
TerminalSize terminal_size(int fd);

bool is_terminal(int fd);

/// Asks "QUESTION [y/N] " before something is destroyed, if standard input is a terminal and
/// `yes` was not given. Scripts are not asked. Returns false unless the answer is "y" or
/// "yes".
bool confirmed(bool yes, std::string_view question);

/// What a state means to the reader.
enum class Tone : std::uint8_t { head, good, notice, alarm };

/// Whether standard output shows colours: it is a terminal other than "dumb", and NO_COLOR is not
/// set.
bool shows_colours();
/// Overrides the result of shows_colours(), for tests.
void force_colours(bool on);
/// `text` in the colour of `tone`; unchanged if standard output shows no colours.
std::string paint(Tone tone, std::string_view text);

/// Columns that `text` takes on a terminal: characters of UTF-8, without escape sequences.
std::size_t visible_width(std::string_view text);
/// The width of the widest line.
std::size_t table_width(std::string_view table);
/// The beginning of a line that fits into `columns`. Colours that were switched on are switched
/// off.
std::string cut_line(std::string_view line, std::size_t columns);
/// The lines of `text` that fit on a screen, each cut to its width. If some do not fit, the last
/// line says how many are missing.
std::string fit_screen(std::string_view text, TerminalSize size);

/// `text` broken between words into lines of at most `width` characters. A longer word has a line
/// of its own; "\n" begins a new line.
std::vector<std::string> wrap(std::string_view text, std::size_t width);

/// The alternate screen of the terminal on standard output, for views that are redrawn: nothing of
/// them stays in the scroll-back. Entered by the constructor, left by the destructor or when a
/// second interrupt ends the process. At most one at a time; used by the main thread.
class AlternateScreen {
 public:
  AlternateScreen();
  AlternateScreen(const AlternateScreen&) = delete;
  AlternateScreen& operator=(const AlternateScreen&) = delete;
  ~AlternateScreen();

  /// Replaces the content of the screen by `text`, cut to the screen's present size.
  static void draw(std::string_view text);
};

}  // namespace baton::cli
