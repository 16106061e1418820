#include "base/net/connections.h"

#include <gtest/gtest.h>

namespace baton {
namespace {

TEST(WrongGreeting, WhatAClientOfThisPortSaysIsFine) {
  EXPECT_EQ(wrong_greeting("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", false), "");
  EXPECT_EQ(wrong_greeting("P", false), "");
  EXPECT_EQ(wrong_greeting("\x16\x03\x01", true), "");
}

// The client only sees "Socket closed"; the operator reads the reason in the log.
TEST(WrongGreeting, NamesWhatTheClientSpeaksInstead) {
  EXPECT_NE(wrong_greeting("\x16\x03\x01", false).find("speaks TLS"), std::string_view::npos);
  EXPECT_NE(wrong_greeting("PRI * HTTP/2.0", true).find("wants TLS"), std::string_view::npos);
  EXPECT_NE(wrong_greeting("GET / HTTP/1.1", false).find("HTTP/1"), std::string_view::npos);
  EXPECT_NE(wrong_greeting("POST /x", true).find("HTTP/1"), std::string_view::npos);
  EXPECT_NE(wrong_greeting("hello", false).find("neither"), std::string_view::npos);
}

}  // namespace
}  // namespace baton
