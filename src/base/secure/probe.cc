#include "base/secure/probe.h"

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <memory>

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/address.h"
#include "base/result.h"

namespace baton::secure {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

/// OpenSSL writes to sockets in a way that raises SIGPIPE when the peer is gone.
class NoBrokenPipe {
 public:
  NoBrokenPipe() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  NoBrokenPipe(const NoBrokenPipe&) = delete;
  NoBrokenPipe& operator=(const NoBrokenPipe&) = delete;
  ~NoBrokenPipe() {
    constexpr timespec kNoTime{};
    if (sigismember(&before_, SIGPIPE) == 0) (void)sigtimedwait(&pipe_, nullptr, &kNoTime);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t pipe_{};
  sigset_t before_{};
};

class Socket {
 public:
  explicit Socket(int number) : number_(number) {}
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket() {
    if (number_ >= 0) ::close(number_);
  }
  [[nodiscard]] int number() const { return number_; }

  /// False if nobody answers within `time`.
  [[nodiscard]] bool connect(const addrinfo& where, milliseconds time) const {
    if (number_ < 0) return false;
    if (::connect(number_, where.ai_addr, where.ai_addrlen) != 0 && errno != EINPROGRESS) {
      return false;
    }
    pollfd waiting{.fd = number_, .events = POLLOUT, .revents = 0};
    if (::poll(&waiting, 1, static_cast<int>(time.count())) != 1) return false;
    int problem = 0;
    socklen_t size = sizeof problem;
    if (::getsockopt(number_, SOL_SOCKET, SO_ERROR, &problem, &size) != 0 || problem != 0) {
      return false;
    }
    // From here on OpenSSL waits on the socket, for at most `time`.
    const timeval patience{.tv_sec = time.count() / 1000, .tv_usec = (time.count() % 1000) * 1000};
    ::setsockopt(number_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    ::setsockopt(number_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    return ::fcntl(number_, F_SETFL, 0) == 0;
  }

 private:
  int number_;
};

struct FreeAddresses {
  void operator()(addrinfo* found) const { ::freeaddrinfo(found); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

struct FreeSsl {
  void operator()(SSL* ssl) const { SSL_free(ssl); }
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};

/// What one try of a handshake has shown.
struct Handshake {
  bool is_done = false;                // The handshake was completed, and the server sent data.
  bool is_agreed = false;              // Completed on our side; the server may still refuse us.
  bool is_alert = false;               // The server refused with a TLS alert.
  bool is_plain = false;               // The answer is not TLS.
  bool is_silent = false;              // The server closed the connection without an answer.
  bool asked_for_certificate = false;  // The server asked for one, and we had none.
  long verified = X509_V_OK;           // NOLINT(google-runtime-int): OpenSSL's.
  std::string text{};                  // OpenSSL's error.
};

int on_certificate_wanted(SSL* ssl, X509** /*certificate*/, EVP_PKEY** /*key*/) {
  static_cast<Handshake*>(SSL_get_app_data(ssl))->asked_for_certificate = true;
  return 0;
}

void take_error(Handshake& found) {
  const unsigned long error = ERR_peek_last_error();  // NOLINT(google-runtime-int): OpenSSL's.
  if (error == 0 || ERR_GET_LIB(error) != ERR_LIB_SSL) return;
  const int reason = ERR_GET_REASON(error);
  found.is_plain = reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_HTTP_REQUEST ||
                   reason == SSL_R_UNSUPPORTED_PROTOCOL;
  found.is_silent = reason == SSL_R_UNEXPECTED_EOF_WHILE_READING;
  // Reasons of alerts are 1000 plus the alert's number in TLS.
  found.is_alert = reason > SSL_AD_REASON_OFFSET && reason < SSL_AD_REASON_OFFSET + 256;
  if (const char* text = ERR_reason_error_string(error)) found.text = text;
}

void expect_name(SSL& ssl, const std::string& name) {
  SSL_set_tlsext_host_name(&ssl, name.c_str());
  X509_VERIFY_PARAM* wanted = SSL_get0_param(&ssl);
  if (X509_VERIFY_PARAM_set1_ip_asc(wanted, name.c_str()) != 1) {
    X509_VERIFY_PARAM_set1_host(wanted, name.c_str(), 0);
  }
}

/// With `tls`: as the caller would do it. Without: trusts anybody, only to see what answers.
Handshake shake_hands(int socket, const std::string& host,
                      const std::optional<client::TlsOptions>& tls) {
  Handshake found;
  const NoBrokenPipe no_broken_pipe;
  const std::unique_ptr<SSL_CTX, FreeSsl> context(SSL_CTX_new(TLS_client_method()));
  if (tls) {
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
    if (tls->ca_file.empty()) {
      SSL_CTX_set_default_verify_paths(context.get());
    } else {
      SSL_CTX_load_verify_locations(context.get(), tls->ca_file.c_str(), nullptr);
    }
    if (!tls->certificate_file.empty()) {
      SSL_CTX_use_certificate_chain_file(context.get(), tls->certificate_file.c_str());
      SSL_CTX_use_PrivateKey_file(context.get(), tls->key_file.c_str(), SSL_FILETYPE_PEM);
    }
  }
  SSL_CTX_set_client_cert_cb(context.get(), on_certificate_wanted);
  constexpr std::array<unsigned char, 3> kHttp2{2, 'h', '2'};  // Without it gRPC would hang up.
  SSL_CTX_set_alpn_protos(context.get(), kHttp2.data(), kHttp2.size());
  const std::unique_ptr<SSL, FreeSsl> ssl(SSL_new(context.get()));
  SSL_set_app_data(ssl.get(), &found);
  SSL_set_fd(ssl.get(), socket);
  if (tls) expect_name(*ssl, tls->server_name.empty() ? host : tls->server_name);
  ERR_clear_error();
  found.is_agreed = SSL_connect(ssl.get()) == 1;
  if (found.is_agreed) {
    // In TLS 1.3 a server that refuses our certificate says so only now.
    std::array<char, 1> first{};
    errno = 0;
    found.is_done = !tls || SSL_read(ssl.get(), first.data(), 1) > 0 ||
                    (errno == EAGAIN || errno == EWOULDBLOCK);
  }
  found.verified = SSL_get_verify_result(ssl.get());
  if (!found.is_done) take_error(found);
  ERR_clear_error();
  return found;
}

std::optional<Error> judge_plain(const Suspect& suspect, const Handshake& found) {
  if (!found.is_done && !found.is_alert) return std::nullopt;
  return invalid_argument(fmt::format(
      "{} at {} speaks TLS: write {}://, or give --tls-ca FILE (tls.ca in a pipeline's config)",
      suspect.who, suspect.address, suspect.secure));
}

/// What a failed handshake says, apart from faults of the server's certificate.
std::optional<Error> judge_refusal(const Suspect& suspect, const client::TlsOptions& tls,
                                   const Handshake& found) {
  const std::string place = fmt::format("{} at {}", suspect.who, suspect.address);
  if (found.is_silent && !found.is_agreed) {
    // Or a proxy answered that has no server to pass us on to.
    return Error{
        Errc::unavailable,
        fmt::format("{} closes the connection instead of answering in TLS: it speaks plain "
                    "text ({}://), or is not up yet",
                    place, suspect.plain)};
  }
  if (!tls.certificate_file.empty()) {
    return invalid_argument(fmt::format("{} does not accept the certificate in {}{}{}", place,
                                        tls.certificate_file, found.is_alert ? ": " : "",
                                        found.is_alert ? found.text : ""));
  }
  if (!found.is_alert) return std::nullopt;
  return invalid_argument(fmt::format("{} refuses the TLS handshake: {}", place, found.text));
}

std::optional<Error> judge_tls(const Suspect& suspect, const client::TlsOptions& tls,
                               const Handshake& found) {
  const std::string place = fmt::format("{} at {}", suspect.who, suspect.address);
  if (found.is_done) return std::nullopt;
  if (found.is_plain) {
    return invalid_argument(
        fmt::format("{} speaks plain text: write {}://, and leave out --tls, the TLS files "
                    "and BATON_TLS_CA",
                    place, suspect.plain));
  }
  if (found.verified == X509_V_ERR_HOSTNAME_MISMATCH ||
      found.verified == X509_V_ERR_IP_ADDRESS_MISMATCH) {
    return invalid_argument(
        fmt::format("{} has a certificate of another name: give the name in it with "
                    "--tls-server-name (tls.server_name)",
                    place));
  }
  if (found.verified != X509_V_OK) {
    return invalid_argument(
        fmt::format("{} has a certificate that {} does not vouch for: give the authority "
                    "that signed it with --tls-ca (tls.ca): {}",
                    place, tls.ca_file.empty() ? "no authority of this system" : tls.ca_file,
                    X509_verify_cert_error_string(found.verified)));
  }
  if (found.asked_for_certificate) {
    return invalid_argument(
        fmt::format("{} wants a client certificate: give --tls-cert and --tls-key "
                    "(tls.certificate and tls.key)",
                    place));
  }
  return judge_refusal(suspect, tls, found);
}

}  // namespace

std::optional<Error> explain_failure(const Suspect& suspect, Duration timeout) {
  const auto address = parse_address(suspect.address);
  if (!address) return std::nullopt;
  const auto end = Clock::now() + timeout;
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* raw = nullptr;
  const int problem =
      ::getaddrinfo(address->host.c_str(), std::to_string(address->port).c_str(), &hints, &raw);
  const Addresses places(raw);
  if (problem == EAI_NONAME || problem == EAI_NODATA) {
    return Error{Errc::unavailable, fmt::format("no such host {}", address->host)};
  }
  for (const addrinfo* each = places.get(); problem == 0 && each != nullptr; each = each->ai_next) {
    const auto left = std::chrono::duration_cast<milliseconds>(end - Clock::now());
    if (left <= milliseconds{0}) break;
    const Socket socket(
        ::socket(each->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, each->ai_protocol));
    if (!socket.connect(*each, left)) continue;
    const Handshake found = shake_hands(socket.number(), address->host, suspect.tls);
    return suspect.tls ? judge_tls(suspect, *suspect.tls, found) : judge_plain(suspect, found);
  }
  return std::nullopt;
}

}  // namespace baton::secure
