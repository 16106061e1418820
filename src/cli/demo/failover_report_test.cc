#include "cli/demo/failover_report.h"

#include <string>

#include <gtest/gtest.h>

namespace baton::cli {
namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(FailoverReport, Percentiles) {
  EXPECT_EQ(percentile({}, 0.5), 0);
  EXPECT_EQ(percentile({3}, 0.99), 3);
  EXPECT_EQ(percentile({4, 1, 3, 2}, 0.5), 2);
  EXPECT_EQ(percentile({4, 1, 3, 2}, 0.99), 4);
  EXPECT_EQ(percentile({4, 1, 3, 2}, 1), 4);
}

TEST(FailoverReport, TableAndPlotNameEveryRow) {
  FailoverRow kill{.store = "nats",
                   .profile = "fast",
                   .scenario = "kill",
                   .reference_ms = 11'000,
                   .ms = {900, 1'500, 1'200}};
  FailoverRow restart{
      .store = "nats", .profile = "fast", .scenario = "restart", .ms = {80}, .moves = 2};
  const std::string table = failover_table({kill, restart});
  EXPECT_TRUE(has(table, "1.20 s")) << table;
  EXPECT_TRUE(has(table, "11.00 s")) << table;
  EXPECT_TRUE(has(table, "restart (2 MOVED)")) << table;
  const std::string svg = failover_svg({kill, restart});
  EXPECT_TRUE(has(svg, "kill, nats (fast)")) << svg;
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
}

}  // namespace
}  // namespace baton::cli
