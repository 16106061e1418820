#include "server/http/http_request.h"

#include <string>

#include <gtest/gtest.h>

namespace baton {
namespace {

using State = HttpRequest::State;

TEST(HttpHead, MethodAndPathAreRead) {
  const HttpRequest request =
      parse_http_head("GET /metrics?name=x HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(request.state, State::complete);
  EXPECT_EQ(request.method, "GET");
  EXPECT_EQ(request.path, "/metrics");
}

TEST(HttpHead, IsIncompleteUntilItsEmptyLine) {
  const std::string head = "GET / HTTP/1.0\r\nA: b\r\n\r\n";
  for (std::size_t length = 0; length < head.size(); ++length) {
    EXPECT_EQ(parse_http_head(head.substr(0, length)).state, State::incomplete) << length;
  }
  EXPECT_EQ(parse_http_head(head).state, State::complete);
}

TEST(HttpHead, AnEndlessOneIsTooLarge) {
  EXPECT_EQ(parse_http_head(std::string(kHttpHeadBytesMax, 'x')).state, State::too_large);
}

TEST(HttpHead, WhatIsNoRequestIsMalformed) {
  for (const char* text : {"\r\n\r\n", "GET\r\n\r\n", "GET /\r\n\r\n", "GET x HTTP/1.1\r\n\r\n",
                           " / HTTP/1.1\r\n\r\n", "GET / SPDY\r\n\r\n", "G\x01T / HTTP/1.1\n\n"}) {
    EXPECT_EQ(parse_http_head(text).state, State::malformed) << text;
  }
}

}  // namespace
}  // namespace baton
