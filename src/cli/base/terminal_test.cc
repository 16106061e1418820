#include "cli/base/terminal.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace baton::cli {
namespace {

using Lines = std::vector<std::string>;

TEST(Terminal, WrapsBetweenWords) {
  EXPECT_EQ(wrap("one two three", 7), (Lines{"one two", "three"}));
  EXPECT_EQ(wrap("one two three", 8), (Lines{"one two", "three"}));
  EXPECT_EQ(wrap("a unbreakable b", 5), (Lines{"a", "unbreakable", "b"}));
  EXPECT_EQ(wrap("first\n\nsecond  part", 20), (Lines{"first", "", "second part"}));
  EXPECT_EQ(wrap("", 20), (Lines{""}));
}

TEST(Terminal, WidthCountsCharactersAndNoEscapes) {
  EXPECT_EQ(visible_width("abc"), 3U);
  EXPECT_EQ(visible_width("ü€"), 2U);
  EXPECT_EQ(visible_width("\x1b[1;31mNOBODY\x1b[0m"), 6U);
}

TEST(Terminal, CutsALineAndSwitchesItsColourOff) {
  EXPECT_EQ(cut_line("short", 10), "short");
  EXPECT_EQ(cut_line("0123456789", 4), "0123");
  EXPECT_EQ(cut_line("üüüü", 2), "üü");
  EXPECT_EQ(cut_line("\x1b[31mred and long\x1b[0m", 3), "\x1b[31mred\x1b[0m");
}

TEST(Terminal, AScreenfulSaysHowManyLinesAreMissing) {
  EXPECT_EQ(fit_screen("a\nb\nc", {.columns = 80, .rows = 3}), "a\nb\nc");
  EXPECT_EQ(fit_screen("a\nb\nc\nd", {.columns = 80, .rows = 3}),
            "a\nb\n... 2 more lines do not fit on the screen");
  EXPECT_EQ(fit_screen("abcdef\nb", {.columns = 3, .rows = 9}), "abc\nb");
}

TEST(Terminal, PaintsOnlyWhereColoursShow) {
  force_colours(false);
  EXPECT_EQ(paint(Tone::alarm, "GONE"), "GONE");
  force_colours(true);
  EXPECT_EQ(paint(Tone::alarm, "GONE"), "\x1b[1;31mGONE\x1b[0m");
  EXPECT_EQ(paint(Tone::alarm, ""), "");
  force_colours(false);
}

}  // namespace
}  // namespace baton::cli
