// SPDX-License-Identifier: Apache-2.0
#include "runtime/socket.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>

namespace nccl_ext {
namespace {

constexpr std::chrono::milliseconds kRetryEvery{50};
constexpr std::chrono::milliseconds kOneAttempt{2000};
constexpr std::size_t kFirstBytes = 64 << 10;  // of a frame

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

Addresses resolve(const std::string& address, int port, int flags, std::string& why) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* found = nullptr;
  const int result = getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (result != 0) why = gai_strerror(result);
  return Addresses(found, &freeaddrinfo);
}

int openSocket(const addrinfo& address) {
  const int descriptor =
      socket(address.ai_family, address.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, address.ai_protocol);
  const int yes = 1;
  if (descriptor >= 0) setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  return descriptor;
}

int millisecondsTo(Clock::time_point deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<long long>(left, 0, 60'000));
}

}  // namespace

Socket::~Socket() {
  if (descriptor_ >= 0) close(descriptor_);
}

Socket& Socket::operator=(Socket&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

Outcome<Socket> Socket::listenOn(const std::string& address, int port) {
  std::string why;
  const Addresses found = resolve(address, port, AI_PASSIVE, why);
  for (const addrinfo* one = found.get(); one != nullptr; one = one->ai_next) {
    Socket socket(openSocket(*one));
    const int yes = 1;
    if (socket.isOpen()) setsockopt(socket.descriptor_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (socket.isOpen() && bind(socket.descriptor_, one->ai_addr, one->ai_addrlen) == 0 &&
        listen(socket.descriptor_, SOMAXCONN) == 0)
      return socket;
    why = std::strerror(errno);
  }
  return fail(ErrorCode::kLauncher, "joinRank",
              "rank 0 cannot listen on " + address + " port " + std::to_string(port) + ": " + why)
      .ofRank(0)
      .helped("NCCL_EXT_ADDR must be an address of rank 0's host, and NCCL_EXT_PORT a free port there.");
}

Outcome<Socket> Socket::connectTo(const std::string& address, int port, Clock::time_point deadline) {
  std::string why = "nobody answered";
  do {
    const Addresses found = resolve(address, port, 0, why);
    for (const addrinfo* one = found.get(); one != nullptr; one = one->ai_next) {
      Socket socket(openSocket(*one));
      if (!socket.isOpen()) continue;
      int result = connect(socket.descriptor_, one->ai_addr, one->ai_addrlen) == 0 ? 0 : errno;
      if (result == EINPROGRESS && socket.ready(POLLOUT, std::min(deadline, Clock::now() + kOneAttempt))) {
        socklen_t size = sizeof result;
        getsockopt(socket.descriptor_, SOL_SOCKET, SO_ERROR, &result, &size);
      }
      if (result == 0) return socket;
      why = std::strerror(result);
    }
    std::this_thread::sleep_for(kRetryEvery);
  } while (Clock::now() < deadline);
  return fail(ErrorCode::kTimeout, "joinRank",
              "rank 0 cannot be reached at " + address + " port " + std::to_string(port) + ": " + why)
      .fromPeer(0)
      .helped("Check that rank 0 runs, and that NCCL_EXT_ADDR and NCCL_EXT_PORT are the same on all ranks.");
}

std::optional<Socket> Socket::accept(std::chrono::milliseconds patience) const {
  if (!ready(POLLIN, Clock::now() + patience)) return std::nullopt;
  Socket accepted(accept4(descriptor_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!accepted.isOpen()) return std::nullopt;
  const int yes = 1;
  setsockopt(accepted.descriptor_, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  return accepted;
}

bool Socket::send(const Bytes& frame, Clock::time_point deadline) {
  const auto bytes = static_cast<std::uint32_t>(frame.size());
  return sendAll(&bytes, sizeof bytes, deadline) && sendAll(frame.data(), frame.size(), deadline);
}

std::optional<Bytes> Socket::receive(Clock::time_point deadline, std::size_t most) {
  std::uint32_t bytes = 0;
  if (!receiveAll(&bytes, sizeof bytes, deadline) || bytes > most) return std::nullopt;
  // Memory for what has come, not for what is claimed: a peer may send a length and nothing else.
  Bytes frame;
  while (frame.size() < bytes) {
    const std::size_t begin = frame.size();
    frame.resize(std::min<std::size_t>(bytes, std::max(2 * begin, kFirstBytes)));
    if (!receiveAll(frame.data() + begin, frame.size() - begin, deadline)) return std::nullopt;
  }
  return frame;
}

void Socket::shutdown() {
  if (descriptor_ >= 0) ::shutdown(descriptor_, SHUT_RDWR);
}

void Socket::shutdownReading() {
  if (descriptor_ >= 0) ::shutdown(descriptor_, SHUT_RD);
}

bool Socket::ready(short events, Clock::time_point deadline) const {
  for (;;) {
    pollfd watched = {descriptor_, events, 0};
    const int result = poll(&watched, 1, millisecondsTo(deadline));
    if (result > 0) return true;
    if (result < 0 && errno != EINTR) return false;
    if (Clock::now() >= deadline) return false;
  }
}

bool Socket::receiveAll(void* data, std::size_t bytes, Clock::time_point deadline) {
  auto* next = static_cast<std::uint8_t*>(data);
  while (bytes > 0) {
    const ssize_t got = recv(descriptor_, next, bytes, 0);
    if (got == 0) return false;
    if (got < 0) {
      if (errno == EINTR) continue;
      if ((errno != EAGAIN && errno != EWOULDBLOCK) || !ready(POLLIN, deadline)) return false;
      continue;
    }
    next += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

bool Socket::sendAll(const void* data, std::size_t bytes, Clock::time_point deadline) {
  const auto* next = static_cast<const std::uint8_t*>(data);
  while (bytes > 0) {
    const ssize_t sent = ::send(descriptor_, next, bytes, MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno == EINTR) continue;
      if ((errno != EAGAIN && errno != EWOULDBLOCK) || !ready(POLLOUT, deadline)) return false;
      continue;
    }
    next += sent;
    bytes -= static_cast<std::size_t>(sent);
  }
  return true;
}

}  // namespace nccl_ext
