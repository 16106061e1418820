// Cases beyond the official suite's tests of formats.
#include "pipeline/schema/formats.h"

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace baton::schema {
namespace {

void expect(Format format, bool good, const std::vector<std::string>& texts) {
  for (const std::string& text : texts) {
    EXPECT_EQ(matches(format, text), good) << to_string(format) << " " << text;
  }
}

TEST(Formats, NamesGoThereAndBack) {
  for (const auto* name : {"date-time", "date", "time", "email", "ipv4", "ipv6", "uri", "uuid"}) {
    const auto format = parse_format(name);
    ASSERT_TRUE(format.has_value()) << name;
    EXPECT_EQ(to_string(*format), name);
  }
  EXPECT_FALSE(parse_format("hostname").has_value());
  EXPECT_FALSE(parse_format("").has_value());
}

TEST(Formats, Dates) {
  expect(Format::date, true, {"2000-02-29", "2024-02-29", "0000-01-01", "9999-12-31"});
  expect(Format::date, false,
         {"", "1900-02-29", "2023-02-29", "2024-13-01", "2024-00-10", "2024-04-31", "2024-01-00",
          "24-01-01", "2024-1-01", "2024-01-01 ", "+024-01-01"});
  expect(Format::date_time, true,
         {"2021-11-26T06:22:19Z", "2021-11-26t06:22:19.123456789+05:30", "2016-12-31T23:59:60Z"});
  expect(Format::date_time, false,
         {"2021-11-26 06:22:19Z", "2021-11-26T06:22:19", "2021-11-26T06:22:19.Z",
          "2021-11-26T6:22:19Z", "2021-11-26T06:22Z", "2021-11-26T06:22:19+0530",
          "2021-11-26T06:22:19+05", "2021-11-26T", "2021-11-26T06:22:19ZZ"});
}

TEST(Formats, Emails) {
  expect(Format::email, true,
         {"a@b", "user+tag@example.co.uk", "\"a b\"@example.org", "\"a\\\"b\"@example.org",
          "x@[IPv6:2001:db8::1]", "!#$%&'*+-/=?^_`{|}~@example.org"});
  expect(Format::email, false,
         {"", "@", "a@", "@b", "a b@c", "a@b..c", "a@-b.c", "a@b-.c", "a@b_c", "\"a\"b\"@c", "\"@c",
          "a@[1.2.3]", "a@[IPv6:1.2.3.4]", "\u00fc@example.org", "a@\u00fc.de",
          std::string(65, 'a') + "@b", "a@" + std::string(64, 'b')});
}

TEST(Formats, Addresses) {
  expect(Format::ipv4, true, {"0.0.0.0", "255.255.255.255", "1.2.3.4"});
  expect(Format::ipv4, false,
         {"", "1.2.3", "1.2.3.4.5", "256.1.1.1", "01.2.3.4", "1..2.3", "1.2.3.x"});
  expect(
      Format::ipv6, true,
      {"::", "::1", "1::", "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:1.2.3.4", "::ffff:1.2.3.4", "1::3:4"});
  expect(Format::ipv6, false,
         {"", ":", ":::", "1", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "1::2::3", "12345::", "::g",
          "1:2:3:4:5:6:7:1.2.3.4", "1.2.3.4::", "::1%eth0", "1:2:3:4:5:6:7::8"});
}

TEST(Formats, Uris) {
  expect(Format::uri, true, {"a:", "http://[::1]:80/", "file:///etc/x", "x://u:p@h:1/p?q#f"});
  expect(Format::uri, false,
         {"", ":", "1a:b", "http://[::1", "http://a:b/", "http://a%2/", "http://a b/", "a:\u00fc",
          "http://h/#a#b", "http://[x]/"});
}

TEST(Formats, Uuids) {
  expect(Format::uuid, true, {"00000000-0000-0000-0000-000000000000"});
  expect(Format::uuid, false,
         {"", "{0000000-0000-0000-0000-000000000000}", "g0000000-0000-0000-0000-000000000000"});
}

}  // namespace
}  // namespace baton::schema
