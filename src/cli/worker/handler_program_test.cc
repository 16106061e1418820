#include "cli/worker/handler_program.h"

#include <string>

#include <gtest/gtest.h>

namespace baton::cli {
namespace {

std::string problem(const std::string& program, std::string_view path = "/usr/bin:/bin") {
  const Status status = check_handler({program, "argument"}, path);
  return status ? "" : status.error().text;
}

TEST(HandlerProgram, OneThatCanBeRunIsFine) {
  EXPECT_EQ(problem("/bin/sh"), "");
  EXPECT_EQ(problem("sh"), "");
  EXPECT_EQ(problem("sh", ""), "");
  EXPECT_TRUE(check_handler({}, "/bin").has_value());
  EXPECT_EQ(problem("./handler-{partition}"), "");
}

TEST(HandlerProgram, OneThatCannotBeRunIsNamedWithTheReason) {
  EXPECT_EQ(problem("./does-not-exist"),
            "cannot run the program './does-not-exist': No such file or directory");
  EXPECT_EQ(problem("/etc"), "cannot run the program '/etc': it is a folder");
  EXPECT_EQ(problem("/etc/passwd"), "cannot run the program '/etc/passwd': it is not executable");
  EXPECT_EQ(problem("no-such-program"),
            "cannot run the program 'no-such-program': no folder of $PATH has it");
  EXPECT_EQ(problem(""), "cannot run the program '': its name is empty");
}

}  // namespace
}  // namespace baton::cli
