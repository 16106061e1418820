#include "cli/demo/failover_report.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace baton::cli {
namespace {

constexpr double kRowPixels = 26;
constexpr double kLeftPixels = 330;
constexpr double kScalePixels = 480;
constexpr double kScaleFirstMs = 1;
constexpr double kScaleLastMs = 20'000;

std::string duration_text(double ms) {
  return ms < 1'000 ? fmt::format("{:.0f} ms", ms) : fmt::format("{:.2f} s", ms / 1'000);
}

std::string label_of(const FailoverRow& row) {
  return fmt::format("{}, {} ({})", row.scenario, row.store, row.profile);
}

double x_of(double ms) {
  const double place = std::log(std::clamp(ms, kScaleFirstMs, kScaleLastMs) / kScaleFirstMs) /
                       std::log(kScaleLastMs / kScaleFirstMs);
  return kLeftPixels + (kScalePixels * place);
}

std::string svg_row(const FailoverRow& row, double y) {
  const double middle = y + 9;
  const double p50 = x_of(percentile(row.ms, 0.5));
  const double worst = x_of(percentile(row.ms, 1));
  std::string out = fmt::format(
      "<text x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"end\">{}</text>\n"
      "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"18\" fill=\"#3b6fb6\"/>\n"
      "<line x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#1d3a63\"/>\n",
      kLeftPixels - 10, middle + 5, label_of(row), kLeftPixels, y, p50 - kLeftPixels, p50, worst,
      middle, middle);
  if (row.reference_ms) {
    const double at = x_of(*row.reference_ms);
    out += fmt::format(
        "<line x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#c0392b\" "
        "stroke-width=\"3\"/>\n",
        at, at, y - 2, y + 20);
  }
  return out + fmt::format("<text x=\"{:.0f}\" y=\"{:.0f}\">{} / {}{}</text>\n",
                           kLeftPixels + kScalePixels + 12, middle + 5,
                           duration_text(percentile(row.ms, 0.5)),
                           duration_text(percentile(row.ms, 1)),
                           row.reference_ms
                               ? fmt::format(" (reference {})", duration_text(*row.reference_ms))
                               : "");
}

}  // namespace

double percentile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const double rank = std::ceil(share * static_cast<double>(values.size()));
  const auto at = static_cast<std::size_t>(std::max(rank, 1.0)) - 1;
  return values[std::min(at, values.size() - 1)];
}

std::string failover_table(const std::vector<FailoverRow>& rows) {
  std::vector<std::vector<std::string>> table{
      {"SCENARIO", "STORE", "PROFILE", "RUNS", "P50", "P99", "MAX", "REFERENCE"}};
  for (const FailoverRow& row : rows) {
    const std::string scenario =
        row.moves == 0 ? row.scenario : fmt::format("{} ({} MOVED)", row.scenario, row.moves);
    table.push_back({scenario, row.store, row.profile, fmt::format("{}", row.ms.size()),
                     duration_text(percentile(row.ms, 0.5)),
                     duration_text(percentile(row.ms, 0.99)), duration_text(percentile(row.ms, 1)),
                     row.reference_ms ? duration_text(*row.reference_ms) : "-"});
  }
  return format_table(table);
}

Json to_json(const FailoverRow& row) {
  Json out{{"store", row.store},
           {"profile", row.profile},
           {"scenario", row.scenario},
           {"runs", row.ms.size()},
           {"p50_ms", percentile(row.ms, 0.5)},
           {"p99_ms", percentile(row.ms, 0.99)},
           {"max_ms", percentile(row.ms, 1)}};
  if (row.reference_ms) out["reference_ms"] = *row.reference_ms;
  out["moves"] = row.moves;
  out["ms"] = row.ms;
  return out;
}

std::string failover_svg(const std::vector<FailoverRow>& rows) {
  const double height = 80 + (kRowPixels * static_cast<double>(rows.size()));
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"1080\" height=\"{:.0f}\" "
      "font-family=\"sans-serif\" font-size=\"13\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
      "<text x=\"10\" y=\"20\" font-size=\"15\">Until every partition has its new owner: median "
      "(bar), worst (line), reference (red); logarithmic</text>\n",
      height);
  for (const double ms : {1.0, 10.0, 100.0, 1'000.0, 10'000.0}) {
    out += fmt::format(
        "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"44\" y2=\"{1:.0f}\" stroke=\"#dddddd\"/>\n"
        "<text x=\"{0:.1f}\" y=\"40\" text-anchor=\"middle\" fill=\"#777777\">{2}</text>\n",
        x_of(ms), height - 20, duration_text(ms));
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    out += svg_row(rows[i], 52 + (kRowPixels * static_cast<double>(i)));
  }
  return out + "</svg>\n";
}

}  // namespace baton::cli
