#include "e2e/free_port.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <random>
#include <set>

namespace baton::e2e {
namespace {

bool is_free(int port) {
  const int probe = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_port = htons(static_cast<std::uint16_t>(port));
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool free = ::bind(probe, reinterpret_cast<const sockaddr*>(&where), sizeof where) == 0;
  ::close(probe);
  return free;
}

}  // namespace

int free_port() {
  static std::set<int> taken;
  static std::mt19937 random(std::random_device{}());
  while (true) {
    const int port = std::uniform_int_distribution<int>(20'000, 32'000)(random);
    if (!taken.contains(port) && is_free(port)) {
      taken.insert(port);
      return port;
    }
  }
}

}  // namespace baton::e2e
