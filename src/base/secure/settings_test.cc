#include "base/secure/settings.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace baton::secure {
namespace {

Environment environment_of(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
}

const Environment kTls = environment_of({{"BATON_TLS_CA", "ca.pem"},
                                         {"BATON_TLS_CERT", "cert.pem"},
                                         {"BATON_TLS_KEY", "key.pem"},
                                         {"BATON_TLS_SERVER_NAME", "a.example"}});

TEST(SecuritySettings, VariablesCompleteWhatFlagsSay) {
  Settings settings{.files = {.ca_file = "mine.pem"}};

  take_tls_variables(settings, Scheme::plain, kTls);

  EXPECT_EQ(settings.files, (client::TlsOptions{.ca_file = "mine.pem",
                                                .certificate_file = "cert.pem",
                                                .key_file = "key.pem",
                                                .server_name = "a.example"}));
}

// With the variables of one server set, a URL that names another server without TLS means plain
// text.
TEST(SecuritySettings, VariablesAskForTlsOnlyWhereTheUrlSaysNothing) {
  const auto wants_tls = [](Scheme scheme) {
    Settings settings;
    take_tls_variables(settings, scheme, kTls);
    return settings.wants_tls();
  };

  EXPECT_FALSE(wants_tls(Scheme::plain));
  EXPECT_TRUE(wants_tls(Scheme::open));
  EXPECT_TRUE(wants_tls(Scheme::tls));
}

TEST(SecuritySettings, ACertificateIsNotMixedWithAnotherKey) {
  Settings settings{.files = {.certificate_file = "mine.pem", .key_file = "mine.key"}};

  take_tls_variables(settings, Scheme::tls, kTls);

  EXPECT_EQ(settings.files.certificate_file, "mine.pem");
  EXPECT_EQ(settings.files.key_file, "mine.key");
}

TEST(SecuritySettings, ALoginOfTheEnvironmentCountsIfNoneIsGiven) {
  const auto environment =
      environment_of({{"BATON_USER", "ann"}, {"BATON_PASSWORD", "secret"}, {"BATON_TOKEN", "t"}});
  Settings nothing;
  Settings token{.token_file = "file"};
  Settings user{.user = "bob"};

  take_login_variables(nothing, environment);
  take_login_variables(token, environment);
  take_login_variables(user, environment);

  EXPECT_EQ(nothing.user, "ann");
  EXPECT_EQ(nothing.password, "secret");
  EXPECT_EQ(token, (Settings{.token_file = "file"}));
  EXPECT_EQ(user, (Settings{.user = "bob", .password = "secret"}));
}

class LoadTest : public ::testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(file_); }
  static std::string error_of(const Settings& settings) {
    const auto loaded = load(settings, false);
    return loaded ? "none" : loaded.error().text;
  }

  std::string file_ =
      (std::filesystem::temp_directory_path() / fmt::format("baton-secret-{}", ::getpid()))
          .string();
};

TEST_F(LoadTest, ASecretIsTheFirstLineOfItsFile) {
  std::ofstream(file_) << "s3cret\r\nand more\n";

  EXPECT_EQ(load({.user = "ann", .password_file = file_}, false)->password, "s3cret");
  EXPECT_EQ(load({.token_file = file_}, true)->token, "s3cret");
  EXPECT_TRUE(load({}, true)->tls.has_value());
  EXPECT_FALSE(load({}, false)->tls.has_value());
}

TEST_F(LoadTest, ErrorsNameTheFileAndNeverTheSecret) {
  std::ofstream(file_) << "\nsecond line\n";

  EXPECT_EQ(error_of({.user = "ann", .password_file = "no/such/file"}),
            "cannot read the password file no/such/file: No such file or directory");
  EXPECT_EQ(error_of({.token_file = file_}),
            "the first line of the token file " + file_ + " is empty");
  EXPECT_EQ(error_of({.user = "ann"}),
            "user ann has no password: name a file that holds it, or set BATON_PASSWORD");
  EXPECT_EQ(error_of({.password = "MARKED"}), "a password is given without a user");
  EXPECT_EQ(error_of({.user = "ann", .password = "MARKED", .token = "MARKED"}),
            "give one login: a user with a password, a token, or credentials");
  EXPECT_EQ(error_of({.credentials_file = "no/such.creds"}),
            "cannot read the credentials file no/such.creds: No such file or directory");
}

}  // namespace
}  // namespace baton::secure
